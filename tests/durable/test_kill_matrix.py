"""Killed at every effect, at every point of it, a run ends as if nothing had happened: nothing is lost, nothing comes twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from maymust import SqliteStore
from tests.durable.broken import NAMES
from tests.durable.person import faults, finish
from tests.durable.soak import soak
from tests.durable.world import EFFECTS, POINTS
from tests.durable.zygote import Zygote


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_no_effect_and_repeats_none(
    zygote: Zygote, undisturbed: dict[str, Any], tmp_path: Path, effect: str, point: str
) -> None:
    kill = {"call_id": effect, "point": point}
    ended = zygote.run(tmp_path, kill=kill)
    if ended["signal"] != 9:
        # The effect comes after the question.
        assert ended["stop_reason"] == "paused"
        (row,) = SqliteStore(tmp_path / "runs.db").runs()
        ended = zygote.run(tmp_path, run_id=row.run_id, decisions={"refund1": True}, kill=kill)
    assert ended["signal"] == 9, ended
    assert not faults(tmp_path, finish(zygote, tmp_path), undisturbed)


@pytest.mark.parametrize(
    ("name", "effect", "point", "fault"),
    [
        ("no intent", "charge1", "after effect", "charge1 came 2 times"),
        ("result before effect", "charge1", "after intent", "charge1 is lost"),
        ("blind repeat", "charge2", "after effect", "charge2 came 2 times"),
        ("blind repeat", "inner1", "after effect", "inner1 came 2 times"),
    ],
)
def test_a_driver_that_is_wrong_is_found_out(
    zygote: Zygote, undisturbed: dict[str, Any], tmp_path: Path, name: str, effect: str, point: str, fault: str
) -> None:
    assert name in NAMES
    kill = {"call_id": effect, "point": point}
    ended = zygote.run(tmp_path, kill=kill, broken=name)
    if ended["signal"] != 9:
        (row,) = SqliteStore(tmp_path / "runs.db").runs()
        ended = zygote.run(tmp_path, run_id=row.run_id, decisions={"refund1": True}, kill=kill, broken=name)
    assert ended["signal"] == 9
    assert fault in faults(tmp_path, finish(zygote, tmp_path, broken=name), undisturbed)


@pytest.mark.parametrize("seed", range(1, 5))
def test_random_kills_do_no_harm_either(zygote: Zygote, undisturbed: dict[str, Any], tmp_path: Path, seed: int) -> None:
    """`make soak` makes many more."""
    _, found = soak(zygote, tmp_path, seed, undisturbed)
    assert not found

"""The kill matrix on DBOS: killed at every effect, at every point of it, a run ends as if nothing had happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.durable.person import faults, finish
from tests.durable.soak import soak
from tests.durable.stores import store_of
from tests.durable.test_messages import POINTS as MESSAGE_POINTS
from tests.durable.test_messages import check_message, check_message_between
from tests.durable.world import EFFECTS, POINTS
from tests.durable.zygote import Zygote

DIAGONAL = [(effect, POINTS[place % len(POINTS)]) for place, effect in enumerate(EFFECTS)]
"""Each effect once, and each point; `python -m tests.durable.dbos.soak` has them all."""


def check_kill(zygote: Zygote, undisturbed: dict[str, Any], folder: Path, effect: str, point: str) -> None:
    """Kill a run there, bring it to its end, and look what happened."""
    kill = {"call_id": effect, "point": point}
    ended = zygote.run(folder, kill=kill)
    if ended["signal"] != 9:
        # The effect comes after the question.
        assert ended.get("stop_reason") == "paused", ended
        with store_of(folder) as store:
            (row,) = store.runs()
        ended = zygote.run(folder, run_id=row.run_id, decisions={"refund1": True}, kill=kill)
    assert ended["signal"] == 9, ended
    assert not faults(folder, finish(zygote, folder), undisturbed)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_no_effect_and_repeats_none(
    zygote: Zygote, undisturbed: dict[str, Any], tmp_path: Path, effect: str, point: str
) -> None:
    check_kill(zygote, undisturbed, tmp_path, effect, point)


@pytest.mark.usefixtures("database_file")
@pytest.mark.parametrize(("effect", "point"), DIAGONAL)
def test_the_same_in_a_file(zygote: Zygote, undisturbed: dict[str, Any], tmp_path: Path, effect: str, point: str) -> None:
    check_kill(zygote, undisturbed, tmp_path, effect, point)


@pytest.mark.parametrize("where", ["database", "database_file"])
@pytest.mark.parametrize("point", MESSAGE_POINTS)
def test_a_kill_loses_no_message_and_repeats_none(
    zygote: Zygote, request: pytest.FixtureRequest, tmp_path: Path, where: str, point: str
) -> None:
    request.getfixturevalue(where)
    check_message(zygote, tmp_path, point)


@pytest.mark.usefixtures("database")
def test_a_message_to_a_run_whose_process_is_gone_is_read_at_once_when_it_goes_on(zygote: Zygote, tmp_path: Path) -> None:
    check_message_between(zygote, tmp_path)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("seed", range(1, 3))
def test_random_kills_do_no_harm_either(zygote: Zygote, undisturbed: dict[str, Any], tmp_path: Path, seed: int) -> None:
    _, found = soak(zygote, tmp_path, seed, undisturbed)
    assert not found


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("name", "effect"), [("no intent", "charge1"), ("blind repeat", "charge2")])
def test_a_driver_that_is_wrong_is_found_out(zygote: Zygote, undisturbed: dict[str, Any], tmp_path: Path, name: str, effect: str) -> None:
    ended = zygote.run(tmp_path, kill={"call_id": effect, "point": "after effect"}, broken=name)
    assert ended["signal"] == 9
    assert f"{effect} came 2 times" in faults(tmp_path, finish(zygote, tmp_path, broken=name), undisturbed)

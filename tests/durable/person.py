"""Brings a killed run to its end, as a person would who can look at what really happened, and judges the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maymust import Happened
from tests.durable.stores import AnyStore, store_of
from tests.durable.world import EFFECTS, OUTPUTS, READS, Oracle, record
from tests.durable.zygote import Zygote


def finish(
    zygote: Zygote,
    folder: Path,
    *,
    broken: str | None = None,
    kill: Callable[[int], dict[str, Any]] | None = None,
    killed: list[int] | None = None,
) -> str:
    """Resume until the run has ended; gives its id. `kill` gives the kill plan of the n-th process, `killed[0]` counts."""
    with store_of(folder) as store:
        return _finish(zygote, folder, store, broken, kill, killed)


def _finish(
    zygote: Zygote,
    folder: Path,
    store: AnyStore,
    broken: str | None,
    kill: Callable[[int], dict[str, Any]] | None,
    killed: list[int] | None,
) -> str:
    oracle = Oracle(folder / "oracle")
    rows = store.runs()
    if not rows:
        # Killed before the run was there: nothing has happened, so it is asked for again.
        assert zygote.run(folder, broken=broken)["signal"] == 0
        rows = store.runs()
    (row,) = rows
    for attempt in range(60):
        answers = {}
        for question in store.questions(row.run_id):
            happened = question.interrupted and question.call_id.rpartition("/")[2] in oracle.effects
            answers[question.call_id] = Happened(OUTPUTS[question.call_id.rpartition("/")[2]]) if happened else True
        if answers:
            store.decide(row.run_id, answers, by="Ada")
        elif store.run(row.run_id).status == "ended":
            break
        ended = zygote.run(folder, run_id=row.run_id, broken=broken, kill=kill(attempt) if kill is not None else {})
        assert ended["signal"] in (0, 9), ended
        if killed is not None:
            killed[0] += ended["signal"] == 9
        assert "error" not in ended, ended
    return row.run_id


def faults(folder: Path, run_id: str, undisturbed: dict[str, Any]) -> list[str]:
    """What is wrong with a run that has ended: lost effects, effects that came twice, a record that is another one."""
    done = Counter(Oracle(folder / "oracle").effects)
    found = [f"{effect} is lost" for effect in EFFECTS if not done[effect]]
    found += [f"{effect} came {done[effect]} times" for effect in EFFECTS if done[effect] > 1 and effect not in READS]
    with store_of(folder) as store:
        state = store.state(run_id)
    if state.phase != "ended":
        found.append(f"the run has not ended: {state!r}")
    now = record(state)
    found += [f"{name} differs: {now[name]!r} instead of {undisturbed[name]!r}" for name in undisturbed if now[name] != undisturbed[name]]
    return found

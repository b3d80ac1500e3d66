"""A harness that overlooks something lets every row pass: each expectation of each row, bent a little, has to be noticed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.tables.harness.compare import problems_of
from tests.tables.harness.invariants import broken_invariants
from tests.tables.harness.rows import RowFault, check_row, load_rows
from tests.tables.harness.runner import Observed, run_row

ROWS = [row for table in ("loop", "exposure", "middleware", "approval") for row in load_rows(table)]
BENT: Mapping[str, Any] = {
    "executed": lambda value: [*value, "nobody"],
    "refused": lambda value: [*value, "nobody"],
    "denied": lambda value: [*value, "nobody"],
    "failed": lambda value: [*value, "nobody"],
    "asked": lambda value: [*value, "nobody"],
    "model_calls": lambda value: value + 1,
    "offered": lambda value: {**value, 99: []} if isinstance(value, dict) else [*value, []],
    "tool_choice": lambda value: {**value, 99: "auto"} if isinstance(value, dict) else [*value, "auto"],
    "stop_reason": lambda value: f"not {value}",
    "answer": lambda value: f"{value}!",
    "output": lambda value: {**value, "more": 1},
    "counters": lambda value: {**value, "nudges": value.get("nudges", 0) + 1},
    "nudge_contains": lambda value: "words that nobody says",
    "results": lambda value: [*value, {"call": "nowhere", "not_empty": True}],
    "pauses": lambda value: [*value, {"pending": ["p99"]}],
    "pending": lambda value: [*value, "p99"],
    "trail": lambda value: [*value, "nobody > nothing"],
    "after_run_error": lambda value: "KeyError",
    "error": lambda value: {**value, "contains": ["words that nobody says"]},
}


def _observed(row: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Observed]]:
    return list(zip([run["expect"] for run in row.get("runs") or [row]], run_row(row), strict=True))


@pytest.mark.parametrize("table", ["loop", "exposure", "middleware", "approval"])
def test_no_expectation_is_overlooked(table: str) -> None:
    overlooked = [
        f"{row['id']}: {key}"
        for row in load_rows(table)
        for expect, seen in _observed(row)
        for key in set(expect) - {"no_overlap"}
        if not problems_of(seen, {**expect, key: BENT[key](expect[key])})
    ]
    assert not overlooked


def _row(name: str) -> dict[str, Any]:
    return next(row for row in ROWS if row["id"] == name)


def test_overlapping_bodies_are_seen() -> None:
    ((expect, seen),) = _observed(_row("independent-calls-run-together"))
    assert problems_of(seen, {**expect, "no_overlap": True})


@pytest.mark.parametrize("part", ["steps", "results", "bodies", "refusals", "settings"])
def test_what_is_true_of_every_row_is_looked_at(part: str) -> None:
    ((_, seen),) = _observed(_row("limit-of-one-called-three-times"))
    assert not broken_invariants(seen)
    if part == "steps":
        seen.state = seen.state.fork()
        seen.state.history = type(seen.state.history)()
    elif part == "results":
        seen.state = seen.state.fork()
        seen.state.messages = seen.state.messages[:2]
    elif part == "bodies":
        seen.recorder.bodies["c2"] = [("pay", {})] * 2
    elif part == "refusals":
        seen.state = seen.state.fork()
        seen.state.counters = type(seen.state.counters)()
    else:
        seen.settings = (seen.settings[0], {**seen.settings[1], "tools": ()})
    assert broken_invariants(seen)


@pytest.mark.parametrize(
    "change",
    [
        {"surprise": 1},
        {"agent": {"colour": "red"}},
        {"run": {"budget": {}}},
        {"expect": {"exekuted": []}},
        {"at_once": True},
        {"runs": [{"script": [], "expect": {}}]},
    ],
    ids=str,
)
def test_a_row_with_an_unknown_key_is_a_fault(change: dict[str, Any]) -> None:
    with pytest.raises(RowFault):
        check_row({**_row("unknown-tool"), **change})

"""How results become words: units, what is left out, what cannot be expressed, and how runs that end otherwise are told."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from benchmarks.peers.parts import expected
from benchmarks.peers.run import Job, rounds
from benchmarks.peers.targets import at_least, at_most
from benchmarks.peers.words import cell, ending, find, micro, rate


@pytest.mark.parametrize(
    ("given", "said"),
    [(2.34, "2.3 µs"), (140.2, "140 µs"), (2021.0, "2.0 ms"), (41407.0, "41 ms"), (932_360.0, "932 ms"), (1.2e6, "1.2 s")],
)
def test_a_time_has_the_unit_that_suits_it(given: float, said: str) -> None:
    assert micro(given) == said


def test_a_cell_says_why_there_is_no_figure() -> None:
    assert cell(None, "us") == "-"
    assert cell({"left_out": True}, "us") == "left out"
    assert cell({"failed": "no"}, "us") == "failed"
    assert cell({"failed": "stopped after 5 s"}, "us") == "stopped"
    once = {"us": {"median": 5.0, "low": 5.0, "high": 5.0}, "repeats": 1}
    assert cell(once, "us") == "5.0 µs"
    assert cell({**once, "us": {"median": 5.0, "low": 4.0, "high": 7.0}, "repeats": 3}, "us") == "5.0 µs (4.0 µs – 7.0 µs)"


def test_rows_with_rules_are_told_from_rows_without() -> None:
    rows = [{"peer": "x", "rules": 10, "n": 2}, {"peer": "x", "n": 1}]
    assert (find(rows, peer="x") or {})["n"] == 1
    assert (find(rows, peer="x", rules=10) or {})["n"] == 2
    assert find(rows, peer="y") is None


def test_kinds_that_cannot_be_expressed_are_not_counted() -> None:
    found = {"table": {"order": {"one": {"broken": 1, "runs": 10}}, "limit": {"one": {"broken": 0, "runs": 10}}}}
    assert rate(found, "one", ["order", "limit", "first"]) == "50"
    assert rate(found, "one", ["first"]) == "n/a"


def test_the_end_of_a_run_is_told_where_it_is_no_answer() -> None:
    assert ending({"calls": 2, "end": "answered"}, 2) == "0"
    assert ending({"calls": 3, "end": "answered"}, 2) == "+1"
    assert ending({"calls": 1, "end": "ModelBehaviorError"}, 2) == "−1, ModelBehaviorError"
    assert ending({"calls": 25, "end": "AgentGenerationError"}, 2) == "did not end"


def test_how_long_a_run_takes_is_guessed_from_how_the_time_grew() -> None:
    assert expected([], 10) is None
    assert expected([100.0], 1000) == pytest.approx(0.1)
    assert expected([100.0, 200.0], 1000) == pytest.approx(0.4)
    assert expected([200.0, 100.0], 1000) == pytest.approx(0.1)
    assert expected([100.0, None], 1000) == float("inf"), "what was left out is not tried with more"


def test_targets_that_were_not_measured_are_not_met() -> None:
    assert not at_most("x", None, 10, "µs", "").met
    assert at_most("x", 10.0, 10, "µs", "").met
    assert not at_least("x", None, 10, "").met
    assert at_least("x", 10.0, 10, "").got == "10.0 ×"


def test_measurements_go_in_turns_and_slow_or_failing_ones_are_made_once() -> None:
    order: list[str] = []

    def measure(name: str, task: str, given: dict[str, Any], limit: float) -> dict[str, Any]:
        order.append(name)
        if name == "broken":
            raise subprocess.CalledProcessError(1, "x", stderr="what went wrong\n")
        return {"us": 1.0, "used": 60.0 if name == "slow" else 0.1}

    jobs = rounds([Job(name, "loop", {}, measure=measure) for name in ("quick", "slow", "broken", "other")], 3, 1)
    assert order == ["quick", "slow", "broken", "other", "other", "quick", "other", "quick"]
    assert jobs[2].row("us") == {"peer": "broken", "repeats": 0, "failed": "what went wrong"}
    assert jobs[0].row("us")["us"] == {"median": 1.0, "low": 1.0, "high": 1.0}

"""A run as data: what would change a verdict, what is Python code, and what is too large to draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from maymust import ConditionalRequirement, Rule, requirement
from maymust.models import call
from maymust.trace import read_trace, recording_of
from maymust.web.board import Board
from maymust.web.known import known_policy
from maymust.web.page import FILE, SERVED, _asset, content_policy, page
from maymust.web.texts import Texts
from tests.web.runs import RULES, SCRIPT, record


def board_of(path: Path, **settings: Any) -> dict[str, Any]:
    recording = recording_of(read_trace(path))
    board = Board("run", known_policy(recording), **settings)
    board.update(recording)
    return board.snapshot()


def cell(said: dict[str, Any], tool: str, column: int) -> dict[str, Any]:
    changes = said["rows"][tool]
    found: dict[str, Any] = said["cells"][[number for at, number in zip(changes[::2], changes[1::2], strict=True) if at <= column][-1]]
    return found


def test_what_opens_a_tool_is_the_shortest_way_at_every_step(tmp_path: Path) -> None:
    said = board_of(record(tmp_path / "t.jsonl"), seconds=20.0)
    assert cell(said, "refund", 0)["opens"] == ["think", "lookup"]
    assert cell(said, "refund", 1)["opens"] == ["lookup"]
    assert cell(said, "refund", 5)["outlook"] == "nothing can open refund any more in this run"
    assert "outlook" not in cell(said, "lookup", 2)


def test_without_time_the_rules_are_told_and_that_more_is_not_known(tmp_path: Path) -> None:
    said = board_of(record(tmp_path / "t.jsonl"), seconds=1e-9)
    assert said["unexplained"] is True
    assert cell(said, "refund", 1)["rules"][0]["name"] == "refund-after-lookup"


def test_python_code_is_left_out_of_what_is_known_and_its_verdicts_are_not(tmp_path: Path) -> None:
    @requirement(name="no-refunds", targets=["refund"])
    def no_refunds(history: Any) -> list[Rule]:
        return [Rule("refund", allowed=False, reason="not today")]

    said = board_of(record(tmp_path / "t.jsonl", [*RULES, no_refunds], [*SCRIPT[:3], SCRIPT[-1]]), seconds=20.0)
    assert said["left_out"] == ["no-refunds"]
    shown = cell(said, "refund", 3)
    assert (shown["v"], shown["rules"][-1]["reason"]) == ("denied", "not today")
    assert "outlook" not in shown  # lookup was called, and it does not open


def test_a_policy_that_is_too_large_is_drawn_as_far_as_the_run_went(tmp_path: Path) -> None:
    names = ["lookup", "refund", "think"]
    large = [ConditionalRequirement(name, max_invocations=500) for name in names]
    script = [call("lookup", order=1), call("lookup", order=2), call("final_answer", answer="x")]
    graph = board_of(record(tmp_path / "t.jsonl", large, script))["graph"]
    assert "more than" in graph["note"]
    assert [(edge["from"], edge["to"], edge["calls"]) for edge in graph["edges"]] == [(0, 1, ["lookup"]), (1, 2, ["lookup"])]


def test_texts_are_kept_while_there_is_room() -> None:
    texts = Texts(5_000)
    assert texts.take("x" * 4_000) == "x" * 4_000
    assert texts.take("y" * 10_000) == {"cut": "y" * 2_000, "of": 10_000}
    assert texts.take("z" * 100) == "z" * 100
    assert texts.take_value({"a": [1]}) == '{\n "a": [\n  1\n ]\n}'


@pytest.mark.parametrize("modules", [FILE, SERVED])
def test_the_parts_of_the_script_are_put_together_as_they_import_each_other(modules: tuple[str, ...]) -> None:
    seen: set[str] = set()
    names: list[str] = []
    for module in modules:
        text = _asset(module)
        for line in text.splitlines():
            if line.startswith("import "):
                assert line.rpartition("./")[2].removesuffix('";') in seen, f"{module}: {line}"
            words = line.removeprefix("export ").removeprefix("async ").split()
            if words[:1] and words[0] in ("class", "function", "const", "let") and not line.startswith(" "):
                names.append(words[1].partition("(")[0])
        seen.add(module)
    assert sorted(names) == sorted(set(names))
    for served in (True, False):
        assert "import " not in page({}, title="x", served=served).partition('<script type="module">')[2]


@pytest.mark.parametrize("served", [True, False])
def test_the_policy_of_the_page_lets_nothing_in_and_nothing_out(served: bool) -> None:
    rules = dict(rule.split(" ", 1) for rule in content_policy(served=served).split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["connect-src"] == ("'self'" if served else "'none'")
    assert "unsafe" not in content_policy(served=served)

"""The examples of the two patterns: tools that are loaded when they are needed, and calls gated by their arguments."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from examples import argument_gate, loader
from maymust import Budget
from maymust.models import ScriptedModel, call


def _outcomes(result: Any) -> list[tuple[str, str]]:
    return [(step.tool, str(step.outcome)) for step in result.steps]


def test_the_loader_shows_a_few_of_a_thousand_tools(capsys: pytest.CaptureFixture[str]) -> None:
    result = loader.main()
    assert _outcomes(result) == [
        ("find_tools", "ok"),
        ("discount_part_042", "refused"),
        ("price_part_042", "ok"),
        ("discount_part_042", "ok"),
        ("final_answer", "ok"),
    ]
    assert [len(permit.tools) for permit in result.permits] == [2, 7, 7, 7, 7]
    assert "turn 1: 2 tools" in capsys.readouterr().out


def test_a_thousand_loaded_tools_cost_milliseconds_a_turn() -> None:
    # The whole catalogue in eights, then fifty turns among 1,001 tools.
    words = [f"{unit} part_{tens:02}" for tens in range(20) for unit in loader.UNITS]
    turns = [*(call("find_tools", words=word) for word in words), *(call("stock_part_000", call_id=f"s{n}") for n in range(50))]
    model = ScriptedModel([*turns, call("final_answer", answer="done")])
    agent = loader.make_agent(model)
    start = time.perf_counter()
    result = asyncio.run(agent.run("go", budget=Budget(turns=None)))
    seconds = time.perf_counter() - start
    assert result.stop_reason in ("final_answer", "stalled")
    assert len(result.permits[-1].tools) > 700
    # Generous, for slow machines: what grows with the square of the tools takes minutes here.
    assert seconds < 10


def test_the_gate_refuses_by_arguments_and_asks_about_the_large_ones(capsys: pytest.CaptureFixture[str]) -> None:
    argument_gate.FILES.clear()
    result = argument_gate.main()
    assert [outcome for _, outcome in _outcomes(result)] == ["refused", "refused", "ok", "denied", "ok"]
    assert argument_gate.FILES == {"/srv/reports/may.txt": "all is well"}
    assert "june" in capsys.readouterr().out

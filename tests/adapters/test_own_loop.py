"""The table through our own loop: what the adapters have to match."""

from __future__ import annotations

from typing import Any

import pytest

from maymust import Agent, RunResult, tool
from maymust.models import ScriptedModel, call
from tests.adapters.harness import Scenario, check, scenarios


def play(scenario: Scenario) -> str | None:
    @tool
    def think() -> str:
        """Think."""
        return scenario.execute("think")

    @tool
    def search(q: str) -> str:
        """Search."""
        return scenario.execute("search")

    @tool
    def refund(amount: float) -> str:
        """Refund."""
        return scenario.execute("refund")

    script: list[Any] = [
        turn if isinstance(turn, str) else [call(name, **arguments) for name, arguments in turn] for turn in scenario.turns()
    ]
    agent = Agent(ScriptedModel(script), tools=[think, search, refund], policy=scenario.built_policy())
    result: RunResult[Any] = agent.run_sync("Help me.")
    return None if result.stop_reason == "stalled" else result.answer


@pytest.mark.parametrize("row", scenarios())
def test_the_own_loop_executes_what_the_table_says(row: dict[str, Any]) -> None:
    check(row, play)

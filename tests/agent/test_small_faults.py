"""Faults found by trying to break the loop, one test each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest

from maymust import Agent, AskPermissionRequirement, History, Rule, RunError, RunState, RunView, ToolError, function_middleware, tool
from maymust.models import ScriptedModel, call


@tool
async def pay(amount: int = 1) -> str:
    """Pay."""
    return "paid"


@function_middleware
async def pass_on(context: Any, call_next: Any) -> None:
    await call_next()


@pytest.mark.parametrize("layers", [(), (pass_on,)], ids=["without middleware", "with middleware"])
def test_a_handler_that_raises_a_tool_error_stops_the_run(layers: tuple[Any, ...]) -> None:
    def handler(_: Any) -> bool:
        raise ToolError("nobody is at the desk")

    asking = AskPermissionRequirement("pay", handler=handler)
    agent = Agent(ScriptedModel([call("pay")]), tools=[pay], requirements=[asking], middleware=layers)
    with pytest.raises(RunError, match="nobody is at the desk") as caught:
        asyncio.run(agent.run("pay"))
    assert [str(step.outcome) for step in caught.value.state.steps] == ["refused"]


class Greeted:
    """A requirement that remembers what happened at the start."""

    name = "greeted"
    priority = 10
    enabled = True

    def on_start(self, run: RunView) -> None:
        run.memory["greeting"] = "hello"

    def rules(self, history: History, run: RunView) -> Iterable[Rule]:
        yield Rule("pay", allowed=run.memory.get("greeting") == "hello", reason="nobody said hello")


def test_what_is_remembered_at_the_start_is_there_when_rules_are_made() -> None:
    agent = Agent(ScriptedModel([call("pay"), call("final_answer", answer="done")]), tools=[pay], requirements=[Greeted()])
    result = asyncio.run(agent.run("pay"))
    assert [str(step.outcome) for step in result.steps] == ["ok", "ok"]


@pytest.mark.parametrize("change", [{"phase": "lunch"}, {"turns": []}])
def test_a_state_that_cannot_be_is_damaged(change: dict[str, Any]) -> None:
    agent = Agent(ScriptedModel([call("pay", call_id="p")]), tools=[pay], requirements=[AskPermissionRequirement("pay")])
    text = asyncio.run(agent.run("pay")).state.to_json()
    with pytest.raises(RunError, match="damaged"):
        RunState.from_json(json.dumps({**json.loads(text), **change}))

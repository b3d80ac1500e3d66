"""A call is judged by what custom rules said when it was admitted, also after its run was read from JSON."""

from __future__ import annotations

import asyncio

import pytest

from maymust import Agent, History, Rule, RunState, requirement, tool
from maymust.models import ScriptedModel, call


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def note() -> str:
    """Note."""
    return "noted"


@tool
def look() -> str:
    """Look."""
    return "seen"


@requirement(name="pays first", targets=["pay"], depends_on=["note"])
def pays_first(history: History) -> Rule:
    return Rule("pay", allowed=not history.seen("note"), ask=True, reason="not after a note")


@requirement(name="watches", targets=["look"], depends_on=["note"])
def watches(history: History) -> Rule:
    return Rule("look")


@pytest.mark.parametrize("stored", [False, True])
def test_a_later_call_does_not_close_the_one_that_waits_for_a_person(stored: bool) -> None:
    model = ScriptedModel([[call("pay", amount=1), call("note"), call("look")], "done"])
    agent = Agent(model, tools=[pay, note, look], requirements=[pays_first, watches])
    paused = agent.run_sync("go")
    assert [pending.tool for pending in paused.pending] == ["pay"]
    state = RunState.from_json(paused.state.to_json()) if stored else paused.state
    result = asyncio.run(agent.resume(state, {paused.pending[0].call_id: True}))
    assert [(step.tool, str(step.outcome)) for step in result.steps] == [("pay", "ok"), ("note", "ok"), ("look", "ok")]

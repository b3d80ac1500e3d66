"""`Agent(supervise=True)`: a call that would make what is owed impossible is held back."""

from __future__ import annotations

import asyncio

import pytest

from maymust import Agent, Budget, ConditionalRequirement, DeadEndError, tool
from maymust.models import ScriptedModel, call


@tool
async def lookup() -> str:
    """Look it up."""
    return "found"


@tool
async def refund() -> str:
    """Pay back."""
    return "paid"


RULES = [
    ConditionalRequirement("lookup", name="one-lookup", max_invocations=1),
    ConditionalRequirement("refund", name="refund-owed", min_invocations=1, only_before=["lookup"]),
]
SCRIPT = [call("lookup"), call("refund"), call("lookup"), call("final_answer", answer="done")]


def test_without_it_the_run_ends_in_a_dead_end() -> None:
    agent = Agent(ScriptedModel(SCRIPT), tools=[lookup, refund], requirements=RULES)
    with pytest.raises(DeadEndError):
        asyncio.run(agent.run("refund it"))


def test_with_it_the_call_is_refused_with_a_reason_and_the_run_ends_well() -> None:
    agent = Agent(ScriptedModel(SCRIPT), tools=[lookup, refund], requirements=RULES, supervise=True)
    result = asyncio.run(agent.run("refund it"))
    assert [(step.tool, str(step.outcome)) for step in result.steps] == [
        ("lookup", "refused"),
        ("refund", "ok"),
        ("lookup", "ok"),
        ("final_answer", "ok"),
    ]
    assert "refund" in (result.steps[0].text or "")


def test_turns_that_the_obligations_need_are_not_spent() -> None:
    model = ScriptedModel([call("lookup"), call("refund"), call("final_answer", answer="done")])
    rules = [ConditionalRequirement("refund", min_invocations=1)]
    agent = Agent(model, tools=[lookup, refund], requirements=rules, supervise=True, budget=Budget(turns=2))
    result = asyncio.run(agent.run("refund it"))
    assert [str(step.outcome) for step in result.steps] == ["refused", "ok"]


def test_a_supervised_run_is_resumed_under_the_same_policy() -> None:
    paused = Agent(
        ScriptedModel([call("refund", call_id="r"), call("final_answer", answer="done")]),
        tools=[lookup, tool(name="refund", approval_mode="always_require")(refund.function or refund)],
        requirements=RULES,
        supervise=True,
    )
    result = asyncio.run(paused.run("refund it"))
    assert result.stop_reason == "paused"
    assert asyncio.run(paused.resume(result.state, {"r": True})).answer == "done"

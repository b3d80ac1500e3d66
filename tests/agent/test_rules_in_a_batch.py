"""Every kind of rule holds inside a batch, whatever runs at the same time. Each of these was a hole once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from maymust import (
    Agent,
    AskPermissionRequirement,
    Budget,
    ConditionalRequirement,
    History,
    Rule,
    RunResult,
    function_middleware,
    requirement,
    tool,
)
from maymust.models import ScriptedModel, call


@tool
async def note(k: int = 0) -> str:
    """Note."""
    return "noted"


@tool
async def fetch(k: int = 0) -> str:
    """Fetch, which takes a few rounds."""
    for _ in range(6):
        await asyncio.sleep(0)
    return "fetched"


@tool
async def write(k: int = 0) -> str:
    """Write, which takes a round."""
    await asyncio.sleep(0)
    return "written"


@tool
async def look(k: int = 0) -> str:
    """Look."""
    return "seen"


DONE = call("final_answer", answer="done")


def _run(turns: list[Any], requirements: list[Any], **settings: Any) -> RunResult[Any]:
    agent: Agent[Any] = Agent(ScriptedModel([*turns, DONE]), tools=[note, fetch, write, look], requirements=requirements, **settings)
    return asyncio.run(agent.run("go"))


def _outcomes(result: RunResult[Any]) -> list[tuple[str, str]]:
    return [(step.tool, str(step.outcome.value)) for step in result.steps]


def _rule_after_note(**switches: Any) -> Any:
    @requirement(name="custom", targets=["note"], depends_on=["note"])
    def custom(history: History) -> list[Rule]:
        return [Rule("note", reason="noted already", **switches)] if history.seen("note") else []

    return custom


@pytest.mark.parametrize(
    "switches", [{"allowed": False}, {"hidden": True}, {"arguments": {"k": {"type": "integer", "minimum": 9}}}], ids=str
)
def test_a_custom_rule_closes_a_tool_beside_an_open_call(switches: dict[str, Any]) -> None:
    third = call("note") if "arguments" in switches else call("note", k="malformed")
    result = _run([[call("note"), call("fetch"), third]], [_rule_after_note(**switches)])
    assert _outcomes(result)[:3] == [("note", "ok"), ("fetch", "ok"), ("note", "refused")]


def test_a_custom_question_is_put_beside_an_open_call() -> None:
    result = _run([[call("note"), call("fetch"), call("note", call_id="asked")]], [_rule_after_note(ask=True)])
    assert result.stop_reason == "paused"
    assert [pending.call_id for pending in result.pending] == ["asked"]


def test_a_custom_force_withholds_beside_an_open_call() -> None:
    @requirement(name="custom", targets=["look"], depends_on=["note", "look"])
    def custom(history: History) -> list[Rule]:
        return [Rule("look", forced=True)] if history.seen("note") and not history.seen("look") else []

    result = _run([[call("fetch"), call("note"), call("write")], call("look")], [custom])
    assert _outcomes(result)[:3] == [("fetch", "ok"), ("note", "ok"), ("write", "refused")]


def test_a_custom_force_that_was_outranked_holds_when_the_other_is_over() -> None:
    @requirement(name="custom", targets=["look"], depends_on=["look"])
    def custom(history: History) -> list[Rule]:
        return [] if history.seen("look") else [Rule("look", forced=True)]

    first = ConditionalRequirement("write", force_at_step=1, priority=20)
    result = _run([[call("write"), call("write"), call("write")], call("look")], [first, custom])
    assert _outcomes(result)[:3] == [("write", "ok"), ("write", "refused"), ("write", "refused")]


def test_a_retry_is_judged_as_its_call_was() -> None:
    attempts = []

    @tool
    async def pay(k: int = 0) -> str:
        """Pay, at the second attempt."""
        attempts.append(k)
        for _ in range(6):
            await asyncio.sleep(0)
        if len(attempts) == 1:
            raise RuntimeError("no line")
        return "paid"

    @function_middleware
    async def retry(ctx: Any, call_next: Callable[[], Any]) -> None:
        try:
            await call_next()
        except RuntimeError:
            await call_next()

    @requirement(name="custom", targets=["pay"], depends_on=["write"])
    def custom(history: History) -> list[Rule]:
        return [Rule("pay", allowed=False)] if history.seen("write") else []

    turns: list[Any] = [[call("pay"), call("write"), call("pay")], DONE]
    agent: Agent[Any] = Agent(ScriptedModel(turns), tools=[pay, write], requirements=[custom], middleware=[retry])
    result = asyncio.run(agent.run("go"))
    assert _outcomes(result)[:3] == [("pay", "ok"), ("write", "ok"), ("pay", "refused")]
    assert len(attempts) == 2


@pytest.mark.parametrize("budget", [Budget(turns=1), Budget(turns=9, steps=0)], ids=["last turn", "turn beyond the budget"])
def test_a_second_answer_counts_after_a_malformed_one_in_a_turn_that_forces_the_answer(budget: Budget) -> None:
    force = ConditionalRequirement("write", force_at_step=2, only_success_invocations=False)
    result = _run([[call("final_answer", wrong=1), call("final_answer", answer="this one")]], [force], budget=budget)
    assert result.answer == "this one"


def test_a_no_that_is_remembered_stops_the_call_it_was_said_about() -> None:
    agent: Agent[Any] = Agent(
        ScriptedModel([call("write", call_id="w"), DONE]),
        tools=[write, note],
        requirements=[AskPermissionRequirement(["write"], remember_choices=True, hide_disallowed=True)],
    )
    paused = asyncio.run(agent.run("go"))
    result = asyncio.run(agent.resume(paused.state, {"w": False}))
    assert _outcomes(result)[:1] == [("write", "denied")]


def test_a_required_choice_is_released_by_a_success_in_the_same_batch() -> None:
    force = ConditionalRequirement("note", force_after=["write"])
    choice = {"mode": "required", "required_function_name": "write"}
    result = _run([[call("write"), call("write", k=1)], call("note")], [force], tool_choice=choice)
    assert _outcomes(result)[:2] == [("write", "ok"), ("write", "refused")]

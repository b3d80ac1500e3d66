"""What tools and middleware get of a call and its run is theirs to read: they change the call's arguments and its result, nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from maymust import Agent, ArgumentRequirement, FunctionInvocationContext, History, RunError, tool
from maymust.agent.lent_history import LentHistory
from maymust.agent.middleware import CallNext
from maymust.models import ScriptedModel, call


@tool
def find(name: str) -> list[dict[str, str]]:
    """Find orders."""
    return [{"id": "A1"}]


@tool
def meddle(ctx: FunctionInvocationContext) -> str:
    """Meddle with what was."""
    for step in (ctx.history[0], ctx.history[-1], *ctx.history, *ctx.history[:1], *ctx.history.at(1), *ctx.history.add("find")):
        if step.arguments is not None:
            step.arguments["name"] = "Eve"
            step.output[0]["id"] = "B2"
            step.output.append({"id": "B2"})
    return "meddled"


@tool
def refund(order: str) -> str:
    """Refund an order."""
    return f"refunded {order}"


@pytest.mark.parametrize("field", ["name", "function", "call_id", "raw_arguments", "idempotency_key"])
def test_middleware_that_sets_what_the_call_is_is_told_what_it_can_set(field: str) -> None:
    async def renames(context: FunctionInvocationContext, call_next: CallNext) -> None:
        setattr(context, field, "refund")
        await call_next()

    agent = Agent(ScriptedModel([call("find", name="Ada")]), tools=[find, refund], middleware=[renames])
    with pytest.raises(RunError) as caught:
        agent.run_sync("go")
    fault = caught.value.__cause__
    assert isinstance(fault, AttributeError)
    assert str(fault) == (
        f"{field} of the context of 'find' cannot be set: which call this is was judged before. "
        "Set ctx.arguments to change what the call is given, or ctx.result to change what the model reads"
    )


def test_middleware_may_keep_notes_of_its_own_in_the_context() -> None:
    async def outer(context: FunctionInvocationContext, call_next: CallNext) -> None:
        context.note = "seen"  # type: ignore[attr-defined]
        await call_next()

    async def inner(context: FunctionInvocationContext, call_next: CallNext) -> None:
        if context.name == "find":
            context.arguments = {"name": context.note}  # type: ignore[attr-defined]
        await call_next()

    result = Agent(ScriptedModel([call("find", name="Ada"), "Done."]), tools=[find], middleware=[outer, inner]).run_sync("go")
    assert result.steps[0].arguments == {"name": "seen"}


def test_a_tool_changes_nothing_of_earlier_steps_through_the_history_it_gets() -> None:
    rules = [ArgumentRequirement("refund", "order", from_output=("find", "$[*].id"))]
    turns: list[Any] = [call("find", name="Ada"), call("meddle"), call("refund", order="B2"), call("refund", order="A1"), "Done."]
    result = Agent(ScriptedModel(turns), tools=[find, meddle, refund], requirements=rules).run_sync("go")
    assert [str(step.outcome) for step in result.steps[:4]] == ["ok", "ok", "refused", "ok"]
    assert (result.steps[0].arguments, result.steps[0].output) == ({"name": "Ada"}, [{"id": "A1"}])


def test_a_lent_history_says_what_the_history_says() -> None:
    history = History().add("find", arguments={"name": "Ada"}, output=["A1"], call_id="c1", text="A1", untrusted=True)
    history = history.add("find", outcome="failed").add("refund")
    lent = LentHistory(history)
    assert lent == history
    assert history == lent
    assert list(lent) == list(history)
    assert (lent[0], lent[1:], len(lent), lent.last) == (history[0], history[1:], 3, "refund")
    assert (lent.count("find"), lent.count("find", failures=True)) == (1, 2)
    assert lent.at(1) == history.at(1)
    assert lent.add("find") == history.add("find")
    assert repr(lent) == repr(history)

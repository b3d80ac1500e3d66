"""Middleware that passes a call on in a task of its own: the step is still what became of the body, and nothing runs after it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from maymust import Agent, RunError, tool
from maymust.agent.middleware import CallNext
from maymust.models import ScriptedModel, call
from maymust.tools.context import FunctionInvocationContext

DID: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_yet() -> None:
    DID.clear()


@tool
async def work() -> str:
    """Work."""
    DID.append("started")
    await asyncio.sleep(0.01)
    DID.append("done")
    return "worked"


def agent(middleware: Any, *turns: Any) -> Agent:
    return Agent(ScriptedModel(list(turns) or [call("work"), call("final_answer", answer="x")]), tools=[work], middleware=[middleware])


def test_a_call_that_was_not_awaited_is_waited_for() -> None:
    tasks: list[asyncio.Future[None]] = []

    async def forgets(context: FunctionInvocationContext, call_next: CallNext) -> None:
        tasks.append(asyncio.ensure_future(call_next()))
        await asyncio.sleep(0)

    result = agent(forgets).run_sync("go")
    assert (result.steps[0].tool, str(result.steps[0].outcome), result.steps[0].text) == ("work", "ok", "worked")
    assert DID == ["started", "done"]


def test_a_call_that_is_passed_on_after_its_result_does_not_run() -> None:
    late: list[asyncio.Future[None]] = []

    async def too_late(context: FunctionInvocationContext, call_next: CallNext) -> None:
        if context.name == "work":
            late.append(asyncio.ensure_future(call_next()))
        else:
            await call_next()

    async def go() -> None:
        result = await agent(too_late).run("go")
        assert str(result.steps[0].outcome) == "refused"
        with pytest.raises(RunError, match="after it had returned; nothing was run"):
            await late[0]

    asyncio.run(go())
    assert DID == []


def test_a_call_left_behind_by_an_error_is_stopped_with_it() -> None:
    async def breaks(context: FunctionInvocationContext, call_next: CallNext) -> None:
        task = asyncio.ensure_future(call_next())
        await asyncio.sleep(0)
        assert not task.done()
        raise ValueError("no")

    async def go() -> list[asyncio.Task[Any]]:
        with pytest.raises(RunError, match="ValueError: no"):
            await agent(breaks).run("go")
        await asyncio.sleep(0.03)
        return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert asyncio.run(go()) == []
    assert DID == ["started"]


def test_a_time_limit_around_the_call_still_works() -> None:
    async def limits(context: FunctionInvocationContext, call_next: CallNext) -> None:
        try:
            await asyncio.wait_for(call_next(), 0.001 if context.name == "work" else None)
        except TimeoutError:
            context.result = "too slow"

    result = agent(limits).run_sync("go")
    assert (str(result.steps[0].outcome), result.steps[0].text) == ("failed", "too slow")
    assert DID == ["started"]


def test_a_call_that_took_too_long_may_be_tried_again() -> None:
    async def tries_again(context: FunctionInvocationContext, call_next: CallNext) -> None:
        try:
            await asyncio.wait_for(call_next(), 0.001 if context.name == "work" else None)
        except TimeoutError:
            await call_next()

    result = agent(tries_again).run_sync("go")
    assert (str(result.steps[0].outcome), result.steps[0].text) == ("ok", "worked")
    assert DID == ["started", "started", "done"]

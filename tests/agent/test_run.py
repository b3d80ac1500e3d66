"""`Run`: awaited, iterated, cancelled, listened to, answered by listeners, and run without an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from maymust import Agent, AskPermissionRequirement, Budget, FunctionInvocationContext, PolicyError, Run, RunError, tool
from maymust.events import (
    CallFinished,
    CallStarted,
    ModelCallFinished,
    ModelCallStarted,
    RunEvent,
    RunFinished,
    RunPaused,
    RunStarted,
    TextDelta,
    TurnStarted,
)
from maymust.models import ModelReply, ScriptedModel, call, reply


@tool
async def search(q: str) -> str:
    """Search."""
    return f"found {q}"


DONE = call("final_answer", answer="done")


def _agent(turns: list[Any] | None = None, **settings: Any) -> Agent:
    return Agent(ScriptedModel([call("search", q="a"), DONE] if turns is None else turns), tools=[search], **settings)


class Slow:
    """A model that takes its time."""

    name = "slow"
    capabilities = ScriptedModel([]).capabilities

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def complete(self, request: Any) -> ModelReply:
        self.asked.set()
        await asyncio.sleep(30)
        return ModelReply("late")

    async def stream(self, request: Any) -> Any:
        yield await self.complete(request)


# --- awaiting and iterating ---


def test_a_run_may_be_awaited_any_number_of_times() -> None:
    async def scenario() -> None:
        run = _agent().start("go")
        first, second = await asyncio.gather(_wait(run), _wait(run))
        assert first is second is await run

    asyncio.run(scenario())


async def _wait(run: Run) -> Any:
    return await run


def test_the_events_tell_the_run_in_order() -> None:
    async def scenario() -> None:
        agent = _agent()
        run = agent.stream("go")
        events = [event async for event in run]
        kinds = [type(event).__name__ for event in events if type(event).__name__ not in ("ArgumentsDelta", "AnswerDelta")]
        turn = ["TurnStarted", "ModelCallStarted", "ModelCallFinished"]
        done = ["CallAdmitted", "CallFinished", "AnswerCommitted", "RunFinished"]
        assert kinds == ["RunStarted", *turn, "CallAdmitted", "CallStarted", "CallFinished", *turn, *done]
        permits = [event.permit for event in events if isinstance(event, TurnStarted)]
        result = await run
        assert tuple(permits) == result.permits
        assert run.done
        assert result.answer == "done"

    asyncio.run(scenario())


def test_iterating_over_a_run_that_is_over_gives_nothing() -> None:
    async def scenario() -> None:
        run = _agent().start("go")
        await run
        assert [event async for event in run] == []

    asyncio.run(scenario())


def test_two_may_iterate_over_one_run() -> None:
    async def scenario() -> None:
        run = _agent().start("go")

        async def read(events: AsyncIterator[RunEvent]) -> list[RunEvent]:
            return [event async for event in events]

        first, second = await asyncio.gather(read(aiter(run)), read(aiter(run)))
        assert first == second
        assert isinstance(first[0], RunStarted)

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", [RunStarted, TurnStarted, TextDelta, ModelCallFinished, CallStarted])
def test_leaving_the_iteration_cancels_the_run_right_there(kind: type[RunEvent]) -> None:
    async def scenario() -> None:
        agent = _agent([reply("Let me see.", call("search", q="a")), call("search", q="b"), DONE])
        run = agent.stream("go")
        async for event in run:
            if isinstance(event, kind):
                break
        result = await run
        assert result.stop_reason == "aborted"
        assert len(result.turns) < 2
        made = [one.call_id for message in result.messages for one in message.calls]
        assert [step.call_id for step in result.steps] == made

    asyncio.run(scenario())


def test_leaving_at_the_end_does_no_harm() -> None:
    async def scenario() -> None:
        run = _agent().stream("go")
        async for event in run:
            if isinstance(event, RunFinished):
                break
        assert (await run).answer == "done"

    asyncio.run(scenario())


def test_whoever_awaits_the_run_does_not_wait_for_whoever_iterates() -> None:
    async def scenario() -> None:
        run = _agent().stream("go")
        events = aiter(run)
        assert isinstance(await anext(events), RunStarted)
        assert (await run).answer == "done"
        # What came is still there.
        assert [event async for event in events][-1] == RunFinished(run.id, "final_answer", "done")

    asyncio.run(scenario())


def test_an_error_is_raised_to_whoever_iterates_and_to_whoever_awaits() -> None:
    async def scenario() -> None:
        run = _agent([call("search", q="a")]).stream("go")
        events: list[RunEvent] = []

        async def read() -> None:
            async for event in run:
                events.append(event)  # noqa: PERF401  the iteration raises

        with pytest.raises(RunError, match="script"):
            await read()
        assert isinstance(events[-1], RunFinished)
        assert events[-1].stop_reason == "error"
        with pytest.raises(RunError, match="script") as caught:
            await run
        assert caught.value.state is run.state

    asyncio.run(scenario())


# --- cancelling ---


def test_cancelled_before_it_began() -> None:
    async def scenario() -> None:
        agent = _agent([])
        run = agent.start("go")
        finished: list[RunFinished] = []
        run.on(RunFinished, finished.append)
        run.cancel()
        events = [event async for event in run]
        result = await run
        assert result.stop_reason == run.state.stop_reason == "aborted"
        assert not result.turns
        assert [event.stop_reason for event in finished] == ["aborted"]
        assert events == finished
        with pytest.raises(RunError, match="over"):
            run.send("hello")

    asyncio.run(scenario())


def test_cancelled_while_the_model_is_asked() -> None:
    async def scenario() -> None:
        model = Slow()
        run = Agent(model).start("go")
        await model.asked.wait()
        run.cancel()
        result = await run
        assert (result.stop_reason, len(result.turns)) == ("aborted", 0)

    asyncio.run(scenario())


def test_cancelled_while_a_tool_runs() -> None:
    async def scenario() -> None:
        started = asyncio.Event()

        @tool
        async def slow() -> None:
            """Sleep."""
            started.set()
            await asyncio.sleep(30)

        run = Agent(ScriptedModel([call("slow"), DONE]), tools=[slow]).start("go")
        await started.wait()
        run.cancel()
        result = await run
        assert result.stop_reason == "aborted"
        assert [str(step.outcome) for step in result.steps] == ["failed"]

    asyncio.run(scenario())


def test_cancelling_after_the_end_changes_nothing() -> None:
    async def scenario() -> None:
        for turns, reason in (([DONE], "final_answer"), ([call("search", q="a")], "paused")):
            run = _agent(turns, requirements=[AskPermissionRequirement()]).start("go")
            await run
            run.cancel()
            assert (await run).stop_reason == reason

    asyncio.run(scenario())


def test_cancelling_from_another_thread() -> None:
    async def scenario() -> None:
        model = Slow()
        run = Agent(model).start("go")
        await model.asked.wait()
        thread = threading.Thread(target=run.cancel)
        thread.start()
        assert (await asyncio.wait_for(_wait(run), 5)).stop_reason == "aborted"
        thread.join()

    asyncio.run(scenario())


# --- listening ---


def test_observers_that_raise_are_logged_and_stop_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        run = _agent().start("go")
        heard: list[RunEvent] = []

        def raises(event: RunEvent) -> None:
            raise RuntimeError("sync")

        async def raises_later(event: RunEvent) -> None:
            await asyncio.sleep(0)
            raise RuntimeError("async")

        run.on(RunEvent, raises).on(RunEvent, raises_later).on(RunEvent, heard.append)
        assert (await run).answer == "done"
        assert isinstance(heard[-1], RunFinished)

    with caplog.at_level(logging.ERROR, logger="maymust"):
        asyncio.run(scenario())
    said = {str(record.exc_info[1]) for record in caplog.records if record.exc_info}
    assert said == {"sync", "async"}


def test_a_listener_hears_the_kinds_it_asked_for_only() -> None:
    async def scenario() -> None:
        run = _agent().start("go")
        heard: list[RunEvent] = []
        run.on(CallFinished, heard.append)
        await run
        assert [type(event) for event in heard] == [CallFinished, CallFinished]

    asyncio.run(scenario())


def test_async_observers_have_finished_when_the_run_is_over() -> None:
    async def scenario() -> None:
        heard: list[str] = []

        async def slow(event: RunFinished) -> None:
            await asyncio.sleep(0.01)
            heard.append(event.stop_reason)

        await _agent().start("go").on(RunFinished, slow)
        assert heard == ["final_answer"]

    asyncio.run(scenario())


def test_what_cannot_be_listened_to_is_an_error() -> None:
    async def scenario() -> None:
        run = _agent().start("go")
        wrong: Any = "RunFinished"
        with pytest.raises(PolicyError, match=r"maymust\.events"):
            run.on(wrong, print)
        with pytest.raises(PolicyError, match="CallStarted, ModelCallStarted"):
            run.on(RunFinished, print, blocking=True)
        with pytest.raises(PolicyError, match="a listener is a function"):
            run.on(RunFinished, wrong)
        await run

    asyncio.run(scenario())


# --- blocking listeners ---


def _with(handler: Any, kind: Any, agent: Agent | None = None) -> Any:
    async def scenario() -> Any:
        run = (agent or _agent()).start("go")
        run.on(kind, handler, blocking=True)
        return await run

    return asyncio.run(scenario())


def test_a_blocking_listener_may_answer_a_call() -> None:
    def answer(event: CallStarted) -> None:
        event.output = {"cached": event.arguments["q"]}

    step = _with(answer, CallStarted).steps[0]
    assert (str(step.outcome), step.output) == ("ok", {"cached": "a"})


def test_a_blocking_listener_may_refuse_a_call() -> None:
    async def refuse(event: CallStarted) -> None:
        await asyncio.sleep(0)
        event.refuse("not today")

    step = _with(refuse, CallStarted).steps[0]
    assert (str(step.outcome), step.text) == ("refused", "not today")


@pytest.mark.parametrize("kind", [CallStarted, ModelCallStarted])
def test_a_blocking_listener_that_raises_fails_closed(kind: Any) -> None:
    ran: list[str] = []

    @tool
    async def act() -> None:
        """Act."""
        ran.append("act")

    def raises(event: Any) -> None:
        raise OSError("no line")

    agent = Agent(ScriptedModel([call("act"), DONE]), tools=[act])
    with pytest.raises(RunError, match="no line") as caught:
        _with(raises, kind, agent)
    assert ran == []
    state = caught.value.state
    assert [str(step.outcome) for step in state.steps] == ["refused"] * (kind is CallStarted)
    assert isinstance(agent.model, ScriptedModel)
    assert len(agent.model.requests) == (kind is CallStarted)


@pytest.mark.parametrize("answer", ["A text.", ModelReply("A text.")])
def test_a_blocking_listener_may_answer_for_the_model(answer: Any) -> None:
    def say(event: ModelCallStarted) -> None:
        assert event.request.tools
        event.output = answer

    agent = _agent([])
    result = _with(say, ModelCallStarted, agent)
    assert (result.answer, result.stop_reason) == ("A text.", "text_answer")


def test_a_blocking_listener_may_refuse_a_model_call() -> None:
    with pytest.raises(RunError, match="turn 1 was refused: no money"):
        _with(lambda event: event.refuse("no money"), ModelCallStarted)


# --- without an event loop, and inside one ---


def test_run_sync_outside_and_inside_a_running_loop() -> None:
    assert _agent().run_sync("go").answer == "done"

    async def inside() -> Any:
        return _agent().run_sync("go")

    assert asyncio.run(inside()).answer == "done"


def test_run_sync_raises_what_the_run_raises() -> None:
    async def inside() -> None:
        _agent([]).run_sync("go")

    for attempt in (lambda: _agent([]).run_sync("go"), lambda: asyncio.run(inside())):
        with pytest.raises(RunError, match="script"):
            attempt()


def test_run_sync_sees_the_callers_context() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

    @tool
    async def who() -> str:
        """Tell who is there."""
        return user.get()

    def run() -> Any:
        return Agent(ScriptedModel([call("who"), DONE]), tools=[who]).run_sync("go").steps[0].text

    async def inside() -> Any:
        return run()

    user.set("ada")
    assert (run(), asyncio.run(inside())) == ("ada", "ada")


def test_runs_are_awaitables_like_others() -> None:
    async def scenario() -> None:
        first, second = await asyncio.gather(_agent().start("go"), _agent().start("go"))
        third = await asyncio.wait_for(_agent().start("go"), 5)
        assert {result.answer for result in (first, second, third)} == {"done"}
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Agent(Slow()).start("go"), 0.02)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())


def test_resume_sync() -> None:
    agent = _agent(requirements=[AskPermissionRequirement()])
    state = agent.run_sync("go").state
    assert agent.resume_sync(state, {"c1": True}).answer == "done"


def test_a_run_needs_an_event_loop_to_start() -> None:
    with pytest.raises(RuntimeError):
        _agent().start("go")


# --- time ---


def test_the_budget_of_seconds_leaves_out_pauses() -> None:
    @tool
    async def work() -> str:
        """Work for a while."""
        await asyncio.sleep(0.02)
        return "worked"

    agent = Agent(
        ScriptedModel([call("work"), call("work"), DONE]),
        tools=[work],
        requirements=[AskPermissionRequirement()],
        budget=Budget(seconds=60),
    )
    began = time.monotonic()
    state = agent.run_sync("go").state
    paused_at = time.monotonic()
    time.sleep(0.3)
    resumed_at = time.monotonic()
    second = agent.resume_sync(state, {"c1": True})
    # However long the work takes here, the pause is no part of it.
    worked = time.monotonic() - resumed_at + paused_at - began
    assert second.stop_reason == "paused"
    assert 0.02 <= second.state.seconds <= worked
    third = agent.resume_sync(second.state, {"c2": True})
    assert third.answer == "done"
    assert not third.turns[-1].grace


def test_the_budget_of_seconds_ends_a_run_that_takes_too_long() -> None:
    @tool
    async def work() -> str:
        """Work for longer than there is time."""
        await asyncio.sleep(0.06)
        return "worked"

    agent = Agent(ScriptedModel([call("work"), DONE]), tools=[work], budget=Budget(seconds=0.05))
    result = agent.run_sync("go")
    assert result.answer == "done"
    assert [turn.grace for turn in result.turns] == [False, True]


def test_a_paused_run_tells_so_and_its_contexts_are_closed() -> None:
    kept: list[FunctionInvocationContext] = []

    @tool
    async def keep(context: FunctionInvocationContext) -> None:
        """Keep the context."""
        kept.append(context)

    async def scenario() -> None:
        agent = Agent(
            ScriptedModel([[call("keep"), call("search", q="a")]]),
            tools=[keep, search],
            requirements=[AskPermissionRequirement(["search"])],
        )
        run = agent.start("go")
        paused: list[RunPaused] = []
        run.on(RunPaused, paused.append)
        assert (await run).stop_reason == "paused"
        assert [one.call_id for one in paused[0].pending] == ["c2"]
        assert run.done

    asyncio.run(scenario())
    with pytest.raises(RuntimeError):
        kept[0].add_tools(search)

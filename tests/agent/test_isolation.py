"""One agent serves any number of runs: none sees anything of another, and nothing is kept when they are over."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from maymust import (
    Agent,
    AskPermissionRequirement,
    ConditionalRequirement,
    Decision,
    FunctionInvocationContext,
    History,
    PolicyError,
    RunView,
    requirement,
    tool,
)
from maymust.events import RunEvent
from maymust.models import Capabilities, ScriptedModel, call

RUNS = 1000


@dataclass(eq=False)
class Deps:
    """What belongs to one run."""

    mark: str
    seen: list[str] = field(default_factory=list)


class MarkedModel:
    """A peer without a memory: what it says follows from the conversation it is shown."""

    name = "marked"
    capabilities = Capabilities()

    async def complete(self, request: Any) -> Any:
        """Look, load, fetch what was loaded, and answer with what the tools said."""
        mark = next(message.text for message in request.messages if message.role == "user")
        results = [message.text for message in request.messages if message.role == "tool"]
        await asyncio.sleep(0)
        turns: list[Any] = [
            [call("look", mark=mark), call("load")],
            [call(f"fetch_{mark}") if int(mark) % 2 else call("look", mark=mark), call("asked")],
            call("final_answer", answer=f"{mark}: {' '.join(results)}"),
        ]
        done = sum(message.role == "assistant" for message in request.messages)
        return await ScriptedModel([turns[done]]).complete(request)

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        """The same in one piece."""
        yield await self.complete(request)


@tool
async def look(context: FunctionInvocationContext, mark: str) -> str:
    """Look around."""
    context.deps.seen.append(mark)
    await asyncio.sleep(0)
    return f"{mark}/{context.deps.mark}"


@tool
async def load(context: FunctionInvocationContext) -> str:
    """Load a tool that only this run has."""
    mark = context.deps.mark

    async def fetch() -> str:
        return f"fetched by {mark}"

    context.add_tools(tool(name=f"fetch_{mark}")(fetch))
    await asyncio.sleep(0)
    return f"loaded {mark}"


@tool
async def asked() -> str:
    """Is asked about."""
    return "asked"


async def _yes(pending: Any) -> Decision:
    await asyncio.sleep(0)
    return Decision(allow=True)


def _agent() -> Agent[str]:
    return Agent(
        MarkedModel(),
        tools=[look, load, asked],
        requirements=[
            ConditionalRequirement("look", max_invocations=2),
            ConditionalRequirement("asked", only_after=["look"]),
            AskPermissionRequirement(["asked"], handler=_yes, remember_choices=True),
        ],
    )


async def _one(agent: Agent[str], mark: str) -> Deps:
    deps = Deps(mark)
    events: list[RunEvent] = []
    run = agent.start(mark, deps=deps, metadata={"mark": mark})
    run.on(RunEvent, events.append)
    result = await run
    assert result.answer is not None, result.stop_reason
    assert result.answer.startswith(f"{mark}: {mark}/{mark} loaded {mark} ")
    assert f"fetched by {mark}" in result.answer or int(mark) % 2 == 0
    assert set(deps.seen) == {mark}
    assert {event.run_id for event in events} == {run.id}
    names = {name for permit in result.permits for name in permit.tools}
    assert names == {"look", "load", "asked", f"fetch_{mark}", "final_answer"}
    return deps


def test_a_thousand_runs_at_once_do_not_see_each_other() -> None:
    async def scenario() -> None:
        agent = _agent()
        await asyncio.gather(*(_one(agent, str(number)) for number in range(RUNS)))
        assert [item.name for item in agent.tools] == ["look", "load", "asked"]

    asyncio.run(scenario())


def test_nothing_of_a_run_is_kept_when_it_is_over() -> None:
    async def scenario() -> list[weakref.ref[Any]]:
        agent = _agent()
        kept: list[weakref.ref[Any]] = []
        for number in range(20):
            deps = Deps(str(number))
            run = agent.start(deps.mark, deps=deps)
            result = await run
            kept += [weakref.ref(thing) for thing in (deps, run, result, result.state)]
            del deps, run, result
        await asyncio.sleep(0)
        gc.collect()
        assert agent is not None
        return [thing for thing in kept if thing() is not None]

    assert not asyncio.run(scenario())


def test_nothing_of_a_broken_run_is_kept_either() -> None:
    class Broken(MarkedModel):
        async def complete(self, request: Any) -> Any:
            raise OSError("no line")

    async def scenario() -> list[weakref.ref[Any]]:
        agent: Agent[str] = Agent(Broken(), tools=[look])
        kept: list[weakref.ref[Any]] = []
        for _ in range(5):
            deps = Deps("1")
            run = agent.start("1", deps=deps)
            kept += [weakref.ref(deps), weakref.ref(run), weakref.ref(run.state)]
            try:
                await run
            except Exception as error:
                kept.append(weakref.ref(error))
            del deps, run
        # The last task's callbacks are still to come.
        await asyncio.sleep(0)
        gc.collect()
        assert agent is not None
        return [thing for thing in kept if thing() is not None]

    assert not asyncio.run(scenario())


def test_memory_is_back_where_it_was_after_many_runs() -> None:
    async def some(agent: Agent[str], number: int) -> None:
        await asyncio.gather(*(_one(agent, str(mark)) for mark in range(number)))

    async def scenario() -> int:
        agent = _agent()
        await some(agent, 300)
        gc.collect()
        before = len(gc.get_objects())
        await some(agent, 300)
        gc.collect()
        return len(gc.get_objects()) - before

    assert asyncio.run(scenario()) < 300


def test_two_agents_that_share_a_model_stream_only_their_own_events() -> None:
    async def collect(agent: Agent[str], mark: str) -> tuple[str, set[str], list[str]]:
        run = agent.stream(mark, deps=Deps(mark))
        events = [event async for event in run]
        return run.id, {event.run_id for event in events}, [getattr(event, "text", "") for event in events]

    async def scenario() -> None:
        model = MarkedModel()
        first: Agent[str] = Agent(model, tools=[look, load, asked])
        second: Agent[str] = Agent(model, tools=[look, load, asked])
        (one, seen_one, texts_one), (two, seen_two, texts_two) = await asyncio.gather(collect(first, "1"), collect(second, "3"))
        assert (seen_one, seen_two) == ({one}, {two})
        assert not any("3/3" in text for text in texts_one)
        assert not any("1/1" in text for text in texts_two)

    asyncio.run(scenario())


def test_metadata_is_read_by_tools_and_rules_and_changed_by_neither() -> None:
    @tool
    async def note(context: FunctionInvocationContext) -> list[str]:
        """Note."""
        context.metadata["seen"] = object()  # type: ignore[index]
        context.metadata["tags"].append("more")
        return list(context.metadata["tags"])

    model = ScriptedModel([call("note"), call("final_answer", answer="done")])
    result = Agent(model, tools=[note]).run_sync("go", metadata={"tags": ["one"]})
    assert result.steps[0].output == ["one"]
    assert result.state.metadata == {"tags": ["one"]}
    assert result.state.to_json()

    @requirement(targets=["note"])
    def writes(history: History, run: RunView) -> None:
        run.metadata["seen"] = True  # type: ignore[index]

    with pytest.raises(PolicyError, match=r"writes.* raised TypeError"):
        Agent(ScriptedModel([]), tools=[note], requirements=[writes]).run_sync("go", metadata={"tags": []})

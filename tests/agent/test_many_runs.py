"""A thousand runs at once in one process, with children, loaded tools, pauses and streams: no cross-talk, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from maymust import Agent, AskPermissionRequirement, ConditionalRequirement, FunctionInvocationContext, RunState, tool
from maymust.events import AnswerDelta
from maymust.models import Capabilities, ScriptedModel, call, reply

RUNS = 1000


class Follower:
    """A model without a memory: what it says follows from the conversation it is shown."""

    name = "follower"
    capabilities = Capabilities()

    def __init__(self, turns: Any) -> None:
        self._turns = turns

    async def complete(self, request: Any) -> Any:
        """The turn whose number is that of the replies so far, for the mark in the first message."""
        mark = next(message.text for message in request.messages if message.role == "user")
        done = sum(message.role == "assistant" for message in request.messages)
        results = [message.text for message in request.messages if message.role == "tool"]
        await asyncio.sleep(0)
        return await ScriptedModel([self._turns(mark, results)[done]]).complete(request)

    async def stream(self, request: Any) -> Any:
        """The same in pieces."""
        async for item in ScriptedModel([reply(*await self._pieces(request))]).stream(request):
            await asyncio.sleep(0)
            yield item

    async def _pieces(self, request: Any) -> Any:
        whole = await self.complete(request)
        return [call(one.name, call_id=one.call_id, raw_arguments=one.raw_arguments) for one in whole.calls]


@tool
async def pay(context: FunctionInvocationContext, mark: str) -> str:
    """Pay."""
    await asyncio.sleep(0)
    return f"paid {mark} for {context.deps}"


@tool
async def load(context: FunctionInvocationContext) -> str:
    """Load a tool that only this run has."""
    mark = context.deps

    async def fetch() -> str:
        return f"fetched {mark}"

    context.add_tools(tool(name=f"fetch_{mark}")(fetch))
    return f"loaded {mark}"


def _agents() -> Agent:
    def child_turns(mark: str, results: list[str]) -> list[Any]:
        return [call("pay", call_id="p", mark=mark), call("final_answer", call_id="e", answer=f"{mark}: {' '.join(results)}")]

    def turns(mark: str, results: list[str]) -> list[Any]:
        return [
            [call("cashier", call_id="a", task=mark), call("load", call_id="b")],
            call(f"fetch_{mark}", call_id="c"),
            call("final_answer", call_id="d", answer=f"{mark}; {'; '.join(results)}"),
        ]

    child = Agent(Follower(child_turns), name="cashier", description="Pays.", tools=[pay], requirements=[AskPermissionRequirement(["pay"])])
    rules = [ConditionalRequirement("cashier", max_invocations=1), ConditionalRequirement("final_answer", only_after=["load"])]
    return Agent(Follower(turns), tools=[child.as_tool(), load], requirements=rules)


async def _one(agent: Agent, mark: str) -> None:
    # Every third run streams, and every second goes through its text when it pauses.
    pieces: list[str] = []
    run = agent.start(mark, deps=mark)
    if int(mark) % 3 == 0:
        run.on(AnswerDelta, lambda event: pieces.append(event.text))
    paused = await run
    assert [one.call_id for one in paused.pending] == ["a/p"]
    assert paused.pending[0].arguments == {"mark": mark}
    state = paused.state
    if int(mark) % 2:
        loaded = list(state.arriving.values())
        state = RunState.from_json(state.to_json())
        again = agent.start_resume(state, {"a/p": True}, deps=mark, tools=loaded)
    else:
        again = agent.start_resume(state, {"a/p": True}, deps=mark)
    if int(mark) % 3 == 0:
        again.on(AnswerDelta, lambda event: pieces.append(event.text))
    result = await again
    expected = f"{mark}; {mark}: paid {mark} for {mark}; loaded {mark}; fetched {mark}"
    assert result.answer == expected
    if int(mark) % 3 == 0:
        assert "".join(pieces) == expected
    names = {name for permit in result.permits for name in permit.tools}
    assert names == {"cashier", "load", f"fetch_{mark}", "final_answer"}


async def _many(agent: Agent, marks: range) -> None:
    await asyncio.gather(*(_one(agent, str(mark)) for mark in marks))


def test_a_thousand_runs_at_once_have_nothing_to_do_with_each_other() -> None:
    agent = _agents()
    asyncio.run(_many(agent, range(RUNS)))
    assert [item.name for item in agent.tools] == ["cashier", "load"]


def test_nothing_is_left_of_them_when_they_are_over() -> None:
    async def scenario() -> int:
        agent = _agents()
        # The caches of the policy, which are bounded, fill up in the first round.
        await _many(agent, range(150))
        gc.collect()
        before = len(gc.get_objects())
        await _many(agent, range(150, 300))
        gc.collect()
        return len(gc.get_objects()) - before

    assert asyncio.run(scenario()) < 1000

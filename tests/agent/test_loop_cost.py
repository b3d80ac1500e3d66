"""The loop's own work per step is flat: counted as calls of functions, never timed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from types import FrameType
from typing import Any

import pytest

from maymust import Agent, Budget, ConditionalRequirement, tool
from maymust.models import ScriptedModel, call
from maymust.models.capabilities import Capabilities
from maymust.models.chat_model import ModelDelta, ModelReply, ModelRequest
from maymust.models.message import ToolCall


class Metronome:
    """A model without latency that calls `search` with ever new arguments, then answers. It tells when a turn begins."""

    name = "metronome"
    capabilities = Capabilities()

    def __init__(self, steps: int, begins: Callable[[int], None]) -> None:
        self._steps, self._begins, self._turn = steps, begins, 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        self._turn += 1
        self._begins(self._turn)
        if self._turn > self._steps:
            return ModelReply(calls=(ToolCall("last", "final_answer", '{"answer": "done"}'),))
        return ModelReply(calls=(ToolCall(f"c{self._turn}", "search", f'{{"q": "{self._turn}"}}'),))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        yield await self.complete(request)


@tool
async def search(q: str) -> str:
    """Search."""
    return "nothing"


@tool
async def think(thought: str) -> str:
    """Think."""
    return "thought"


def calls_of_a_batch(size: int) -> int:
    """How many functions are called in a run whose only batch has so many calls, a quarter of them over the limit."""
    count = 0

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    batch = [call("search", q=str(number)) for number in range(size)]
    limit = ConditionalRequirement("search", max_invocations=size * 3 // 4)
    agent = Agent(ScriptedModel([batch, call("final_answer", answer="done")]), tools=[search], requirements=[limit])

    async def run() -> int:
        sys.setprofile(watch)
        try:
            result = await agent.run("go")
        finally:
            sys.setprofile(None)
        return sum(step.outcome == "ok" for step in result.steps)

    assert asyncio.run(run()) == size * 3 // 4 + 1
    return count


def calls_between(first: int, last: int) -> int:
    """How many functions are called from turn `first` to turn `last` of one run."""
    count = 0

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    def begins(turn: int) -> None:
        if turn == first:
            sys.setprofile(watch)
        elif turn == last:
            sys.setprofile(None)

    requirements = [ConditionalRequirement("search", max_invocations=10**6), ConditionalRequirement("think", max_invocations=3)]
    agent = Agent(Metronome(last, begins), tools=[search, think], requirements=requirements, budget=Budget(turns=None))
    before = sys.getprofile()
    try:
        result = asyncio.run(agent.run("go"))
    finally:
        sys.setprofile(before)
    assert len(result.steps) == last + 1
    return count


@pytest.mark.parametrize("late", [200, 2_000])
def test_a_late_step_takes_as_many_calls_as_an_early_one(late: int) -> None:
    early = calls_between(20, 40) / 20
    assert calls_between(late, late + 20) / 20 == pytest.approx(early, rel=0.02)


def test_a_step_stays_within_its_allowance_of_calls() -> None:
    assert calls_between(20, 120) / 100 <= 300


def test_a_batch_of_twice_as_many_calls_takes_at_most_four_times_the_work() -> None:
    assert calls_of_a_batch(160) <= 4 * calls_of_a_batch(80)

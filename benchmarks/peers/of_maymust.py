"""maymust itself."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from benchmarks.peers.brain import Brain, Reply, Stuck
from benchmarks.peers.world import World
from pydantic import TypeAdapter

from maymust import (
    Agent,
    AskPermissionRequirement,
    Budget,
    ConditionalRequirement,
    History,
    MaymustError,
    Policy,
    Rule,
    requirement,
    tool,
)
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.models import Capabilities
from maymust.models.chat_model import ModelDelta, ModelReply, ModelRequest
from maymust.models.message import ToolCall

DOCS = "https://github.com/maymust/maymust"
IDIOMS = {
    "order": "ConditionalRequirement(only_after=…)",
    "limit": "ConditionalRequirement(max_invocations=2)",
    "spacing": "ConditionalRequirement(consecutive_allowed=False)",
    "approval": "AskPermissionRequirement",
    "bounds": "Rule(arguments=…)",
    "first": "ConditionalRequirement(force_at_step=1)",
    "answer": 'ConditionalRequirement("final_answer", only_after=…)',
}


class Model:
    """Asks the brain."""

    name = "brain"
    capabilities = Capabilities()

    def __init__(self, brain: Brain, yields: Callable[[], Awaitable[None]] | None = None) -> None:
        self.brain, self.yields = brain, yields

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The brain's reply."""
        if self.yields is not None:
            await self.yields()
        said = self.brain.reply([name for name in request.allowed if name != FINAL_ANSWER], request.tool_choice)
        if said.answers:
            return ModelReply(calls=(ToolCall("last", FINAL_ANSWER, json.dumps({"answer": said.text})),))
        return ModelReply(said.text, tuple(ToolCall(one.call_id, one.name, json.dumps(one.arguments)) for one in said.calls))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        """The same in one piece."""
        yield await self.complete(request)


@tool
async def search(q: str) -> str:
    """Search."""
    return "nothing"


def loop(brain: Brain, steps: int, yields: Any = None, rules: int = 0) -> Callable[[], Awaitable[Any]]:
    """A run of so many steps; with `rules`, under so many requirements."""
    kinds: tuple[dict[str, Any], ...] = (
        {"max_invocations": 10**6},
        {"min_invocations": 1},
        {"force_at_step": 10**6},
        {"only_before": ["final_answer"]},
        {"max_invocations": 10**7},
    )
    made = [ConditionalRequirement("search", name=f"r{number}", **kinds[number % 5]) for number in range(rules)]
    agent = Agent(Model(brain, yields), tools=[search], requirements=made, budget=Budget(turns=None))
    return lambda: agent.run("go")


@requirement(name="bounds", targets=["refund"], depends_on=[])
def bounds(history: Any) -> Rule:
    """At most 100."""
    return Rule("refund", arguments={"amount": {"type": "number", "maximum": 100}})


def rules_of(kind: str | None) -> list[Any]:
    """The requirement of a kind."""
    made: dict[str | None, Callable[[], Any]] = {
        "order": lambda: ConditionalRequirement("search", only_after=["think"]),
        "limit": lambda: ConditionalRequirement("refund", max_invocations=2),
        "spacing": lambda: ConditionalRequirement("search", consecutive_allowed=False),
        "approval": lambda: AskPermissionRequirement("refund", handler=lambda call: False),
        "bounds": lambda: bounds,
        "first": lambda: ConditionalRequirement("think", force_at_step=1),
        "answer": lambda: ConditionalRequirement("final_answer", only_after=["search"]),
    }
    return [made[kind]()] if kind in made else []


async def desk(brain: Brain, world: World, kind: str | None) -> None:
    """One run under the rule of a kind."""
    tools = [tool(world.think), tool(world.search), tool(world.refund)]
    agent = Agent(Model(brain), tools=tools, requirements=rules_of(kind), budget=Budget(turns=40, errors=None))
    try:
        result = await agent.run("Help me.")
    except (MaymustError, Stuck) as error:
        world.broke = type(error.__cause__ or error).__name__
    else:
        world.answered = result.answer is not None
        world.broke = "" if world.answered else result.stop_reason


def policy_of(tools: int, requirements: int) -> Policy:
    """Limits, orders, forces and minima over so many tools."""
    names = [f"t{number}" for number in range(tools)]
    made = []
    for number in range(requirements):
        target, other = names[number % tools], names[(number * 7 + 1) % tools]
        kinds: tuple[dict[str, Any], ...] = (
            {"only_after": [other] if other != target else []},
            {"max_invocations": 10**6},
            {"consecutive_allowed": False},
            {"force_at_step": 10**6 + number, "only_success_invocations": False},
            {"min_invocations": 1},
        )
        made.append(ConditionalRequirement(target, **kinds[number % 5]))
    return Policy(made, tools=names)


def stepped(past: History, steps: int, first: int = 0) -> list[History]:
    """The history after each of so many further steps; every fifth fails."""
    versions = []
    for number in range(first, first + steps):
        past = past.add(f"t{number % 10}", outcome="failed" if number % 5 == 4 else "ok")
        versions.append(past)
    return versions


def timed(policy: Policy, versions: list[History]) -> float:
    """Microseconds of one decision."""
    start = time.process_time()
    for version in versions:
        policy.permit(version)
    return (time.process_time() - start) / len(versions) * 1e6


def decide(tools: int, requirements: int, history: int, times: int) -> float:
    """Microseconds of a full decision, each over a history that no decision was made over before."""
    policy = policy_of(tools, requirements)
    past = stepped(History(), history)[-1] if history else History()
    policy.permit(past)
    return timed(policy, stepped(past, times))


def growth(history: int, times: int, rounds: int = 15) -> float:
    """A decision after so many steps against one after ten, 10 tools and 10 requirements, measured in turns in one process."""
    policy = policy_of(10, 10)
    short, long = stepped(History(), 10)[-1], stepped(History(), history)[-1]
    ratios = []
    for _ in range(rounds):
        near, far = timed(policy, stepped(short, times)), timed(policy, stepped(long, times))
        ratios.append(far / near)
    return sorted(ratios)[rounds // 2]


def register(tools: int) -> float:
    """Milliseconds from so many plain functions to the first request that offers them, in a process that has made no tool before."""
    from benchmarks.tools import function_numbered

    TypeAdapter(int)  # what a program loads anyhow is loaded before the clock starts
    functions = [function_numbered(number) for number in range(tools)]
    marks: list[float] = []

    class Mark:
        """Notes when it is asked."""

        def reply(self, offered: Any, named: Any = None) -> Reply:
            """The end."""
            assert len(offered) == tools
            marks.append(time.process_time())
            return Reply("done", answers=True)

    start = time.process_time()
    agent = Agent(Model(Mark()), tools=[tool(function) for function in functions])
    asyncio.run(agent.run("go"))
    return (marks[0] - start) * 1e3

"""How many runs a model at random brings to an end, under policies in which it can paint itself into a corner: plain, and supervised.

    python -m benchmarks.bench_supervised

A run is finished when it has an answer and owes nothing. The policies are drawn at random; kept are those in which some run gets
stuck (`verify` says so) and a supervisor exists.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from random import Random
from typing import Any

from maymust import Agent, Budget, ConditionalRequirement, MaymustError, Policy, PolicyError, tool
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.models import Capabilities
from maymust.models.chat_model import ModelDelta, ModelReply, ModelRequest
from maymust.models.message import ToolCall
from maymust.verify import verify

NAMES = ("read", "write", "pay", "note")
POLICIES = 40
RUNS = 25
TURNS = 12


class AtRandom:
    """A model that calls any tool that is on offer."""

    name = "at random"
    capabilities = Capabilities()

    def __init__(self, seed: int) -> None:
        self._rng, self._turn = Random(seed), 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One call."""
        self._turn += 1
        name = self._rng.choice(request.allowed)
        arguments: dict[str, Any] = {"answer": "done"} if name == FINAL_ANSWER else {"about": str(self._turn)}
        return ModelReply(calls=(ToolCall(f"c{self._turn}", name, json.dumps(arguments)),))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        """The same in one piece."""
        yield await self.complete(request)


def tools() -> list[Any]:
    """Four tools that do nothing."""

    def made(name: str) -> Any:
        async def do(about: str) -> str:
            """Do it."""
            return f"{name} went well"

        return tool(name=name)(do)

    return [made(name) for name in NAMES]


def drawn(rng: Random) -> list[ConditionalRequirement]:
    """Some requirements."""
    rules = []
    for number in range(rng.randint(2, 4)):
        target = rng.choice(NAMES)
        others = [name for name in NAMES if name != target]
        given: dict[str, Any] = {"name": f"r{number}"}
        if rng.random() < 0.5:
            given["min_invocations"] = rng.choice((1, 1, 2))
        if rng.random() < 0.4:
            given["max_invocations"] = max(given.get("min_invocations", 0), rng.choice((1, 2)))
        if rng.random() < 0.4:
            given["only_before"] = [rng.choice(others)]
        after = [name for name in others if name not in given.get("only_before", ())]
        if rng.random() < 0.4:
            given["only_after"] = [rng.choice(after)]
        if rng.random() < 0.2:
            given["consecutive_allowed"] = False
        rules.append(ConditionalRequirement(target, **given))
    return rules


def policies(count: int) -> list[list[ConditionalRequirement]]:
    """Policies with a way to get stuck and a way around it."""
    rng, found = Random(1), list[list[ConditionalRequirement]]()
    while len(found) < count:
        try:
            rules = drawn(rng)
            report = verify(Policy(rules, tools=NAMES), max_turns=TURNS)
        except PolicyError:
            continue
        if report.verdict in ("dead_end", "conflict", "livelock") and report.supervisor_exists:
            found.append(rules)
    return found


async def finished(rules: list[ConditionalRequirement], supervise: bool, runs: int) -> int:
    """How many of so many runs end with an answer and nothing owed."""
    good = 0
    for seed in range(runs):
        agent = Agent(AtRandom(seed), tools=tools(), requirements=rules, supervise=supervise, budget=Budget(turns=TURNS), on_stall="stop")
        try:
            result = await agent.run("go")
        except MaymustError:
            continue
        good += result.answer is not None and not result.unmet
    return good


def measure(count: int = POLICIES, runs: int = RUNS) -> dict[str, int]:
    """Runs, and those finished either way."""
    chosen = policies(count)
    plain, held = (sum(asyncio.run(finished(rules, supervise, runs)) for rules in chosen) for supervise in (False, True))
    return {"policies": count, "runs": count * runs, "plain": plain, "supervised": held}


def main() -> None:
    """Print the numbers, as JSON with `--json`."""
    logging.disable(logging.WARNING)
    found = measure()
    if "--json" in sys.argv:
        print(json.dumps(found))
        return
    print(f"{found['runs']} runs of a model at random under {found['policies']} policies that can get stuck")
    print(f"  plain       {found['plain']:>5} finished")
    print(f"  supervised  {found['supervised']:>5} finished")


if __name__ == "__main__":
    main()

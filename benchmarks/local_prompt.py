"""Seconds a turn with the small local model, `stable` against `classic`, in one process.

    python -m benchmarks.local_prompt

The model's own cache keeps what a prompt shares with the one before it, so what is measured is the price of a prompt that changes at
its beginning. Needs the extra `local`; the weights are fetched once.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.prompt_bytes import INSTRUCTIONS, RULES, TOOLS

from maymust import Agent, Budget
from maymust.models.local import LocalModel

TURNS = 10


def seconds_a_turn(layout: Any, model: LocalModel) -> float:
    """The mean of the turns after the first, which loads and reads everything in any case."""
    agent = Agent(
        model,
        instructions=INSTRUCTIONS,
        tools=TOOLS,
        requirements=RULES,
        prompt_layout=layout,
        budget=Budget(turns=TURNS, errors=None),
        loop_guard=None,
    )
    marks = [time.perf_counter()]

    class Timed:
        name, capabilities = model.name, model.capabilities

        async def complete(self, request: Any) -> Any:
            started = time.perf_counter()
            reply = await model.complete(request)
            marks.append(time.perf_counter() - started)
            return reply

        stream = model.stream

    agent.model = Timed()
    agent.run_sync("My lamps came late. I want some of my money back, please. I am customer c-17.")
    turns = marks[2:]
    return sum(turns) / len(turns)


def main() -> None:
    """Print seconds a turn, and the ratio."""
    model = LocalModel()
    stable, classic = seconds_a_turn("stable", model), seconds_a_turn("classic", model)
    print(f"stable   {stable:6.2f} s a turn")
    print(f"classic  {classic:6.2f} s a turn")
    print(f"ratio    {classic / stable:6.2f}")


if __name__ == "__main__":
    main()

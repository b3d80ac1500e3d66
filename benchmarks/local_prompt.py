"""Seconds a turn with the small local model, `stable` against `classic`, in one process, with a prefix of 1,800 tokens.

    python -m benchmarks.local_prompt

The prefix is what comes before the conversation: instructions, tools, an example of each. The model's own cache keeps what a prompt
shares with the one before it, so what is measured is the price of a prompt that changes near its beginning. Which tools may be called
changes in every turn. Needs the extra `local`; the weights are fetched once.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from maymust import Agent, Budget, ConditionalRequirement, tool
from maymust.models.chat_model import ModelDelta, ModelReply, ModelRequest
from maymust.models.local import LocalModel

TURNS = 4
ROUNDS = 1
TARGET = 6.0
PARTS = ("invoice", "parcel", "return", "stock", "address")


def tool_about(part: str) -> Any:
    """A tool with the kind of description that tools have in earnest."""

    async def look(number: Annotated[Literal["1", "2", "3"], f"Which {part}."]) -> str:
        return f"{part} {number} is fine"

    description = (
        f"Look up one {part} by its number and say in a word whether it is in order. Use it when the customer asks about a {part}, "
        f"when another record mentions a {part}, or when you are about to promise something that depends on it. It does not change "
        f"the {part}. The numbers are those of the last list that you were shown; there are never more than three of them. If the "
        f"{part} is not in order, say so to the customer at once, say since when, and say what will be done about it and by whom."
    )
    return tool(name=f"look_at_{part}", description=description, repeatable=True)(look)


TOOLS = [tool_about(part) for part in PARTS]
RULES = [ConditionalRequirement(one.name, consecutive_allowed=False, reason=f"{one.name} was the last step") for one in TOOLS] + [
    ConditionalRequirement("final_answer", only_after=[one.name for one in TOOLS], reason="look at all of them first")
]


class Timed:
    """The model, and what each of its turns took."""

    def __init__(self, model: LocalModel) -> None:
        self.model, self.name, self.capabilities = model, model.name, model.capabilities
        self.seconds: list[float] = []
        self.used: list[float] = []
        self.tokens: list[int] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One turn."""
        started, used = time.perf_counter(), time.process_time()
        reply = await self.model.complete(request)
        self.seconds.append(time.perf_counter() - started)
        self.used.append(time.process_time() - used)
        self.tokens.append(reply.usage.input_tokens)
        return reply

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        """The same in one piece."""
        yield await self.complete(request)


def run(layout: Any, model: LocalModel) -> Timed:
    """One run of some turns. The first reads everything in any case, and is not counted."""
    timed = Timed(model)
    agent = Agent(
        timed,
        instructions="You look after a shop. Look at everything, one thing after another.",
        tools=TOOLS,
        requirements=RULES,
        prompt_layout=layout,
        budget=Budget(turns=TURNS, errors=None),
        loop_guard=None,
    )
    agent.run_sync("Is everything in order?")
    return timed


def measure() -> dict[str, Any]:
    """Both layouts, in turns; the medians over all turns but the first of each run."""
    model = LocalModel()
    runs: dict[str, list[Timed]] = {"stable": [], "classic": []}
    for _ in range(ROUNDS):
        for layout, kept in runs.items():
            kept.append(run(layout, model))
    found: dict[str, Any] = {"prefix_tokens": runs["stable"][0].tokens[0]}
    for layout, kept in runs.items():
        found[layout] = round(statistics.median(second for one in kept for second in one.seconds[1:]), 3)
        found[f"{layout}_processor"] = round(statistics.median(used for one in kept for used in one.used[1:]), 3)
    found["ratio"] = round(found["classic"] / found["stable"], 1)
    found["ratio_processor"] = round(found["classic_processor"] / found["stable_processor"], 1)
    return found


def main() -> None:
    """Print seconds a turn, and the ratio; with `--json` as JSON."""
    found = measure()
    if "--json" in sys.argv:
        print(json.dumps(found))
        return
    print(f"prefix   {found['prefix_tokens']:6} tokens")
    for layout in ("stable", "classic"):
        print(f"{layout:<8} {found[layout]:6.2f} s a turn, {found[f'{layout}_processor']:6.2f} s of processor time")
    print(f"ratio    {found['ratio']:6.1f}   (by processor time {found['ratio_processor']:.1f}; at least {TARGET:g})")


if __name__ == "__main__":
    main()

"""How many bytes of prompt a provider has to read anew in one run, for different ways of telling a model what it may call.

    python -m benchmarks.prompt_bytes

Three runs of twenty turns under permits that change, with a model that follows a script. A request is taken as its items in canonical
JSON, in the order in which providers cache them: tools, system prompt, messages. What a request shares with an earlier one, from the
start on, is read from the cache; the rest has to be read anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any

from benchmarks._recorded import DESK, RUNS, TURNS, Recorded

from maymust import Agent, Budget, Permit
from maymust.models import Capabilities, ModelRequest, ScriptedModel
from maymust.models.anthropic import AnthropicModel
from maymust.models.openai import OpenAIChatModel


def play(run: Recorded, told: Capabilities, layout: Any = "stable") -> tuple[Sequence[ModelRequest], Sequence[Permit]]:
    """The requests and permits of the run."""
    model = ScriptedModel(run.script(), capabilities=told)
    agent = Agent(
        model,
        instructions=run.instructions,
        tools=run.tools,
        requirements=run.rules,
        prompt_layout=layout,
        budget=Budget(turns=TURNS + 5, errors=None),
        loop_guard=None,
    )
    result = agent.run_sync(run.question)
    assert result.stop_reason == "final_answer", result.stop_reason
    assert all(str(step.outcome) == "ok" for step in result.steps), [step for step in result.steps if str(step.outcome) != "ok"]
    return model.requests, result.permits


@dataclass(frozen=True)
class Row:
    """One way, and what it costs: bytes of all prompts, and those of them that were read anew."""

    way: str
    sent: int
    anew: int

    @property
    def share(self) -> float:
        return self.anew / self.sent


Items = list[str]


def canonical(value: Any) -> str:
    """One item, without marks for the cache."""
    return json.dumps(_unmarked(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != "cache_control"}
    return [_unmarked(item) for item in value] if isinstance(value, list) else value


def items(body: dict[str, Any]) -> Items:
    """The prompt of a request body, item by item."""
    return [canonical(item) for item in (*body.get("tools", ()), *body.get("system", ()), *body["messages"])]


def measure(way: str, prompts: Iterable[Items]) -> Row:
    """What a series of prompts costs."""
    earlier: list[Items] = []
    sent = anew = 0
    for prompt in prompts:
        shared = max(
            (sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(prompt, one, strict=False))) for one in earlier), default=0
        )
        sent += sum(len(item.encode()) for item in prompt)
        anew += sum(len(item.encode()) for item in prompt[shared:])
        earlier.append(prompt)
    return Row(way, sent, anew)


def chat(told: Capabilities) -> Callable[[ModelRequest], Items]:
    """How Chat Completions gets a request."""
    model = OpenAIChatModel("any", client=object(), capabilities=told)
    return lambda request: items(model._body(model._asked(request, ())))


def claude(told: Capabilities) -> Callable[[ModelRequest], Items]:
    """How the Messages API gets a request."""
    model = AnthropicModel("any", client=object(), capabilities=told)
    return lambda request: items(model._body(model._asked(request, ())))


def without_status(prompt: Items) -> Items:
    """The prompt of a framework that filters the list and says nothing about it."""
    return [item for item in prompt if '"content":"This step you may' not in item and '"content":"You have to call' not in item]


def beeai(run: Recorded, request: ModelRequest, permit: Permit, write: Callable[[ModelRequest], Items]) -> Items:
    """BeeAI's way: the system prompt lists every tool with its schema, whether it is allowed, and why not; the tool list is filtered."""
    told = []
    for definition in request.tools:
        reasons = permit.reasons.get(definition.name, ())
        lines = [
            f"Name: {definition.name}",
            f"Description: {definition.description}",
            f"Input schema: {json.dumps(dict(definition.parameters))}",
        ]
        lines += [f"Allowed: {definition.name in permit.allowed}", *([f"Reason: {reasons[-1]}"] if reasons else [])]
        told.append("\n".join(lines))
    prompt = without_status(write(request))
    tools = [item for item in prompt if item.startswith('{"function"') and any(f'"name":"{name}"' in item for name in permit.allowed)]
    rest = [item for item in prompt if not item.startswith('{"function"')]
    return [*tools, canonical({"role": "system", "content": "\n\n".join([run.instructions, *told])}), *rest[1:]]


ALLOWED = Capabilities(subset="allowed_tools", late_system=True)
FILTER = Capabilities()
BOUND = Capabilities(forced_choice="no", subset="tool_changes", prefix_bound=True, late_system=True, inline_tools=True)


def rows(run: Recorded = DESK) -> list[Row]:
    """All ways, cheapest first by design."""
    allowed, permits = play(run, ALLOWED)
    filtered, _ = play(run, FILTER)
    changes, _ = play(run, BOUND)
    classic, _ = play(run, FILTER, "classic")
    write = chat(FILTER)
    return [
        measure("`stable`, `allowed_tools`", map(chat(ALLOWED), allowed)),
        measure("`stable`, tool changes inside the conversation", map(claude(BOUND), changes)),
        measure("`stable`, list filtered (a provider without a subset mode)", map(write, filtered)),
        measure("a per-step filter, nothing said about it", (without_status(write(request)) for request in filtered)),
        measure("`classic`", map(write, classic)),
        measure("BeeAI's way", (beeai(run, request, permit, chat(ALLOWED)) for request, permit in zip(allowed, permits, strict=True))),
    ]


def table(run: Recorded = DESK) -> str:
    """The rows as a Markdown table."""
    lines = ["| way | bytes sent | bytes read anew | share |", "| --- | ---: | ---: | ---: |"]
    lines += [f"| {row.way} | {row.sent:,} | {row.anew:,} | {row.share:.0%} |" for row in rows(run)]
    return "\n".join(lines)


def main() -> None:
    """Print the tables, or everything as JSON with `--json`."""
    if "--json" in sys.argv:
        print(json.dumps([{"run": run.name, "rows": [asdict(row) for row in rows(run)]} for run in RUNS]))
        return
    for run in RUNS:
        print(f"\n{run.name}\n\n{table(run)}")


if __name__ == "__main__":
    main()

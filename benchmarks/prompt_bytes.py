"""How many bytes of prompt a provider has to read anew in one run, for different ways of telling a model what it may call.

    python -m benchmarks.prompt_bytes

One run of twenty turns under permits that change, with a model that follows a script. A request is taken as its items in canonical
JSON, in the order in which providers cache them: tools, system prompt, messages. What a request shares with an earlier one, from the
start on, is read from the cache; the rest has to be read anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from maymust import Agent, Budget, ConditionalRequirement, Permit, tool
from maymust.models import Capabilities, ModelRequest, ScriptedModel, call
from maymust.models.anthropic import AnthropicModel
from maymust.models.openai import OpenAIChatModel

TURNS = 20
INSTRUCTIONS = "You are the support desk of a shop. " + "Be kind, be brief, and say what you did. " * 12


@tool
def think(text: str) -> str:
    """Think about what to do next; nobody else reads it."""
    return "ok"


@tool
def search_orders(customer: str, text: str = "") -> str:
    """Find the orders of a customer, newest first, by words in their items."""
    return json.dumps([{"order": f"A-{number}", "items": ["lamp", "cable"], "total": 10 * number, "state": "sent"} for number in range(4)])


@tool
def read_order(order: str) -> str:
    """Read one order with its items, prices, dates, and what was said about it."""
    return json.dumps({"order": order, "items": [{"name": "lamp", "price": 40.0}] * 3, "notes": "left at the door " * 12})


@tool
def refund(order: str, amount: float, reason: str) -> str:
    """Pay back a part of an order to the customer's account."""
    return "refunded"


@tool
def send_message(customer: str, text: str) -> str:
    """Send the customer a message."""
    return "sent"


TOOLS = (think, search_orders, read_order, refund, send_message)
RULES = (
    ConditionalRequirement("think", force_at_step=1, consecutive_allowed=False, reason="thinking twice in a row helps nobody"),
    ConditionalRequirement("search_orders", only_after=["think"], reason="think first"),
    ConditionalRequirement("read_order", only_after=["search_orders"], reason="find the order first"),
    ConditionalRequirement(
        "refund", only_after=["read_order"], max_invocations=2, consecutive_allowed=False, reason="read the order first"
    ),
    ConditionalRequirement("send_message", only_after=["refund"], min_invocations=1),
)


def script() -> list[Any]:
    """The model's part: rounds of think, search, read, refund, and a message at the end."""
    turns: list[Any] = []
    while len(turns) < TURNS - 2:
        number = len(turns)
        turns.append(
            [
                call("think", text="What does the customer want? " * 2),
                call("search_orders", customer="c-17", text=f"lamp {number}"),
                call("read_order", order=f"A-{number}"),
                call("refund", order=f"A-{number}", amount=5.0, reason="it came late")
                if number < 9
                else call("read_order", order=f"B-{number}"),
            ][number % 4]
        )
    return [
        *turns,
        call("send_message", customer="c-17", text="We paid you back."),
        call("final_answer", answer="Two refunds, one message."),
    ]


def play(told: Capabilities, layout: Any = "stable") -> tuple[Sequence[ModelRequest], Sequence[Permit]]:
    """The requests and permits of the run."""
    model = ScriptedModel(script(), capabilities=told)
    agent = Agent(
        model,
        instructions=INSTRUCTIONS,
        tools=TOOLS,
        requirements=RULES,
        prompt_layout=layout,
        budget=Budget(turns=TURNS + 5, errors=None),
        loop_guard=None,
    )
    result = agent.run_sync("My lamps came late. I want some of my money back, please. I am customer c-17.")
    assert result.stop_reason == "final_answer", result.stop_reason
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


def beeai(request: ModelRequest, permit: Permit, write: Callable[[ModelRequest], Items]) -> Items:
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
    return [*tools, canonical({"role": "system", "content": "\n\n".join([INSTRUCTIONS, *told])}), *rest[1:]]


ALLOWED = Capabilities(subset="allowed_tools", late_system=True)
FILTER = Capabilities()
BOUND = Capabilities(forced_choice="no", subset="tool_changes", prefix_bound=True, late_system=True, inline_tools=True)


def rows() -> list[Row]:
    """All ways, cheapest first by design."""
    allowed, permits = play(ALLOWED)
    filtered, _ = play(FILTER)
    changes, _ = play(BOUND)
    classic, _ = play(FILTER, "classic")
    write = chat(FILTER)
    return [
        measure("`stable`, `allowed_tools`", map(chat(ALLOWED), allowed)),
        measure("`stable`, tool changes inside the conversation", map(claude(BOUND), changes)),
        measure("`stable`, list filtered (a provider without a subset mode)", map(write, filtered)),
        measure("a per-step filter, nothing said about it", (without_status(write(request)) for request in filtered)),
        measure("`classic`", map(write, classic)),
        measure("BeeAI's way", (beeai(request, permit, chat(ALLOWED)) for request, permit in zip(allowed, permits, strict=True))),
    ]


def table() -> str:
    """The rows as a Markdown table."""
    lines = ["| way | bytes sent | bytes read anew | share |", "| --- | ---: | ---: | ---: |"]
    lines += [f"| {row.way} | {row.sent:,} | {row.anew:,} | {row.share:.0%} |" for row in rows()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())

"""A run of twenty turns under permits that change, for the tests of prompts and prefixes."""

from __future__ import annotations

import json
from typing import Any

from maymust import Agent, Budget, ConditionalRequirement, FunctionInvocationContext, Rule, requirement, tool
from maymust.models import ChatModel, call
from maymust.models.scripted import ScriptedCall, Turn
from tests.models.picky import Wire


@tool
def think(text: str) -> str:
    """Think about it."""
    return f"thought about {text}"


@tool
def search(q: str) -> str:
    """Search the library."""
    return f"3 pages about {q}: ünïcode"


@tool
def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: " + "words " * 20


@tool
def note(text: str) -> str:
    """Write a note."""
    return "noted"


@tool
def arrive(context: FunctionInvocationContext) -> str:
    """Let a tool arrive."""
    context.add_tools(note)
    return "note is here"


@requirement(name="search rests after reading", targets=["search"])
def rests(history: Any) -> list[Rule]:
    return [Rule("search", allowed=False, reason="read on")] if history.last == "read" and history.count("read") % 2 else []


RULES = [
    ConditionalRequirement("think", force_at_step=1, consecutive_allowed=False),
    ConditionalRequirement("search", only_after=["think"], min_invocations=2),
    ConditionalRequirement("read", only_after=["search"], force_after=["search"]),
    ConditionalRequirement("final_answer", only_after=["read"]),
    rests,
]


def long_agent(model: ChatModel, *, arriving: bool = False, **settings: Any) -> Agent:
    """The agent. With `arriving` a tool comes in the middle of the run."""
    tools = [think, search, read, *([arrive] if arriving else [])]
    loadable = [note] if arriving else []
    return Agent(
        model,
        instructions="Find out.",
        tools=tools,
        loadable=loadable,
        requirements=RULES,
        budget=Budget(turns=40),
        loop_guard=None,
        **settings,
    )


ARGUMENTS = {"think": {"text": "it"}, "search": {"q": "a thing"}, "note": {"text": "x"}, "arrive": {}, "final_answer": {"answer": "Found."}}


class Player:
    """A model that calls what is on offer, each in its turn, says a text once, and answers when it is time to."""

    def __init__(self, turns: int = 20) -> None:
        self.turns, self.count = turns, 0

    def __call__(self, body: dict[str, Any], wire: Wire) -> Turn:
        self.count += 1
        if wire.schema is not None:
            return self._output([branch["properties"]["name"]["const"] for branch in wire.schema["properties"]["call"]["anyOf"]])
        if self.count == 3:
            return "Let me see."
        rest = [name for name in wire.allowed if name != "final_answer"]
        if "final_answer" in wire.allowed and (self.count >= self.turns or not rest):
            return self._call("final_answer")
        first = self._call(rest[self.count % len(rest)])
        return [first, self._call("read")] if self.count % 6 == 0 and "read" in rest else first

    def _output(self, names: list[str]) -> str:
        done = "final_answer" in names and self.count >= self.turns
        made = self._call("final_answer" if done else names[self.count % len(names)])
        return json.dumps({"call": {"name": made.name, "arguments": json.loads(made.raw_arguments)}})

    def _call(self, name: str) -> ScriptedCall:
        return call(name, **ARGUMENTS.get(name, {"page": self.count}))

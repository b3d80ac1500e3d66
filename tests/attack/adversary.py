"""A model that does what it likes. It keeps a log of its replies, so that the checker need not take the run's word for them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from maymust.models import Capabilities
from maymust.models.chat_model import ModelReply, ModelRequest, Usage
from maymust.models.message import ToolCall
from tests.attack.scenario import CHILD, FINAL, UNKNOWN

BROKEN = ('{"k": ', '["k"]', '"k"', "null", "7", "k=1")
TYPED: tuple[tuple[dict[str, Any], dict[str, Any] | None], ...] = (
    ({"amount": 1}, {"amount": 1, "tag": "x"}),
    ({"amount": 3}, {"amount": 3, "tag": "x"}),
    ({"amount": 5, "tag": "y"}, {"amount": 5, "tag": "y"}),
    ({"amount": "2"}, {"amount": 2, "tag": "x"}),
    ({"amount": 1, "tag": "x"}, {"amount": 1, "tag": "x"}),
    ({"amount": "five"}, None),
    ({}, None),
    ({"amount": 2, "dry_run": True}, None),
    ({"tag": "y"}, None),
)
"""Arguments of a typed tool, each with what the body gets, or None where they do not fit the schema."""
TIRED = 14
"""After so many turns the model only answers or says nothing, so that every run ends."""
SILENT = 40
"""After so many it says nothing: what is drawn may be a wrong answer for ever, where a tape has run out, and nothing else ends the run."""
ENDLESS = 400
"""After so many turns something is wrong: an error is better than a test that eats all memory."""


@dataclass
class Made:
    """A call as the model made it. `values` is what a body would get; None when the arguments are broken or do not fit."""

    call_id: str
    name: str
    raw: str
    parsed: dict[str, Any] | None
    values: dict[str, Any] | None


@dataclass
class Reply:
    """A reply, and the request it answers."""

    text: str
    calls: list[Made]
    tokens: int
    offered: tuple[str, ...]
    shown: tuple[str, ...]
    choice: str


@dataclass
class Adversary:
    """The model of one scenario."""

    scenario: dict[str, Any]
    rng: Random
    replies: list[Reply] = field(default_factory=list)
    name: str = "adversary"
    capabilities: Capabilities = field(default_factory=Capabilities)

    def __post_init__(self) -> None:
        tools = [*self.scenario["tools"], *self.scenario["later"]]
        self.typed = {tool["name"] for tool in tools if tool["typed"]}
        self.names = [tool["name"] for tool in tools]
        self.count = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Whatever comes to mind, given what is on offer."""
        reply = self.reply_to(request)
        self.replies.append(reply)
        calls = tuple(ToolCall(made.call_id, made.name, made.raw) for made in reply.calls)
        return ModelReply(text=reply.text, calls=calls, usage=Usage(output_tokens=reply.tokens, requests=1))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelReply]:
        """The same in one piece."""
        yield await self.complete(request)

    def reply_to(self, request: ModelRequest) -> Reply:
        """Draw a reply."""
        rng, weights = self.rng, self.scenario["model"]
        offered = list(request.allowed)
        what = rng.choices(list(weights), list(weights.values()))[0] if self.turn() < TIRED else rng.choice(("answer", "empty"))
        what = what if self.turn() < SILENT else "empty"
        if self.turn() >= ENDLESS:
            raise RuntimeError("the run does not end")
        text, calls = "", []
        if what == "text":
            text = f"text {self.count} {self.turn()}"
        elif what == "empty":
            text = rng.choice(("", "", " \n"))
        elif what == "answer":
            calls = [self._call(FINAL)]
        elif what == "obey":
            named = request.tool_choice if request.tool_choice in self.names else None
            tools = [name for name in offered if name != FINAL] or [FINAL]
            calls = [self._call(named or rng.choice(tools), good=True)]
        else:
            pool = (offered or [FINAL]) if what == "batch" else [*self.names, FINAL, *UNKNOWN]
            calls = [self._call(rng.choice(pool), good=what == "batch") for _ in range(rng.choice((1, 2, 2, 3, 4)))]
            if rng.random() < 0.25:
                calls.insert(rng.randint(0, len(calls)), self._call(FINAL))
            if rng.random() < 0.2:
                calls.append(self._again(rng.choice(calls)))
            text = "on my way" if rng.random() < 0.2 else ""
        return Reply(text, calls, rng.choice((1, 10)), request.allowed, tuple(tool.name for tool in request.tools), request.tool_choice)

    def turn(self) -> int:
        """How many replies were given in this run."""
        return len(self.replies)

    def _again(self, made: Made) -> Made:
        """The same call once more, its id included; a child agent gets another task, by which its run is known."""
        return self._call(CHILD) if made.name == CHILD else made

    def _id(self) -> str:
        self.count += 1
        if self.rng.random() < 0.08:
            return self.rng.choice(("", f"c{self.rng.randint(1, self.count)}"))
        return f"c{self.count}"

    def _call(self, name: str, *, good: bool = False) -> Made:
        rng = self.rng
        call_id = self._id()
        if not good and rng.random() < 0.12:
            return Made(call_id, name, rng.choice(BROKEN), None, None)
        given, values = self._arguments(name)
        return Made(call_id, name, json.dumps(given), given, values)

    def _arguments(self, name: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Arguments that are an object, and what a body would get of them."""
        rng = self.rng
        if name == FINAL:
            wrong: tuple[dict[str, Any], ...] = ({}, {"answer": "a", "more": 1}, {"answer": ["a"]})
            if rng.random() < 0.1:
                return rng.choice(wrong), None
            return {"answer": f"answer {self.count}"}, {"answer": f"answer {self.count}"}
        if name == CHILD:
            task = {"task": f"task {self.count}"}
            return rng.choice(((task, task), (task, task), (task, task), ({}, None), ({**task, "more": 1}, None)))
        if name in self.typed:
            return rng.choice(TYPED)
        given: dict[str, Any] = rng.choice(({}, {"k": 1}, {"k": 2}, {"k": rng.randint(3, 9)}))
        return given, given


@dataclass
class ChildAdversary(Adversary):
    """The model of a child agent: it keeps a log for each task. Its calls have ids of their own, so that no two of its runs share one."""

    name: str = "child adversary"
    tasks: dict[str, list[Reply]] = field(default_factory=dict)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """As in any run, in the log of this one."""
        task = next(message.text for message in request.messages if message.role == "user")
        self.replies = self.tasks.setdefault(task, [])
        return await super().complete(request)

    def _again(self, made: Made) -> Made:
        return self._call(made.name)

    def _id(self) -> str:
        self.count += 1
        return f"k{self.count}"

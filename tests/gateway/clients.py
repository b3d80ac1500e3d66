"""Plain clients, as anybody writes them with the providers' own SDKs: a loop that runs what the model calls until there is a text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai

from tests.adapters.harness import Broken

SCHEMAS: dict[str, dict[str, Any]] = {
    "think": {"type": "object", "properties": {}},
    "search": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
    "refund": {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]},
}
TURNS = 12

Execute = Callable[[str], str]

_OPENAI = openai.OpenAI(base_url="http://127.0.0.1", api_key="key", max_retries=0)
_ANTHROPIC = anthropic.Anthropic(base_url="http://127.0.0.1", api_key="key", max_retries=0)


@dataclass
class Made:
    """A call as the client read it."""

    call_id: str
    name: str
    arguments: Any


@dataclass
class Player:
    """One conversation. `model` and `settings` go into each request; `stream` asks for streams."""

    url: str
    stream: bool = False
    model: str = "m"
    settings: dict[str, Any] = field(default_factory=dict)
    items: list[Any] = field(default_factory=list)
    tools: tuple[str, ...] = ("think", "search", "refund")

    def __post_init__(self) -> None:
        # One client for all players: each would read the certificates of the system anew.
        self.openai = _OPENAI.with_options(base_url=f"{self.url}/v1")
        self.anthropic = _ANTHROPIC.with_options(base_url=self.url)

    def play(self, execute: Execute) -> str | None:
        """The text at the end; None when the run was ended as stalled."""
        self.items.append(self.user("Help me."))
        try:
            for _ in range(TURNS):
                text, calls = self.ask()
                if not calls:
                    return text
                self.items.extend(self.results([(call, *self.outcome(call, execute)) for call in calls]))
        except (openai.UnprocessableEntityError, anthropic.UnprocessableEntityError):
            return None
        raise AssertionError("it goes on and on")

    def outcome(self, call: Made, execute: Execute) -> tuple[str, bool]:
        try:
            return execute(call.name), False
        except Broken as error:
            return f"Error: {error}", True

    def user(self, text: str) -> Any:
        return {"role": "user", "content": text}

    def ask(self) -> tuple[str, list[Made]]:
        raise NotImplementedError

    def results(self, done: Iterable[tuple[Made, str, bool]]) -> list[Any]:
        raise NotImplementedError


class ChatPlayer(Player):
    @property
    def given(self) -> dict[str, Any]:
        tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMAS[name]}} for name in self.tools]
        return {"model": self.model, "messages": self.items, "tools": tools, **self.settings}

    def ask(self) -> tuple[str, list[Made]]:
        if self.stream:
            with self.openai.chat.completions.stream(**self.given) as stream:
                said = stream.get_final_completion().choices[0].message
        else:
            said = self.openai.chat.completions.create(**self.given).choices[0].message
        calls = [Made(call.id, call.function.name, json.loads(call.function.arguments)) for call in said.tool_calls or ()]
        raw = [
            {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
            for call in said.tool_calls or ()
        ]
        self.items.append({"role": "assistant", "content": said.content, **({"tool_calls": raw} if raw else {})})
        return said.content or "", calls

    def results(self, done: Iterable[tuple[Made, str, bool]]) -> list[Any]:
        return [{"role": "tool", "tool_call_id": call.call_id, "content": text} for call, text, _ in done]


class ResponsesPlayer(Player):
    @property
    def given(self) -> dict[str, Any]:
        tools = [{"type": "function", "name": name, "parameters": SCHEMAS[name], "strict": False} for name in self.tools]
        return {"model": self.model, "input": self.items, "tools": tools, "store": False, **self.settings}

    def ask(self) -> tuple[str, list[Made]]:
        if self.stream:
            with self.openai.responses.stream(**self.given) as stream:
                said: Any = stream.get_final_response()
        else:
            said = self.openai.responses.create(**self.given)
        calls = [Made(item.call_id, item.name, json.loads(item.arguments)) for item in said.output if item.type == "function_call"]
        for item in said.output:
            own = ("id", "status", "parsed_arguments")
            self.items.append({key: value for key, value in item.to_dict().items() if value is not None and key not in own})
        return said.output_text, calls

    def results(self, done: Iterable[tuple[Made, str, bool]]) -> list[Any]:
        return [{"type": "function_call_output", "call_id": call.call_id, "output": text} for call, text, _ in done]


class MessagesPlayer(Player):
    @property
    def given(self) -> dict[str, Any]:
        tools = [{"name": name, "input_schema": SCHEMAS[name]} for name in self.tools]
        return {"model": self.model, "messages": self.items, "max_tokens": 99, "tools": tools, **self.settings}

    def ask(self) -> tuple[str, list[Made]]:
        if self.stream:
            with self.anthropic.messages.stream(**self.given) as stream:
                said = stream.get_final_message()
        else:
            said = self.anthropic.messages.create(**self.given)
        calls = [Made(block.id, block.name, block.input) for block in said.content if block.type == "tool_use"]
        kept = [block.to_dict() for block in said.content]
        for block in kept:
            block.pop("citations", None)
            block.pop("caller", None)
        if kept:
            self.items.append({"role": "assistant", "content": kept})
        return "".join(block.text for block in said.content if block.type == "text"), calls

    def results(self, done: Iterable[tuple[Made, str, bool]]) -> list[Any]:
        blocks = [{"type": "tool_result", "tool_use_id": call.call_id, "content": text, "is_error": failed} for call, text, failed in done]
        return [{"role": "user", "content": blocks}]


PLAYERS: dict[str, type[Player]] = {"chat": ChatPlayer, "responses": ResponsesPlayer, "messages": MessagesPlayer}

"""The seam to a language model: what is asked (`ModelRequest`), what comes back (`ModelReply`), and the protocol between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from maymust.models.capabilities import Capabilities
from maymust.models.message import Message, ToolCall


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model sees it. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and calls. `requests` counts model calls, failed attempts included."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.requests + other.requests,
        )

    def to_dict(self) -> dict[str, int]:
        """JSON form."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "requests": self.requests,
        }


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call.

    messages     the conversation, the system message first
    tools        every tool that is shown, in a stable order (`final_answer` last when it is sent as a tool)
    allowed      names of the tools that may be called this turn, a subset of `tools`
    tool_choice  "auto", "required", "none" or one tool's name
    guidance     the step's status in words, empty when everything is open; already the last message where it was due
    """

    messages: Sequence[Message]
    tools: tuple[ToolDefinition, ...] = ()
    allowed: tuple[str, ...] = ()
    tool_choice: str = "auto"
    guidance: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What the model said. `extra` is kept with the message and handed back unchanged (see `Message.extra`).

    `enforced_by` is "provider" when the request could express the permit, "maymust" when only the second gate holds it.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    extra: Mapping[str, Any] = field(default_factory=dict)
    enforced_by: str = "maymust"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of a call's arguments; `name` and `call_id` are complete from the first piece on."""

    index: int
    call_id: str
    name: str
    arguments: str


ModelDelta = TextDelta | CallDelta


@runtime_checkable
class ChatModel(Protocol):
    """A language model. One object may serve any number of runs at once; it keeps nothing of any run."""

    @property
    def name(self) -> str:
        """A name for traces, such as "openai:gpt-5"."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What the model can be told about tools."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The whole reply. Raises what the provider's client raises."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        """Deltas as they come; the last item is the whole reply."""
        ...

"""The seam to a language model: what is asked (`ModelRequest`), what comes back (`ModelReply`), and the protocol between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from maymust.models.capabilities import Capabilities
from maymust.models.message import Message, ToolCall


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model sees it. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost. `cached` is the price of input read from the provider's cache; None: that of other input."""

    input: float
    output: float
    cached: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and calls. `requests` counts model calls, failed attempts included; `cached_tokens` are a part of `input_tokens`."""

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

    def cost(self, price: Price) -> float:
        """What the tokens cost, in the currency of `price`."""
        cached = price.input if price.cached is None else price.cached
        fresh = max(self.input_tokens - self.cached_tokens, 0)
        return (fresh * price.input + self.cached_tokens * cached + self.output_tokens * price.output) / 1_000_000

    def to_dict(self) -> dict[str, int]:
        """JSON form."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "requests": self.requests,
        }


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Offer:
    """What is on offer from one place of the conversation on: a request holds one for each time it changed.

    at       how many messages, the system message left out, come before it
    added    tools that are shown from here on for the first time in the run
    allowed  names of the tools that may be called from here on
    """

    at: int
    added: tuple[ToolDefinition, ...]
    allowed: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"at": self.at, "added": [asdict(tool) for tool in self.added], "allowed": list(self.allowed)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Offer:
        """The offer whose `to_dict` gave `data`."""
        return cls(data["at"], tuple(ToolDefinition(**tool) for tool in data["added"]), tuple(data["allowed"]))


@dataclass(frozen=True, slots=True)
class Lost:
    """An ability that the provider has refused, and what it said. It is not used again in the run."""

    ability: str
    why: str


@dataclass(slots=True)
class ModelRequest:
    """One model call. Nobody changes it; not frozen, for that costs in every turn.

    messages     the conversation, the system message first
    tools        every tool that is shown, in a stable order (`final_answer` last when it is sent as a tool)
    allowed      names of the tools that may be called this turn, a subset of `tools`
    tool_choice  "auto", "required", "none" or one tool's name
    guidance     the step's status in words, empty when everything is open; already the last message where it was due
    offers       how the offer changed in the course of the conversation; kept for models that are told so inside of it, else empty
    lost         names of abilities that the provider has refused earlier in the run (`capabilities.ABILITIES`)
    narrowed     for models that a grammar constrains: those of `tools` whose arguments are narrowed in this turn, in the form that
                 constrains the output; the prompt shows them as they are in `tools`
    """

    messages: Sequence[Message]
    tools: tuple[ToolDefinition, ...] = ()
    allowed: tuple[str, ...] = ()
    tool_choice: str = "auto"
    guidance: str = ""
    offers: tuple[Offer, ...] = ()
    lost: tuple[str, ...] = ()
    narrowed: tuple[ToolDefinition, ...] = ()


Finish = Literal["stop", "cut_off", "refused"]
ReplyKind = Literal["calls", "text", "thinking_only", "cut_off", "refused", "empty"]


@dataclass(slots=True)
class ModelReply:
    """What the model said. Nobody changes it; not frozen, for that costs in every turn.

    extra        kept with the message and handed back unchanged (see `Message.extra`)
    enforced_by  "provider" when the request could express the permit, "maymust" when only the second gate holds it
    level        how the permit reached the model, 1 to 5 (design 3.11); 0 when the model was asked in some other way
    finish       whether the reply is whole, was cut off at the limit of tokens, or was refused by the model or a filter
    thought      whether there was reasoning in it
    lost         what the provider refused in this call, so that the request had to be made another way
    retries      attempts that failed before this one
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = NO_USAGE
    extra: Mapping[str, Any] = field(default_factory=dict)
    enforced_by: str = "maymust"
    level: int = 0
    finish: Finish = "stop"
    thought: bool = False
    lost: tuple[Lost, ...] = ()
    retries: int = 0

    @property
    def kind(self) -> ReplyKind:
        """What came of the call, in a word."""
        if self.calls:
            return "calls"
        if self.text.strip():
            return "text"
        if self.finish != "stop":
            return self.finish
        return "thinking_only" if self.thought else "empty"


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

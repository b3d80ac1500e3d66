"""What a request and a reply say, whatever the protocol: the values between the dialects and the judging.

What there is many of in a request is not frozen, for that would cost in each; nobody changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from maymust.gateway.raw_json import RawObject, read_once

T = TypeVar("T")

_MOST_DERIVED = 16
"""What a list is asked for hangs on what clients write: only so much is kept of each."""


@dataclass(slots=True)
class Said:
    """The user said something: a run begins after it."""

    text: str


@dataclass(slots=True)
class Returned:
    """The result of a call as the client tells it. `failed` is the protocol's flag, False where there is none."""

    call_id: str
    text: str
    failed: bool = False


@dataclass(slots=True)
class Called:
    """A call of an earlier reply.

    arguments   as they were written; `arguments_of` reads them
    outcome     known for calls that the provider ran itself, else it is in a `Returned`
    returned    the result, once `read_story` has found it
    """

    call_id: str
    name: str
    arguments: Any
    outcome: Literal["ok", "failed"] | None = None
    returned: Returned | None = None


@dataclass(slots=True)
class Missing:
    """Something of the conversation is not in the request; `what` says what."""

    what: str


Past: TypeAlias = Said | Called | Returned | Missing


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool of the request.

    place       which item of the list it is
    parameters  its schema, where it has one
    hosted      the provider runs it, or the protocol has a form of its own for its calls
    nested      it is a part of the item, not all of it
    local       the client runs it, although it is `hosted` by its form
    """

    name: str
    place: int
    parameters: Mapping[str, Any] | None = None
    hosted: bool = False
    nested: bool = False
    local: bool = False


class Derived:
    """What was made of a list of tools for earlier requests, by all that it hangs on."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` makes, or made before for this key."""
        found: T | None = self._made.get(key)
        if found is None:
            found = make()
            if len(self._made) >= _MOST_DERIVED:
                self._made.clear()
            self._made[key] = found
        return found


@dataclass(frozen=True, slots=True)
class ToolList:
    """A list of tools that was read.

    values   the list as JSON has it; nobody changes it
    derived  what was made of it; None for a list that is not kept
    """

    values: list[Any]
    tools: tuple[OfferedTool, ...]
    derived: Derived | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A `tool_choice`: how much is asked for, and among which tools (None: all)."""

    mode: Literal["auto", "required", "none"] = "auto"
    names: tuple[str, ...] | None = None


@dataclass(slots=True)
class Asked:
    """A request that was read.

    where   which member the conversation is in
    tools   its tools, in order
    choice  what the client wrote, None when it wrote nothing
    past    the conversation, in order
    thinks  whether it asks for reasoning; None where it does not say
    kept    what was made of these very tools before; None where nothing is kept
    """

    body: RawObject
    model: str
    stream: bool
    where: str = "messages"
    tools: tuple[OfferedTool, ...] = ()
    choice: Choice | None = None
    past: list[Past] = field(default_factory=list)
    thinks: bool | None = None
    kept: Derived | None = None

    def offer(self, listed: ToolList, later: tuple[OfferedTool, ...] = ()) -> None:
        """Take the tools of a list, and those that come later in the conversation."""
        self.tools = (*listed.tools, *later) if later else listed.tools
        self.kept = None if later else listed.derived

    def forget(self) -> None:
        """Let go of what was read of the conversation: while the model thinks, only what the rules may still ask for is kept."""
        self.past = []
        self.body.forget(self.where)

    def derived(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` makes of the tools and of what the key speaks of; made once while the list is kept."""
        return make() if self.kept is None else self.kept.get(key, make)


@dataclass(frozen=True, slots=True)
class Call:
    """A call in a reply. `place` is where it stands, in the numbering of its protocol."""

    place: int
    call_id: str
    name: str
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of the model.

    calls    what the client would run
    message  the reply in its protocol's form, to be put before the model when it is asked again
    open     the provider only pauses: the reply is neither an answer nor a call
    """

    text: str
    calls: tuple[Call, ...]
    message: Any
    open: bool = False


def arguments_of(raw: Any) -> Mapping[str, Any] | None:
    """Arguments as a mapping; empty where there are none. None for what is no JSON object, or could be read in two ways."""
    if isinstance(raw, dict):
        return raw
    if not isinstance(raw, str):
        return None
    value = read_once(raw)
    return {} if value is None and raw.strip() in ("", "null") else value


def text_of(content: Any) -> str:
    """The text of a content: a text, or the texts among its parts, one a line."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))

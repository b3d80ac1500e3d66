"""What the gateway needs of a protocol. Nothing else in it knows how a protocol writes things down."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from maymust.gateway.conversation import Asked, Call, Choice, Derived, OfferedTool, Reply, ToolList
from maymust.gateway.raw_json import Edits, RawObject
from maymust.gateway.read_body import as_list
from maymust.gateway.rejected import Rejected
from maymust.models.capability_table import Api


@dataclass(frozen=True, slots=True)
class Answers:
    """What the model is told when it is asked again.

    calls  what its calls came to, with a text each
    nudge  what is wrong with a reply without calls; also where calls cannot be answered by themselves
    """

    calls: tuple[tuple[Call, str], ...] = ()
    nudge: str = ""


class StreamForm(Protocol):
    """How replies are streamed. One object reads the streams of one client request, one after another.

    marks  an event that begins a call of the client's has one of these in it, perhaps written with escapes
    """

    marks: tuple[bytes, ...]

    def begins_call(self, event: bytes) -> bool:
        """Whether a call of the client's begins here. Raises ValueError for what cannot be read."""
        ...

    def read(self, events: Sequence[bytes]) -> tuple[Reply, bool]:
        """The reply that these events tell, and whether it is whole. Raises ValueError for what cannot be read."""
        ...

    def read_calls(self, held: Sequence[bytes]) -> tuple[Reply, bool] | None:
        """What `read` returns, without the text before the calls: of the events from the first call on. None where it takes all events."""
        ...

    def sent(self, events: Sequence[bytes]) -> None:
        """Take note of events the client has got, from a reply that will be followed by another one in the same stream."""
        ...

    def rewritten(self, events: Sequence[bytes], refused: Collection[int]) -> list[bytes]:
        """The events without these calls, going on from what was sent."""
        ...

    def error(self, rejected: Rejected) -> bytes:
        """An error in the middle of a stream."""
        ...


class Dialect(Protocol):
    """A protocol.

    name    its name, as in the metrics
    api     its name in the table of capabilities
    ending  how its path ends
    tools   the lists of tools it has read
    """

    name: str
    api: Api
    ending: str
    tools: Tools

    def ask(self, raw: RawObject, known: Collection[str]) -> Asked:
        """Read a request. `known` are the names of the policy. Raises Rejected."""
        ...

    def choice(self, choice: Choice, given: Any) -> Any:
        """A `tool_choice`, as it is written here. `given` is what the client wrote."""
        ...

    def narrowed(self, tool: Any, parameters: Mapping[str, Any]) -> Any:
        """The item of a tool with another schema."""
        ...

    def more(self, asked: Asked, replies: Sequence[tuple[Reply, Answers]], reason: str, *, system: bool) -> Edits:
        """What to add to the conversation.

        replies  the replies so far that were not taken, with what is said of them
        reason   a last message, empty for none
        system   whether it may be one of the system's
        """
        ...

    def read_reply(self, answer: Mapping[str, Any], known: Collection[str]) -> Reply:
        """Read a reply in one piece. Raises ValueError for what is none."""
        ...

    def without(self, answer: dict[str, Any], refused: Collection[int]) -> dict[str, Any]:
        """The reply without these calls."""
        ...

    def stream(self, known: Collection[str]) -> StreamForm:
        """A reader of streams, for one request of a client."""
        ...

    def error(self, rejected: Rejected) -> dict[str, Any]:
        """The body of an error."""
        ...


def ids_of(calls: Sequence[tuple[Call, str]], number: int) -> dict[int, str]:
    """An id for each of these calls, by place: its own, unless it has none or shares it; `number` tells replies apart."""
    found: dict[int, str] = {}
    for call, _ in calls:
        own = call.call_id
        found[call.place] = own if own and own not in found.values() else f"call_maymust_{number}_{call.place}"
    return found


class Tools:
    """Lists of tools that were read before: most requests have the list of the one before them.

    read   reads a list. Raises Rejected
    """

    def __init__(self, read: Callable[[list[Any]], Iterable[OfferedTool]]) -> None:
        self._read = read
        self._known: dict[str, ToolList] = {}

    def at(self, text: str, place: int) -> tuple[ToolList, int] | None:
        """The known list that stands at this place of a text, and where it ends."""
        for known, listed in self._known.items():
            if text.startswith(known, place):
                return listed, place + len(known)
        return None

    def of(self, raw: RawObject) -> ToolList:
        """The tools of a request. Raises Rejected."""
        if isinstance(raw.known, ToolList):
            return raw.known
        items = as_list(raw.values, "tools")
        if not items:
            return _NO_TOOLS
        text = raw.value_text("tools")
        found = self._known.get(text)
        if found is None:
            if len(text) > _LONGEST:
                return ToolList(items, tuple(self._read(items)))
            found = ToolList(items, tuple(self._read(items)), Derived())
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[text] = found
        return found


_NO_TOOLS = ToolList([], ())
_MOST = 32
_LONGEST = 65_536
"""Lists come from clients: only so many are kept, and no longer ones."""

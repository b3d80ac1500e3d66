"""The streams of OpenAI Responses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from maymust.gateway.conversation import Reply, arguments_of
from maymust.gateway.rejected import Rejected
from maymust.gateway.responses_items import calls_client, reply_of
from maymust.gateway.sse import event_of, object_of
from maymust.gateway.stray import refuse_strays

_ENDS = ("response.completed", "response.incomplete")
_ARGUMENTS = ("response.function_call_arguments.", "response.custom_tool_call_input.")
_BEGINS = ("response.created", "response.in_progress", "response.queued")


class ResponsesStream:
    """A reader of streams; see `StreamForm`. `known` are the names of the policy."""

    marks: tuple[bytes, ...] = (b"_call",)

    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        self._id: str | None = None
        self._items: list[Any] = []
        self._offset = 0
        self._sequence: int | None = None

    def begins_call(self, event: bytes) -> bool:
        """Whether a call begins here."""
        value = object_of(event) or {}
        if any(self._is_call(item) for item in _items(value)):
            return True
        refuse_strays(value, self._is_call)
        return _piece_of(value) is not None

    def read(self, events: Sequence[bytes]) -> tuple[Reply, bool]:
        """The reply that these events tell, and whether it is whole."""
        items: dict[int, Any] = {}
        begun: dict[int, Any] = {}
        pieces: dict[int, list[tuple[str, str]]] = {}
        last: dict[str, Any] | None = None
        for event in events:
            value = object_of(event) or {}
            kind, piece = value.get("type"), _piece_of(value)
            if piece is not None:
                pieces.setdefault(_index(value), []).append(piece)
                continue
            if b"_call" in event or b"\\u00" in event:
                refuse_strays(value, self._is_call, but=_items(value))
            if kind in ("response.output_item.added", "response.output_item.done"):
                kept = begun if kind.endswith("added") else items
                if _index(value) in kept:
                    raise ValueError("two items of the stream have one number")
                kept[_index(value)] = _item(value)
            elif kind in _ENDS:
                last = _response(value)
        if sorted(items) != list(range(len(items))):
            raise ValueError("the items of the stream are not numbered one after another")
        told = [items[index] for index in sorted(items)]
        if last is not None:
            self._check(items, begun, pieces)
        reply = reply_of(told, (last or {}).get("status"), self._known)
        if last is not None and last.get("output"):
            whole = reply_of(last["output"], last.get("status"), self._known)
            if items and [_spelled(call) for call in whole.calls] != [_spelled(call) for call in reply.calls]:
                raise ValueError("the end of the stream tells of other calls than the stream itself")
            reply = whole
        return reply, last is not None

    def _is_call(self, item: Mapping[str, Any]) -> bool:
        return calls_client(item, self._known)

    def _check(self, items: Mapping[int, Any], begun: Mapping[int, Any], pieces: Mapping[int, Sequence[tuple[str, str]]]) -> None:
        """Raise ValueError for a call that is told in two ways, or not to its end: a client may go by the other one."""
        for index, item in begun.items():
            done = items.get(index, {})
            same = item.get("type") == done.get("type") and item.get("name") in (None, "", done.get("name"))
            if not same and (self._is_call(item) or self._is_call(done)):
                raise ValueError("a call of the stream ends as another one than it began, or not at all")
        for index, told in pieces.items():
            item = items.get(index, {})
            joined = "".join(text for kind, text in told if kind == "delta")
            for raw in [text for kind, text in told if kind == "done"] + ([joined] if joined else []):
                own = item.get("arguments", item.get("input"))
                if raw != own and (arguments_of(raw) is None or arguments_of(raw) != arguments_of(own)):
                    raise ValueError("the arguments of a call are told in two ways")

    def read_calls(self, held: Sequence[bytes]) -> tuple[Reply, bool] | None:
        """Never: the items are numbered from the beginning of the stream on."""
        return None

    def sent(self, events: Sequence[bytes]) -> None:
        """Take note of events the client has got."""
        for event in events:
            value = object_of(event) or {}
            if isinstance(value.get("sequence_number"), int):
                self._sequence = value["sequence_number"]
            if value.get("type") == "response.created" and self._id is None:
                self._id = _response(value).get("id")
            elif value.get("type") == "response.output_item.added":
                self._offset += 1
            elif value.get("type") == "response.output_item.done":
                self._items.append(_item(value))

    def rewritten(self, events: Sequence[bytes], refused: Collection[int]) -> list[bytes]:
        """The events without these calls, going on from what was sent."""
        made: list[bytes] = []
        number = self._sequence
        for event in events:
            value = object_of(event)
            if value is None:
                made.append(event)
                continue
            changed = self._changed(value, refused)
            if changed is None:
                continue
            if isinstance(changed.get("sequence_number"), int):
                number = changed["sequence_number"] if number is None else number + 1
                changed["sequence_number"] = number
                if self._sequence is not None:
                    self._sequence = number
            made.append(event_of(changed, str(changed.get("type"))))
        return made

    def _changed(self, value: dict[str, Any], refused: Collection[int]) -> dict[str, Any] | None:
        if value.get("type") in _BEGINS and self._id is not None:
            return None
        changed = dict(value)
        if "output_index" in value:
            index = _index(value)
            if index in refused:
                return None
            changed["output_index"] = index - sum(place < index for place in refused) + self._offset
        response = value.get("response")
        if isinstance(response, dict):
            output = [item for place, item in enumerate(_list(response.get("output"))) if place not in refused]
            own = {"id": self._id} if self._id is not None else {}
            changed["response"] = {**response, **own, "output": [*self._items, *output]}
        return changed

    def error(self, rejected: Rejected) -> bytes:
        """An error in the middle of a stream."""
        number = 0 if self._sequence is None else self._sequence + 1
        message = f"maymust: {rejected.message}"
        fault = {"type": "error", "code": rejected.fault, "message": message, "param": None, "sequence_number": number}
        # OpenAI's own SDK raises only for what has an `error`; without one, a stream would just end.
        return event_of({**fault, "error": {"message": message, "code": rejected.fault, "type": "maymust_error"}}, "error")


def _item(value: dict[str, Any]) -> dict[str, Any]:
    item = value.get("item")
    if not isinstance(item, dict):
        raise ValueError("an item of the stream is no object")
    return item


def _response(value: Mapping[str, Any]) -> dict[str, Any]:
    response = value.get("response") or {}
    if not isinstance(response, dict):
        raise ValueError("the response in the stream is no object")
    return response


def _list(value: Any) -> list[Any]:
    if not isinstance(value or [], list):
        raise ValueError("the output of the stream is no list")
    return value or []


def _items(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The items that an event tells of, where items belong. A server may send them only at the end."""
    if value.get("type") in ("response.output_item.added", "response.output_item.done"):
        return [_item(value)]
    told = _list(_response(value).get("output")) if value.get("type") in _ENDS else ()
    return [item for item in told if isinstance(item, dict)]


def _piece_of(value: Mapping[str, Any]) -> tuple[str, str] | None:
    """What an event tells of the arguments of a call: whether a piece or all of them, and the text; None for other events."""
    kind = value.get("type")
    if not isinstance(kind, str) or not kind.startswith(_ARGUMENTS):
        return None
    which = "delta" if kind.endswith(".delta") else "done"
    text = value.get(which) if which == "delta" else value.get("arguments", value.get("input"))
    return which, text if isinstance(text, str) else ""


def _index(value: dict[str, Any]) -> int:
    index = value.get("output_index")
    if type(index) is not int:
        raise ValueError("an item of the stream has no index")
    return index


def _spelled(call: Any) -> tuple[str, str, Any]:
    return call.call_id, call.name, call.arguments

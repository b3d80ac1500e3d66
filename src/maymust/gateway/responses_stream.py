"""The streams of OpenAI Responses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from maymust.gateway.conversation import Reply
from maymust.gateway.rejected import Rejected
from maymust.gateway.responses_items import calls_client, reply_of
from maymust.gateway.sse import event_of, object_of

_ENDS = ("response.completed", "response.incomplete")
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
        if value.get("type") in ("response.output_item.added", "response.output_item.done"):
            return calls_client(_item(value), self._known)
        # A server may send items only at the end.
        output = (value.get("response") or {}).get("output")
        return value.get("type") in _ENDS and any(isinstance(item, dict) and calls_client(item, self._known) for item in output or ())

    def read(self, events: Sequence[bytes]) -> tuple[Reply, bool]:
        """The reply that these events tell, and whether it is whole."""
        items: dict[int, Any] = {}
        last: dict[str, Any] | None = None
        for event in events:
            value = object_of(event) or {}
            if value.get("type") == "response.output_item.done":
                items[_index(value)] = _item(value)
            elif value.get("type") in _ENDS:
                last = value.get("response") or {}
        if sorted(items) != list(range(len(items))):
            raise ValueError("the items of the stream are not numbered one after another")
        told = [items[index] for index in sorted(items)]
        reply = reply_of(told, (last or {}).get("status"), self._known)
        if last is not None and last.get("output"):
            whole = reply_of(last["output"], last.get("status"), self._known)
            if items and [_spelled(call) for call in whole.calls] != [_spelled(call) for call in reply.calls]:
                raise ValueError("the end of the stream tells of other calls than the stream itself")
            reply = whole
        return reply, last is not None

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
                self._id = (value.get("response") or {}).get("id")
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
            output = [item for place, item in enumerate(response.get("output") or ()) if place not in refused]
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


def _index(value: dict[str, Any]) -> int:
    index = value.get("output_index")
    if not isinstance(index, int):
        raise ValueError("an item of the stream has no index")
    return index


def _spelled(call: Any) -> tuple[str, str, Any]:
    return call.call_id, call.name, call.arguments

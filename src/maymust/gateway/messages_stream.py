"""The streams of Anthropic Messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from maymust.gateway.conversation import Reply, arguments_of
from maymust.gateway.rejected import Rejected
from maymust.gateway.sse import event_of, object_of
from maymust.gateway.stray import refuse_strays

_PIECES = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class MessagesStream:
    """A reader of streams; see `StreamForm`. `reply_of` makes a reply of blocks and the reason of the end."""

    marks: tuple[bytes, ...] = (b"tool_use",)

    def __init__(self, reply_of: Callable[[Sequence[Any], Any], Reply]) -> None:
        self._reply_of = reply_of
        self._begun = False
        self._next = 0

    def begins_call(self, event: bytes) -> bool:
        """Whether a call begins here."""
        value = object_of(event) or {}
        if value.get("type") == "content_block_start" and _is_call(_block(value)):
            return True
        refuse_strays(value, _is_call)
        return False

    def read(self, events: Sequence[bytes]) -> tuple[Reply, bool]:
        """The reply that these events tell, and whether it is whole."""
        blocks: dict[int, dict[str, Any]] = {}
        raw: dict[int, str] = {}
        stop: Any = None
        whole = False
        for event in events:
            value = object_of(event) or {}
            kind = value.get("type")
            begun = _block(value) if kind == "content_block_start" else None
            if b"tool_use" in event or b"\\u00" in event:
                refuse_strays(value, _is_call, but=(begun,))
            if begun is not None:
                if _index(value) in blocks:
                    raise ValueError("two blocks of the stream have one number")
                blocks[_index(value)] = dict(begun)
            elif kind == "content_block_delta":
                _grow(blocks, raw, value)
            elif kind == "message_delta":
                stop = _delta(value).get("stop_reason") or stop
            whole = whole or kind == "message_stop" or stop is not None
        for index, block in blocks.items():
            if block.get("type") == "tool_use" and raw.get(index):
                block["input"] = arguments_of(raw[index])
        if sorted(blocks) != list(range(len(blocks))):
            raise ValueError("the blocks of the stream are not numbered one after another")
        return self._reply_of([blocks[index] for index in sorted(blocks)], stop), whole

    def read_calls(self, held: Sequence[bytes]) -> tuple[Reply, bool] | None:
        """Never: the blocks are numbered from the beginning of the stream on."""
        return None

    def sent(self, events: Sequence[bytes]) -> None:
        """Take note of events the client has got."""
        for event in events:
            value = object_of(event) or {}
            self._begun = self._begun or value.get("type") == "message_start"
            if value.get("type") == "content_block_start":
                self._next += 1

    def rewritten(self, events: Sequence[bytes], refused: Collection[int]) -> list[bytes]:
        """The events without these calls, going on from what was sent."""
        made: list[bytes] = []
        for event in events:
            value = object_of(event)
            if value is None:
                made.append(event)
            elif value.get("type") == "message_start" and self._begun:
                continue
            elif "index" not in value:
                made.append(event)
            elif _index(value) not in refused:
                dropped = sum(place < _index(value) for place in refused)
                made.append(event_of({**value, "index": _index(value) - dropped + self._next}, str(value.get("type"))))
        return made

    def error(self, rejected: Rejected) -> bytes:
        """An error in the middle of a stream."""
        fault = {"type": f"maymust_{rejected.fault}", "message": f"maymust: {rejected.message}"}
        return event_of({"type": "error", "error": fault}, "error")


def _block(value: dict[str, Any]) -> dict[str, Any]:
    block = value.get("content_block")
    if not isinstance(block, dict):
        raise ValueError("a block of the stream is no object")
    return block


def _is_call(one: Mapping[str, Any]) -> bool:
    return one.get("type") == "tool_use"


def _delta(value: dict[str, Any]) -> dict[str, Any]:
    delta = value.get("delta") or {}
    if not isinstance(delta, dict):
        raise ValueError("a piece of the stream is no object")
    return delta


def _index(value: dict[str, Any]) -> int:
    index = value.get("index")
    if type(index) is not int:
        raise ValueError("a block of the stream has no index")
    return index


def _grow(blocks: dict[int, dict[str, Any]], raw: dict[int, str], value: dict[str, Any]) -> None:
    index, delta = _index(value), _delta(value)
    if index not in blocks:
        raise ValueError("a piece of a block came before the block")
    kind = delta.get("type")
    if kind == "input_json_delta":
        raw[index] = raw.get(index, "") + str(delta.get("partial_json", ""))
    elif kind in _PIECES:
        key = _PIECES[kind]
        blocks[index][key] = str(blocks[index].get(key, "")) + str(delta.get(key, ""))

"""The streams of Chat Completions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from maymust.gateway.chat_reply import REASONING, reply_of
from maymust.gateway.conversation import Reply
from maymust.gateway.rejected import Rejected
from maymust.gateway.sse import event_of, object_of
from maymust.gateway.stray import refuse_strays


class ChatStream:
    """A reader of streams; see `StreamForm`."""

    marks: tuple[bytes, ...] = (b"tool_calls", b"function_call")

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._last: tuple[bytes, dict[str, Any] | None] = (b"", None)

    def begins_call(self, event: bytes) -> bool:
        """Whether a call begins here."""
        value = object_of(event)
        # It will be read with all that follow.
        self._last = (event, value)
        delta = _delta(value)
        if delta.get("tool_calls") or delta.get("function_call") is not None:
            return True
        refuse_strays(value, _has_calls)
        return False

    def read(self, events: Sequence[bytes]) -> tuple[Reply, bool]:
        """The reply that these events tell, and whether it is whole."""
        text: list[str] = []
        kept: dict[str, Any] = {}
        calls: dict[int, dict[str, Any]] = {}
        whole = False
        seen, known = self._last
        for event in events:
            value = known if event == seen else object_of(event)
            if value is None:
                whole = whole or b"[DONE]" in event
                continue
            choice = _choice(value)
            whole = whole or choice.get("finish_reason") is not None
            delta = choice.get("delta")
            if _says_more(event, delta):
                refuse_strays(value, _has_calls, but=(delta,))
            if not isinstance(delta, dict):
                continue
            if isinstance(delta.get("content"), str):
                text.append(delta["content"])
            if delta.get("function_call") is not None:
                raise ValueError("it has a function_call of the old form, which nobody asked for")
            for key in REASONING:
                if delta.get(key):
                    kept[key] = kept[key] + delta[key] if type(kept.get(key)) is type(delta[key]) else delta[key]
            for piece in _pieces(delta):
                _add(calls, piece)
        message = {"content": "".join(text), "tool_calls": [calls[place] for place in sorted(calls)], **kept}
        return reply_of(message), whole

    def read_calls(self, held: Sequence[bytes]) -> tuple[Reply, bool] | None:
        """The calls alone: whatever came before the first of them is text."""
        return self.read(held)

    def sent(self, events: Sequence[bytes]) -> None:
        """Take note of events the client has got."""
        for event in events:
            value = object_of(event)
            if value is not None and not self._head:
                self._head = {key: value[key] for key in ("id", "created", "model") if key in value}

    def rewritten(self, events: Sequence[bytes], refused: Collection[int]) -> list[bytes]:
        """The events without these calls, going on from what was sent."""
        order = sorted({_index(piece) for event in events for piece in _pieces(_delta(object_of(event)))})
        left = [index for place, index in enumerate(order) if place not in refused]
        made: list[bytes] = []
        for event in events:
            value = object_of(event)
            if value is None:
                made.append(event)
                continue
            changed = _without(value, {index: place for place, index in enumerate(left)})
            if changed is not None:
                made.append(event_of({**changed, **self._head}))
        return made

    def error(self, rejected: Rejected) -> bytes:
        """An error in the middle of a stream."""
        message = f"maymust: {rejected.message}"
        return event_of({"error": {"message": message, "type": "maymust_error", "param": None, "code": rejected.fault}})


def _choice(value: Mapping[str, Any] | None) -> Mapping[str, Any]:
    choices = (value or {}).get("choices")
    if not choices:
        return {}
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict) or choices[0].get("index", 0) != 0:
        raise ValueError("an event has another choice than the one that was asked for")
    return choices[0]


def _delta(value: Mapping[str, Any] | None) -> Mapping[str, Any]:
    delta = _choice(value).get("delta")
    return delta if isinstance(delta, dict) else {}


def _pieces(delta: Mapping[str, Any]) -> list[Any]:
    pieces = delta.get("tool_calls") or []
    if not isinstance(pieces, list):
        raise ValueError("the tool_calls of an event are no list")
    return pieces


def _has_calls(one: Mapping[str, Any]) -> bool:
    return any(isinstance(one.get(key), dict | list) and bool(one[key]) for key in ("tool_calls", "function_call"))


def _says_more(event: bytes, delta: Any) -> bool:
    """Whether an event speaks of calls more often than its delta has to."""
    own = 1 if isinstance(delta, dict) and delta.get("tool_calls") else 0
    return event.count(b"tool_calls") + event.count(b"function_call") > own or b"\\u00" in event


def _finished(value: Mapping[str, Any] | None) -> bool:
    return _choice(value).get("finish_reason") is not None


def _index(piece: Any) -> int:
    index = piece.get("index", 0) if isinstance(piece, dict) else None
    if type(index) is not int or index < 0:
        raise ValueError("a call in the stream has no index")
    return index


def _add(calls: dict[int, dict[str, Any]], piece: Any) -> None:
    """Add a piece of a call, joining texts as OpenAI's own SDK does."""
    call = calls.setdefault(_index(piece), {"id": "", "type": "function"})
    if isinstance(piece.get("id"), str) and not call["id"]:
        call["id"] = piece["id"]
    if isinstance(piece.get("type"), str):
        call["type"] = piece["type"]
    for kind in ("function", "custom"):
        part = piece.get(kind) or {}
        if not isinstance(part, dict):
            raise ValueError(f"the {kind} of a call is no object")
        for key, text in part.items():
            form = call.setdefault(kind, {})
            if key == "name" and text and form.get("name"):
                # Some clients join the pieces, some go by the first one, some by the last.
                raise ValueError("the name of a call is told twice, so it could be read in two ways")
            form[key] = form.get(key, "") + text if isinstance(text, str) else form.get(key, "")


def _without(value: dict[str, Any], places: Mapping[int, int]) -> dict[str, Any] | None:
    """The chunk with the calls that are left, numbered anew; None when nothing is left of it."""
    delta = _delta(value)
    pieces = delta.get("tool_calls")
    if not pieces:
        return value
    kept = [{**piece, "index": places[_index(piece)]} for piece in pieces if _index(piece) in places]
    rest = {key: part for key, part in delta.items() if key != "tool_calls"}
    if not kept and not any(rest.values()) and not _finished(value) and not value.get("usage"):
        return None
    choice = {**_choice(value), "delta": {**rest, **({"tool_calls": kept} if kept else {})}}
    return {**value, "choices": [choice]}

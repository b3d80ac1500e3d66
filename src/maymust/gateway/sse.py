"""Server-sent events, cut out of a stream without a change of a byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from maymust.gateway.raw_json import read_once

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r|\r\n\n|\n\r\n")
_DONE = b"data: [DONE]\n\n"
_LINE = re.compile(rb"\r\n|\n|\r")


class Splitter:
    """Cuts a stream into its events, each with the empty line after it. `rest` is what has no end yet."""

    __slots__ = ("_seen", "rest")

    def __init__(self) -> None:
        self.rest: bytes = b""
        self._seen = 0

    def take(self, data: bytes) -> bytes:
        """The events that are whole now, in one piece."""
        text = self.rest + data
        end = text.rfind(b"\n\n") + 2
        if b"\r" in text or text[end - 3 : end - 2] == b"\n":
            # Other ends, or one of which it hangs on the lines before where it is.
            return b"".join(self.feed(data))
        end = end if end > 1 else 0
        self.rest = text[end:]
        self._seen = len(self.rest)
        return text[:end]

    def feed(self, data: bytes) -> list[bytes]:
        """The events that are whole now."""
        text = self.rest + data
        if b"\r" not in text:
            # As most streams are; all other ends of an event have that mark.
            whole = text.split(b"\n\n")
            self.rest = whole.pop()
            self._seen = len(self.rest)
            return [event + b"\n\n" for event in whole]
        events, at = [], 0
        # What was searched before has no end in it; an end may begin three bytes before the new part.
        begin = max(0, self._seen - 3)
        for found in _END.finditer(text, begin):
            events.append(text[at : found.end()])
            at = found.end()
        self.rest = text[at:]
        self._seen = len(self.rest)
        return events


def events_of(pieces: Iterable[bytes]) -> list[bytes]:
    """The events in pieces that end where one of them does. The last one may have no empty line after it."""
    events: list[bytes] = []
    for piece in pieces:
        splitter = Splitter()
        events += splitter.feed(piece)
        if splitter.rest:
            events.append(splitter.rest)
    return events


def data_of(event: bytes) -> str | None:
    """What an event carries, None for one without data (a comment, a retry). Raises ValueError for what is not UTF-8."""
    if event.startswith(b"data: ") and event.endswith(b"\n\n") and event.count(b"\n") == 2 and b"\r" not in event:
        return event[6:-2].decode("utf-8")  # as most events are
    lines = []
    for line in _LINE.split(event):
        if line.startswith(b"data:"):
            lines.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line == b"data":
            lines.append(b"")
    return b"\n".join(lines).decode("utf-8") if lines else None


def object_of(event: bytes) -> dict[str, Any] | None:
    """The JSON object that an event carries; None for one without data, and for the `[DONE]` at the end of a stream.

    Raises ValueError for anything else, and for an object that could be read in two ways.
    """
    if event == _DONE:
        return None
    data = data_of(event)
    if data is None or data.strip() == "[DONE]":
        return None
    value = read_once(data)
    if value is None:
        raise ValueError("an event of the stream carries no JSON object, or one that could be read in two ways")
    return value


def event_of(value: dict[str, Any], name: str | None = None) -> bytes:
    """An event that carries this object."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()

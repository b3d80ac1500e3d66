"""A JSON object that keeps its text: only what has to be changed is written anew, everything else stays as it came, byte for byte."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from maymust.gateway.rejected import bad

_SPACE = re.compile(r"[ \t\n\r]*")
_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_NEXT = re.compile(r'[ \t\n\r]*,[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')
"""From the end of a member to the value of the next one, where its key is written without escapes."""
_MARK = re.compile(r"[ \t\n\r]*([,}])[ \t\n\r]*")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


@dataclass(slots=True)
class Member:
    """Where a member of the object stands in the text: from its key to the end of its value."""

    start: int
    value: int
    end: int


@dataclass(slots=True)
class RawObject:
    """The text of an object with its members.

    data    the text in UTF-8
    values  the members
    spans   where each stands in the text
    known   the list of tools, where it is one that was read before
    """

    data: bytes
    values: dict[str, Any] = field(default_factory=dict)
    spans: dict[str, Member] = field(default_factory=dict)
    known: KnownList | None = None
    _text: str | None = None

    @property
    def text(self) -> str:
        """The text."""
        text = self._text
        if text is None:
            text = self._text = self.data.decode("utf-8")
        return text

    def forget(self, key: str) -> None:
        """Let go of the text, which is still in `data`, and of the items of a list that nobody looks at any more."""
        self._text = None
        if isinstance(self.values.get(key), list):
            del self.values[key]

    def has_items(self, key: str) -> bool:
        """Whether a member is a list with something in it."""
        span = self.spans.get(key)
        return span is not None and self.text[span.value] == "[" and self.text[_skip(self.text, span.value + 1)] != "]"

    def item_texts(self, key: str) -> list[str]:
        """The text of each item of a member that is a list."""
        return [self.text[start:end] for start, end in _items(self.text, self.spans[key].value)]

    def value_text(self, key: str) -> str:
        """The text of one value."""
        span = self.spans[key]
        return self.text[span.value : span.end]


@dataclass(slots=True)
class Edits:
    """Changes of one object, by key: a new value as JSON, or None to leave the member out. `added` are items for the ends of lists."""

    values: dict[str, str | None] = field(default_factory=dict)
    added: dict[str, list[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.values or self.added)


class KnownList(Protocol):
    """A list that was read before."""

    @property
    def values(self) -> list[Any]:
        """The list as JSON has it."""
        ...


class KnownLists(Protocol):
    """Lists that were read before, each by its text."""

    def at(self, text: str, place: int) -> tuple[KnownList, int] | None:
        """The known list that stands at this place of a text, and where it ends."""
        ...


def read_object(data: bytes, tools: KnownLists | None = None) -> RawObject:
    """Read an object from UTF-8. `tools` are known values of its member of that name.

    Raises Rejected for what is no object, or could be read in two ways: repeated keys, another encoding.
    """
    try:
        made = RawObject(data)
        text = made.text
    except UnicodeDecodeError as error:
        raise bad(f"the body is not UTF-8 (byte {error.start})") from None
    try:
        _read(made, text, tools)
        return made
    except RecursionError:
        raise bad("the body is nested too deeply") from None
    except ValueError as error:
        raise bad(f"the body is not valid JSON: {error}") from None


def _read(made: RawObject, text: str, tools: KnownLists | None) -> None:
    at = _SPACE.match(text, 0).end()  # type: ignore[union-attr]
    if text[at : at + 1] != "{":
        # Tells garbage from other values.
        _DECODER.decode(text)
        raise bad("the body has to be a JSON object")
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        _end(text, at + 1)
        return
    start, key, at = _key(text, at)
    while True:
        if key in made.values:
            raise bad(f"the key {key!r} is in the body twice, so it could be read in two ways")
        begin = at
        # A list ends where its text ends, whatever comes after it.
        found = tools.at(text, at) if tools is not None and key == "tools" else None
        if found is None:
            value, at = _DECODER.raw_decode(text, at)
        else:
            made.known, at = found
            value = made.known.values
        made.values[key], made.spans[key] = value, Member(start, begin, at)
        plain = _NEXT.match(text, at)
        if plain is not None:
            start, key, at = plain.start(1) - 1, plain[1], plain.end()
            continue
        mark = _MARK.match(text, at)
        if mark is None:
            raise ValueError(f"a comma is missing at character {_skip(text, at)}")
        if mark[1] == "}":
            _end(text, mark.end())
            return
        start, key, at = _key(text, mark.end())


def _key(text: str, at: int) -> tuple[int, str, int]:
    """Where a key begins, the key, and where its value begins. Raises ValueError."""
    if text[at : at + 1] != '"':
        raise ValueError(f"a key in double quotes is missing at character {at}")
    key, end = _DECODER.raw_decode(text, at)
    colon = _COLON.match(text, end)
    if colon is None:
        raise ValueError(f"a colon is missing at character {_skip(text, end)}")
    return at, key, colon.end()


def _items(text: str, at: int) -> list[tuple[int, int]]:
    """Where each item of the list stands that begins here. The list was read before, so it is one."""
    spans: list[tuple[int, int]] = []
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        spans.append((at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return spans


def _skip(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]


def _end(text: str, at: int) -> None:
    if _skip(text, at) != len(text):
        raise ValueError(f"there is more after the object, from character {at}")


def edited(raw: RawObject, edits: Edits) -> bytes:
    """The text with these changes, as UTF-8. Spaces around members are only lost where a member is left out."""
    new = dict(edits.values)
    for key, items in edits.added.items():
        # A list that is null, or not there, begins with these.
        own = raw.value_text(key)[:-1] + "," if raw.has_items(key) else "["
        new[key] = f"{own}{','.join(items)}]"
    fresh = [f"{json.dumps(key)}:{value}" for key, value in new.items() if key not in raw.spans and value is not None]
    if any(value is None and key in raw.spans for key, value in new.items()):
        kept = (_member(raw, key, new) for key in raw.spans if new.get(key, "") is not None)
        return f"{{{','.join((*kept, *fresh))}}}".encode()
    parts, at = [], 0
    for key, span in raw.spans.items():
        value = new.get(key)
        if value is not None:
            parts += [raw.text[at : span.value], value]
            at = span.end
    close = raw.text.rindex("}")
    lead = "," if fresh and raw.spans else ""
    return "".join((*parts, raw.text[at:close], lead, ",".join(fresh), raw.text[close:])).encode("utf-8")


def _member(raw: RawObject, key: str, new: dict[str, str | None]) -> str:
    span = raw.spans[key]
    value = new.get(key)
    return raw.text[span.start : span.value] + (raw.text[span.value : span.end] if value is None else value)


def read_once(text: str) -> dict[str, Any] | None:
    """An object in which no key is repeated, on any level; None for anything else."""
    try:
        # A text that begins and ends with the object, as most do, has no spaces around it to be looked for.
        value, end = _ONCE.raw_decode(text) if text[:1] == "{" else (None, 0)
        if end != len(text):
            value = _ONCE.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is repeated")
    return made


_ONCE = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)

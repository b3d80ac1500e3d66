"""Words for what is wrong with a value: where it is, what was expected, what came."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maymust.core.tool_spec import closest

_SHOWN = 80
_LINES = 20
_VALUES = 50

_BOUNDS: dict[str, str] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matching the pattern {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}
_TYPES = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "text",
}
# Said elsewhere, or about nothing a value could break.
_SILENT = frozenset({"$defs", "default", "definitions", "description", "examples", "format", "title", "writeOnly"})
_KNOWN = frozenset({*_BOUNDS, *_SILENT, "type", "enum", "const", "anyOf", "oneOf", "$ref"})


def shorten(value: Any) -> str:
    """A value as JSON, on one line of at most 80 characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = " ".join(reprlib.repr(value).split())
    return encodable(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def encodable(text: str) -> str:
    """The text with lone surrogates, which no encoder takes, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def lines(faults: Sequence[str]) -> str:
    """One line per fault, cut off where nobody would read on."""
    more = len(faults) - _LINES
    return encodable("\n".join([*faults[:_LINES], *([f"… and {more} more"] if more > 0 else [])]))


def path_of(name: str, location: Iterable[int | str]) -> str:
    """`items[0].price` from the parts of a path."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return (name + "".join(parts)).removeprefix("." if not name else "")


def unknown(name: str, known: Iterable[str]) -> str:
    """The line for an argument that no parameter takes."""
    names = list(known)
    said = name if len(name) <= _SHOWN else name[: _SHOWN - 1] + "…"
    if not names:
        return f"there is no parameter {said!r}; the tool takes none"
    near = closest(name, names)[:1]
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"there is no parameter {said!r}{hint}; parameters: {', '.join(names)}"


def describe(schema: Any, root: Mapping[str, Any] | None = None) -> str:
    """A schema in a few words: "a number, at most 100". References are looked up in `root`."""
    if not isinstance(schema, Mapping):
        return "no value at all" if schema is False else "any value"
    root = schema if root is None else root
    if "$ref" in schema:
        return _described_reference(schema["$ref"], root)
    if "enum" in schema:
        return f"one of {_values(schema['enum'])}" if schema["enum"] else "no value at all"
    if "const" in schema:
        return "only " + shorten(schema["const"])
    words = []
    if options := [describe(option, root) for option in (*schema.get("anyOf", ()), *schema.get("oneOf", ()))]:
        words.append(" or ".join(dict.fromkeys(options)))
    if "type" in schema:
        words.append(_type_words(schema["type"]) + (f" ({schema['format']})" if isinstance(schema.get("format"), str) else ""))
    words += [said.format(shorten(schema[key])) for key, said in _BOUNDS.items() if key in schema]
    if schema.get("type") == "array" and isinstance(schema.get("items"), Mapping) and {"enum", "const"} & schema["items"].keys():
        words.append(f"each item {describe(schema['items'], root)}")
    excluded = schema.get("not")
    if isinstance(excluded, Mapping) and excluded.keys() == {"enum"}:
        words.append(f"other than {_values(excluded['enum'])}")
        schema = {key: value for key, value in schema.items() if key != "not"}
    if others := {key: value for key, value in schema.items() if key not in _KNOWN}:
        words += [] if {"properties", "items"} & others.keys() else ["matching " + shorten(others)]
    return ", ".join(words) or "any value"


def _values(values: Any) -> str:
    """The first of some values, and how many more there are."""
    more = f" and {len(values) - _VALUES} more" if len(values) > _VALUES else ""
    return ", ".join(shorten(item) for item in values[:_VALUES]) + more


def describe_keyword(keyword: str | None, value: Any, message: str) -> str:
    """One keyword of a schema in words; `message` stands in for keywords without words of their own."""
    if keyword in _BOUNDS or keyword in ("enum", "const", "type"):
        return describe({keyword: value})
    return message.removeprefix("data ").removeprefix("must be ") or f"{keyword}: {shorten(value)}"


def _type_words(names: Any) -> str:
    return " or ".join(_TYPES.get(name, str(name)) for name in (names if isinstance(names, list | tuple) else [names]))


def _described_reference(target: Any, root: Mapping[str, Any]) -> str:
    found: Any = root.get("$defs", {}).get(str(target).rpartition("/")[2])
    # A definition may lead to itself; one look is enough for a few words.
    if not isinstance(found, Mapping) or "$ref" in found or "anyOf" in found:
        return "an object"
    return describe(found, root)

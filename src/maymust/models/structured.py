"""Tool calls as constrained output: the allowed tools compiled to one JSON schema, and the output turned back into a call.

    {"anyOf": [{"properties": {"name": {"const": "search"}, "arguments": {...}}, ...}, ...]}

Every string, number and array gets a bound: a small model that may go on, does.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maymust.models.chat_model import ToolDefinition
from maymust.tools.json_schema import SchemaFault, compile_schema

Schema = dict[str, Any]

TEXT = "text"
"""The field of an output that is plain text instead of a call."""

_COMPOSED = ("anyOf", "oneOf", "allOf")
_NOT_FOR_SAMPLING = ("title", "description", "default", "examples", "$defs", "definitions", "$schema", "$id", "deprecated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The size of what may be written where a tool's own schema sets no bound. `depth` limits schemas that contain themselves."""

    characters: int = 240
    items: int = 8
    largest: int = 10**9
    depth: int = 3


class NotACall(ValueError):
    """Output that is no call of an allowed tool. The text says what is wrong with it."""


def call_schema(tools: Sequence[ToolDefinition], *, text: bool = False, bounds: Bounds | None = None) -> Schema:
    """One schema that exactly the calls of these tools satisfy; with `text`, also `{"text": ...}`."""
    bounds = bounds or Bounds()
    branches = [_object({"name": {"const": tool.name}, "arguments": bounded(tool.parameters, bounds)}) for tool in tools]
    if text:
        branches.append(_object({TEXT: {"type": "string", "minLength": 1, "maxLength": 4 * bounds.characters}}))
    return {"anyOf": branches}


def read_call(output: str, tools: Sequence[ToolDefinition]) -> tuple[str, str]:
    """The tool's name and its arguments as JSON text; for plain text the name is empty.

    Raises NotACall for what is cut off, no JSON, another tool, or arguments that break the tool's own schema: no constraint
    covers all of JSON Schema, so nothing is taken on trust.
    """
    try:
        value = json.loads(output)
    except ValueError as error:
        raise NotACall(f"the output is {'empty' if not output.strip() else f'no JSON: {error}'}") from None
    if isinstance(value, dict) and value.keys() == {TEXT} and isinstance(value[TEXT], str):
        return "", value[TEXT]
    if not isinstance(value, dict) or value.keys() != {"name", "arguments"} or not isinstance(value["arguments"], dict):
        raise NotACall("the output is not an object with a name and arguments")
    tool = next((tool for tool in tools if tool.name == value["name"]), None)
    if tool is None:
        raise NotACall(f"{value['name']!r} is none of the allowed tools")
    try:
        _check(json.dumps(dict(tool.parameters), sort_keys=True), tool.name)(value["arguments"])
    except SchemaFault as fault:
        raise NotACall(f"{'.'.join((tool.name, *fault.path))}: expected {fault.wanted}") from None
    return tool.name, json.dumps(value["arguments"], ensure_ascii=False)


@functools.lru_cache(maxsize=512)
def _check(parameters: str, name: str) -> Any:
    return compile_schema(json.loads(parameters), whose=f"The parameters of tool {name!r}")


def bounded(schema: Mapping[str, Any], bounds: Bounds) -> Schema:
    """The schema with references written out, no unknown properties, and a bound on everything that could go on for ever."""
    result = _Bounding(schema, bounds).visit(schema, 0)
    return result if result is not None else _object({})


class _Bounding:
    """One walk over one schema. `visit` gives None for a part that cannot end: a schema inside itself, deeper than the bound."""

    def __init__(self, root: Mapping[str, Any], bounds: Bounds) -> None:
        self.root = root
        self.bounds = bounds

    def visit(self, schema: Any, depth: int) -> Schema | None:
        if schema is False:
            return None
        if not isinstance(schema, Mapping) or not schema.keys() - set(_NOT_FOR_SAMPLING):
            return self._anything()
        if "$ref" in schema:
            if depth >= self.bounds.depth:
                return None
            return self.visit({**self._target(schema["$ref"]), **{key: value for key, value in schema.items() if key != "$ref"}}, depth + 1)
        plain: Schema = {key: value for key, value in schema.items() if key not in _NOT_FOR_SAMPLING}
        if "enum" in plain or "const" in plain:
            return plain
        for word in _COMPOSED:
            if word in plain:
                return self._composed(plain, word, depth)
        kinds = plain.get("type") or _kind_by_words(plain)
        if isinstance(kinds, list):
            return self._composed({"anyOf": [{**plain, "type": kind} for kind in kinds]}, "anyOf", depth)
        return self._of_kind(kinds, plain, depth)

    def _of_kind(self, kind: str | None, plain: Schema, depth: int) -> Schema | None:
        if kind == "string":
            if "format" in plain or "pattern" in plain:
                return plain
            # Never empty unless the tool says so: an empty text is a small model's way out.
            return {"minLength": 1, **plain, "maxLength": self._characters(plain)}
        if kind == "integer":
            return _within(plain, -self.bounds.largest, self.bounds.largest)
        if kind == "number":
            return self._number(plain)
        if kind == "array":
            return self._array(plain, depth)
        if kind == "object":
            return self._of_fields(plain, depth)
        return plain if kind else self._anything()

    def _characters(self, plain: Schema) -> int:
        most = min(plain.get("maxLength", self.bounds.characters), 4 * self.bounds.characters)
        return int(max(most, plain.get("minLength", 0)))

    def _composed(self, plain: Schema, word: str, depth: int) -> Schema | None:
        beside = {key: value for key, value in plain.items() if key != word}
        parts = [{**beside, **part} if isinstance(part, Mapping) else part for part in plain[word]]
        if word == "allOf":
            merged: Schema = {}
            for part in parts:
                merged |= self._target(part["$ref"]) if "$ref" in part else part
            return self.visit(merged, depth + 1)
        possible = [shape for part in parts if (shape := self.visit(part, depth)) is not None]
        return {"anyOf": possible} if possible else None

    def _number(self, plain: Schema) -> Schema:
        """Two decimals from zero up, none below it: a number may have any count of digits, and then it gets them."""
        limited = _within(plain, -self.bounds.largest, self.bounds.largest)
        low = limited["minimum"] if "minimum" in limited else limited["exclusiveMinimum"]
        high = limited["maximum"] if "maximum" in limited else limited["exclusiveMaximum"]
        if "multipleOf" in plain or high - low < 1:
            return limited
        if low >= 0:
            return {**limited, "multipleOf": 0.01}
        below: Schema = {"type": "integer", "minimum": math.ceil(low), "maximum": math.floor(min(high, -1))}
        above: Schema = {"type": "number", "minimum": 0, "maximum": high, "multipleOf": 0.01}
        return {"anyOf": [above, below]} if high > 0 else below

    def _array(self, plain: Schema, depth: int) -> Schema | None:
        items = self.visit(plain.get("items", {}), depth)
        prefix = [self.visit(item, depth) for item in plain.get("prefixItems", ())]
        if None in prefix or (items is None and plain.get("minItems", 0) > len(prefix)):
            return None
        most = (
            len(prefix)
            if items is None
            else max(min(plain.get("maxItems", self.bounds.items), self.bounds.items), plain.get("minItems", 0))
        )
        shape: Schema = {**plain, "maxItems": most, "items": items if items is not None else False}
        return {**shape, "prefixItems": prefix} if prefix else shape

    def _of_fields(self, plain: Schema, depth: int) -> Schema | None:
        if not plain.get("properties"):
            return self._mapping(plain, depth)
        required = list(plain.get("required", ()))
        visited = {name: self.visit(part, depth) for name, part in plain["properties"].items()}
        if any(visited.get(name) is None for name in required):
            return None
        return {**plain, "properties": {name: part for name, part in visited.items() if part is not None}, "additionalProperties": False}

    def _mapping(self, plain: Schema, depth: int) -> Schema:
        """An object of free keys: a few short ones."""
        values = self.visit(plain.get("additionalProperties", {}), depth)
        if values is None:
            return _object({})
        keys = {"patternProperties": {"^[A-Za-z0-9_]{1,24}$": values}, "additionalProperties": False}
        return {"type": "object", **keys, "maxProperties": min(plain.get("maxProperties", 4), 4)}

    def _anything(self) -> Schema:
        kinds: list[Schema] = [{"type": "string", "maxLength": self.bounds.characters}, {"type": "boolean"}, {"type": "null"}]
        return {"anyOf": [*kinds, self._number({"type": "number"})]}

    def _target(self, reference: str) -> Mapping[str, Any]:
        found: Any = self.root
        for part in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
            found = found[part.replace("~1", "/").replace("~0", "~")]
        return found if isinstance(found, Mapping) else {}


def _within(plain: Schema, low: float, high: float) -> Schema:
    lower = {} if "minimum" in plain or "exclusiveMinimum" in plain else {"minimum": low}
    upper = {} if "maximum" in plain or "exclusiveMaximum" in plain else {"maximum": high}
    return {**plain, **lower, **upper}


def _kind_by_words(plain: Schema) -> str | None:
    words = {
        "object": ("properties", "additionalProperties"),
        "array": ("items", "prefixItems"),
        "string": ("maxLength", "pattern", "format"),
    }
    return next((kind for kind, signs in words.items() if any(sign in plain for sign in signs)), None)


def _object(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}

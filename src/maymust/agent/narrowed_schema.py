"""Narrowed tools: a tool's own schema with what the rules leave of its parameters merged in.

Merging only ever helps the model: what cannot be said in one schema is left out, and the second gate holds all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from maymust.core.fragment import Fragment, Undecided, admits, has_value
from maymust.core.permit import Permit
from maymust.models.chat_model import ToolDefinition

Schema = dict[str, Any]

_TIGHTER = {
    "minimum": max,
    "exclusiveMinimum": max,
    "minLength": max,
    "minItems": max,
    "minProperties": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "maxLength": min,
    "maxItems": min,
    "maxProperties": min,
}
_SAID = ("title", "description", "examples", "default")


def narrowed_tools(tools: Iterable[ToolDefinition], permit: Permit) -> tuple[ToolDefinition, ...]:
    """The definitions with their schemas narrowed by the permit; those it does not narrow are the very same objects."""
    return tuple(narrowed_tool(tool, permit.arguments(tool.name)) if tool.name in permit.allowed else tool for tool in tools)


def narrowed_tool(tool: ToolDefinition, arguments: Mapping[str, Sequence[Fragment]]) -> ToolDefinition:
    """The definition with these parameters narrowed. A parameter whose default is not left has to be given."""
    properties = tool.parameters.get("properties", {})
    changed = {
        name: narrowed_schema(properties[name], fragments, tool.parameters) for name, fragments in arguments.items() if name in properties
    }
    if not changed:
        return tool
    needed = [name for name, schema in changed.items() if "default" not in schema and not _may_be_null(schema)]
    required = list(dict.fromkeys((*tool.parameters.get("required", ()), *needed)))
    parameters = {**tool.parameters, "properties": {**properties, **changed}, **({"required": required} if required else {})}
    return replace(tool, parameters=parameters)


def narrowed_schema(own: Any, fragments: Sequence[Fragment], root: Mapping[str, Any]) -> Schema:
    """The schema of one parameter that satisfies its own and all fragments, as far as one schema can say so."""
    schema = dict(own) if isinstance(own, Mapping) else {}
    said = {key: schema[key] for key in _SAID if key in schema}
    narrow = {key: value for key, value in schema.items() if key not in _SAID}
    for fragment in fragments:
        narrow = _both(narrow, fragment, root)
    if "not" not in schema:
        # Few grammars of providers know it. Values that a list leaves are left out of the list above.
        narrow = _without_not(narrow)
    if "default" in said and not all(_admits(fragment, said["default"]) for fragment in fragments):
        del said["default"]
    return {**said, **narrow}


def _without_not(schema: Mapping[str, Any]) -> Schema:
    plain = {key: value for key, value in schema.items() if key != "not"}
    if "anyOf" in plain:
        plain["anyOf"] = [_without_not(part) if isinstance(part, Mapping) else part for part in plain["anyOf"]]
    return plain


def _both(one: Mapping[str, Any], other: Mapping[str, Any], root: Mapping[str, Any]) -> Schema:
    """A schema of the values that satisfy both."""
    pairs = [
        merged for left in _branches(one, root) for right in _branches(other, root) if (merged := _merged(left, right, root)) is not None
    ]
    distinct = [pair for place, pair in enumerate(pairs) if pair not in pairs[:place]]
    if not distinct:
        # Nothing satisfies both as far as can be told here; the rule's own words are still right.
        return dict(other)
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _branches(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Schema]:
    """The schema without references and alternatives: a list of which a value has to satisfy one."""
    plain = dict(schema)
    for _ in range(8):
        if "$ref" not in plain:
            break
        found: Any = root
        for part in str(plain.pop("$ref")).removeprefix("#").strip("/").split("/"):
            found = found.get(part, {}) if isinstance(found, Mapping) else {}
        plain = {**(found if isinstance(found, Mapping) else {}), **plain}
    for word in ("anyOf", "oneOf"):
        if word in plain:
            rest = {key: value for key, value in plain.items() if key not in (word, *_SAID)}
            return [merged for part in plain[word] if (merged := _merged(rest, part, root)) is not None]
    return [plain]


def _merged(one: Any, other: Any, root: Mapping[str, Any]) -> Schema | None:
    """Two schemas without alternatives in one; None when no value satisfies both."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return {}
    if not has_value([one, other]):
        return None
    listed = next((schema for schema in (other, one) if "enum" in schema or "const" in schema), None)
    if listed is not None:
        values = listed["enum"] if "enum" in listed else [listed["const"]]
        left = [value for value in values if _admits(one, value) and _admits(other, value)]
        kind = one.get("type", other.get("type"))
        return {**({"type": kind} if isinstance(kind, str) else {}), "enum": left} if left else None
    merged: Schema = {key: value for key, value in one.items() if key not in _SAID or key not in other}
    for key, value in other.items():
        if key not in merged:
            merged[key] = value
        elif key in _TIGHTER:
            merged[key] = _TIGHTER[key](merged[key], value)
        elif key == "type":
            merged[key] = _common(merged[key], value)
        elif key == "items":
            merged[key] = _both(merged[key], value, root) if isinstance(merged[key], Mapping) and isinstance(value, Mapping) else value
        elif key not in _SAID:
            merged[key] = value
    return merged


def _common(one: Any, other: Any) -> Any:
    """The types that both name. `integer` is a part of `number`."""
    left = [one] if isinstance(one, str) else list(one)
    right = [other] if isinstance(other, str) else list(other)
    both = [kind for kind in left if kind in right or (kind == "integer" and "number" in right)]
    both += [kind for kind in right if kind == "integer" and "number" in left and kind not in both]
    return both[0] if len(both) == 1 else both or one


def _admits(fragment: Mapping[str, Any], value: Any) -> bool:
    try:
        return admits(fragment, value)
    except Undecided:
        return True


def _may_be_null(schema: Mapping[str, Any]) -> bool:
    return _admits({key: value for key, value in schema.items() if key not in _SAID}, None)

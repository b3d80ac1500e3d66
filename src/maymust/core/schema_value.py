"""Whether a JSON value satisfies a JSON Schema: the keywords that parameters of tools use, without a dependency."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any


class Undecided(Exception):
    """The schema has a keyword that this module cannot judge. The text names it."""


# Keywords that say nothing about validity, and those judged together with their neighbour.
_SILENT = frozenset(
    [
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "format",
        "contentEncoding",
        "contentMediaType",
        "$comment",
        "$id",
        "$schema",
        "additionalProperties",
        "then",
        "else",
    ]
)


def json_equal(left: Any, right: Any) -> bool:
    """Equality of JSON values: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(json_equal(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(json_equal(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


def admits(schema: Mapping[str, Any] | bool, value: Any) -> bool:
    """True when `value` satisfies `schema`. Raises Undecided for a keyword not known here: the caller then keeps the call closed."""
    if isinstance(schema, bool):
        return schema
    for keyword, argument in schema.items():
        if keyword in _SILENT and keyword != "additionalProperties":
            continue
        if keyword not in _CHECKS:
            raise Undecided(keyword)
        if not _CHECKS[keyword](argument, value, schema):
            return False
    return True


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_type(name: str, value: Any) -> bool:
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list | tuple)
        case "object":
            return isinstance(value, Mapping)
        case "number":
            return _number(value)
        case "integer":
            return _number(value) and (isinstance(value, int) or (math.isfinite(value) and value == math.floor(value)))
    raise Undecided(f"type {name}")


def _type(argument: Any, value: Any, _: Mapping[str, Any]) -> bool:
    return any(_has_type(name, value) for name in ((argument,) if isinstance(argument, str) else argument))


def _multiple(argument: Any, value: Any, _: Mapping[str, Any]) -> bool:
    if not _number(value):
        return True
    quotient = value / argument
    return bool(abs(quotient - round(quotient)) < 1e-9) if math.isfinite(quotient) else False


def _unique(argument: Any, value: Any, _: Mapping[str, Any]) -> bool:
    if not argument or not isinstance(value, list | tuple):
        return True
    return not any(json_equal(value[i], value[j]) for i in range(len(value)) for j in range(i))


def _items(argument: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    if not isinstance(value, list | tuple):
        return True
    return all(admits(argument, item) for item in value[len(schema.get("prefixItems", ())) :])


def _properties(argument: Any, value: Any, _: Mapping[str, Any]) -> bool:
    return not isinstance(value, Mapping) or all(admits(part, value[key]) for key, part in argument.items() if key in value)


def _additional(argument: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    if "patternProperties" in schema:
        raise Undecided("patternProperties")
    return not isinstance(value, Mapping) or all(admits(argument, value[key]) for key in value if key not in schema.get("properties", {}))


def _if(argument: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    return admits(schema.get("then" if admits(argument, value) else "else", True), value)


def _numeric(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any, Mapping[str, Any]], bool]:
    return lambda argument, value, schema: not _number(value) or test(value, argument)


def _sized(kind: Any, test: Callable[[int, Any], bool]) -> Callable[[Any, Any, Mapping[str, Any]], bool]:
    return lambda argument, value, schema: not isinstance(value, kind) or test(len(value), argument)


def _pattern(argument: Any, value: Any, _: Mapping[str, Any]) -> bool:
    # JSON's `$` is the very end of a text, Python's may be followed by a line break.
    return not isinstance(value, str) or re.search(re.sub(r"(?<!\\)\$$", r"\\Z", argument), value) is not None


_CHECKS: dict[str, Callable[[Any, Any, Mapping[str, Any]], bool]] = {
    "type": _type,
    "enum": lambda argument, value, schema: any(json_equal(item, value) for item in argument),
    "const": lambda argument, value, schema: json_equal(argument, value),
    "minimum": _numeric(lambda value, bound: value >= bound),
    "maximum": _numeric(lambda value, bound: value <= bound),
    "exclusiveMinimum": _numeric(lambda value, bound: value > bound),
    "exclusiveMaximum": _numeric(lambda value, bound: value < bound),
    "multipleOf": _multiple,
    "minLength": _sized(str, lambda size, bound: size >= bound),
    "maxLength": _sized(str, lambda size, bound: size <= bound),
    "pattern": _pattern,
    "minItems": _sized((list, tuple), lambda size, bound: size >= bound),
    "maxItems": _sized((list, tuple), lambda size, bound: size <= bound),
    "uniqueItems": _unique,
    "items": _items,
    "prefixItems": lambda argument, value, schema: (
        not isinstance(value, list | tuple) or all(admits(part, item) for part, item in zip(argument, value, strict=False))
    ),
    "contains": lambda argument, value, schema: not isinstance(value, list | tuple) or any(admits(argument, item) for item in value),
    "minProperties": _sized(Mapping, lambda size, bound: size >= bound),
    "maxProperties": _sized(Mapping, lambda size, bound: size <= bound),
    "required": lambda argument, value, schema: not isinstance(value, Mapping) or all(key in value for key in argument),
    "properties": _properties,
    "additionalProperties": _additional,
    "allOf": lambda argument, value, schema: all(admits(part, value) for part in argument),
    "anyOf": lambda argument, value, schema: any(admits(part, value) for part in argument),
    "oneOf": lambda argument, value, schema: sum([admits(part, value) for part in argument]) == 1,
    "not": lambda argument, value, schema: not admits(argument, value),
    "if": _if,
}

"""Bringing values of earlier calls into the form that a parameter takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from maymust.core.fragment import has_value


class Fit:
    """Gives a value in the form that a parameter takes: a number as text where only text is taken, and the reverse.

    schema  what the parameter takes by itself
    bounds  what a rule adds
    """

    __slots__ = ("_bounds", "_kinds", "_schema")

    def __init__(self, schema: Mapping[str, Any], bounds: Mapping[str, Any]) -> None:
        self._schema, self._bounds = schema, bounds
        self._kinds = _kinds(schema)

    def __call__(self, value: Any) -> list[Any]:
        """The value in a list, which is empty when the parameter does not take it at all, so that the rest is what a call can use."""
        if self._kinds == {"string"} and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        elif isinstance(value, str) and self._kinds and self._kinds <= {"integer", "number"}:
            value = _number(value)
        return [value] if has_value([{"const": value}, self._schema, self._bounds]) else []


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types a schema names, null left out; empty when it does not say."""
    named: set[str] = set()
    for part in (schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        kind = part.get("type") if isinstance(part, Mapping) else None
        named.update((kind,) if isinstance(kind, str) else kind or ())
    return named - {"null"}


def _number(text: str) -> Any:
    """The number that a text is, or the text itself."""
    try:
        number = json.loads(text)
    except ValueError:
        return text
    return number if isinstance(number, int | float) and not isinstance(number, bool) else text

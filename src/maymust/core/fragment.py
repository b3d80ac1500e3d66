"""Fragments of JSON Schema by which rules narrow a parameter: is there a value at all, and is this value one of them?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maymust.core.schema_value import Undecided, admits, json_equal
from maymust.errors import PolicyError

__all__ = ["DECIDED", "Fragment", "Undecided", "admits", "as_spoken", "check_fragments", "has_value", "spoken_kind"]

Fragment = Mapping[str, Any]
"""A JSON Schema of one parameter."""

DECIDED = frozenset(
    {"type", "enum", "const", "not", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"}
)
"""The keywords by which `has_value` decides, `not` where it lists values. Any other keyword counts as satisfiable and is judged when a
call comes in.
"""

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_LENGTHS = ("minLength", "maxLength")
# Numbers are split, because `integer` is a part of `number` and a conjunction has to see the rest.
_KINDS: dict[str, frozenset[str]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    "object": frozenset({"object"}),
    "array": frozenset({"array"}),
    "string": frozenset({"string"}),
    "integer": frozenset({"integer"}),
    "number": frozenset({"integer", "fraction"}),
}
_EVERY_KIND = frozenset().union(*_KINDS.values())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_fragments(fragments: Any, where: str) -> dict[str, dict[str, Any]]:
    """Return a copy of `{parameter: fragment}`.

    Raises PolicyError, naming `where`, the parameter and the keyword, for what is no schema.
    """
    if not isinstance(fragments, Mapping):
        raise PolicyError(f"{where} has to map parameters to JSON Schema fragments, got {fragments!r}")
    checked: dict[str, dict[str, Any]] = {}
    for parameter, fragment in fragments.items():
        if not isinstance(parameter, str) or not isinstance(fragment, Mapping):
            raise PolicyError(f"{where} has to map parameters to JSON Schema fragments, got {parameter!r}: {fragment!r}")
        for keyword, value in fragment.items():
            if not _well_formed(keyword, value):
                raise PolicyError(f"{where}: {keyword} of parameter {parameter} may not be {value!r}")
        checked[parameter] = dict(fragment)
    return checked


def _well_formed(keyword: str, value: Any) -> bool:
    if keyword == "enum":
        return isinstance(value, list | tuple)
    if keyword in _BOUNDS:
        return _is_number(value) and not (isinstance(value, float) and math.isnan(value))
    if keyword in _LENGTHS:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if keyword == "type":
        names = value if isinstance(value, list | tuple) else (value,)
        return all(isinstance(name, str) and name in _KINDS for name in names)
    if keyword == "not":
        return isinstance(value, Mapping | bool)
    if keyword == "pattern":
        try:
            re.compile(value)
        except (re.error, TypeError):
            return False
    return True


_SPOKEN_OF = (
    ("number", frozenset({*_BOUNDS, "multipleOf"})),
    ("string", frozenset({*_LENGTHS, "pattern", "format"})),
    ("array", frozenset({"items", "minItems", "maxItems", "uniqueItems", "contains", "prefixItems"})),
    ("object", frozenset({"properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties"})),
)


def spoken_kind(fragment: Fragment) -> str | None:
    """The one kind of value that a fragment's keywords speak of, where it does not name a `type`, `enum` or `const` itself.

    In JSON Schema `{"maximum": 100}` lets every text through. A rule that holds means: a number, and at most 100.
    """
    if "type" in fragment or "enum" in fragment or "const" in fragment:
        return None
    return next((kind for kind, words in _SPOKEN_OF if words & fragment.keys()), None)


def as_spoken(fragment: Fragment) -> Fragment:
    """The fragment with the kind of value that its keywords speak of as its `type`."""
    kind = spoken_kind(fragment)
    return fragment if kind is None else {**fragment, "type": kind}


def has_value(fragments: Sequence[Fragment]) -> bool:
    """True unless no JSON value satisfies all fragments together, as far as the keywords in `DECIDED` tell."""
    fragments = [{key: value for key, value in fragment.items() if _decides(key, value)} for fragment in fragments]
    candidates = _candidates(fragments)
    if candidates is not None:
        return any(all(admits(fragment, value) for fragment in fragments) for value in candidates)
    kinds = _EVERY_KIND
    for fragment in fragments:
        if "type" in fragment:
            names = fragment["type"] if isinstance(fragment["type"], list | tuple) else (fragment["type"],)
            kinds &= frozenset().union(*(_KINDS[name] for name in names))
    return any(_kind_has_value(kind, fragments) for kind in kinds)


def _decides(keyword: str, value: Any) -> bool:
    if keyword == "not":
        return isinstance(value, Mapping) and value.keys() == {"enum"} and _well_formed("enum", value["enum"])
    return keyword in DECIDED and _well_formed(keyword, value)


def _candidates(fragments: Iterable[Fragment]) -> list[Any] | None:
    """The values of the first `enum` or `const`, None when there is neither."""
    for fragment in fragments:
        if "const" in fragment:
            return [fragment["const"]]
        if "enum" in fragment:
            return list(fragment["enum"])
    return None


def _kind_has_value(kind: str, fragments: Sequence[Fragment]) -> bool:
    if kind in ("boolean", "null"):
        return any(all(admits(fragment, value) for fragment in fragments) for value in ((True, False) if kind == "boolean" else (None,)))
    if kind == "string":
        least = max((fragment["minLength"] for fragment in fragments if "minLength" in fragment), default=0)
        most = min((fragment["maxLength"] for fragment in fragments if "maxLength" in fragment), default=math.inf)
        return bool(least <= most)
    if kind not in ("integer", "fraction"):
        return True
    low, low_open = -math.inf, False
    high, high_open = math.inf, False
    for fragment in fragments:
        for keyword, is_open in (("minimum", False), ("exclusiveMinimum", True)):
            if keyword in fragment and (fragment[keyword] > low or (fragment[keyword] == low and is_open)):
                low, low_open = fragment[keyword], is_open
        for keyword, is_open in (("maximum", False), ("exclusiveMaximum", True)):
            if keyword in fragment and (fragment[keyword] < high or (fragment[keyword] == high and is_open)):
                high, high_open = fragment[keyword], is_open
    return _holds_integer(low, low_open, high, high_open) if kind == "integer" else _holds_fraction(low, low_open, high, high_open)


def _holds_integer(low: float, low_open: bool, high: float, high_open: bool) -> bool:
    if math.isinf(low) or math.isinf(high):
        return low < high
    first = math.floor(low) + 1 if low_open else math.ceil(low)
    final = math.ceil(high) - 1 if high_open else math.floor(high)
    return first <= final


def _holds_fraction(low: float, low_open: bool, high: float, high_open: bool) -> bool:
    if low < high:
        return True
    return low == high and not low_open and not high_open and not math.isinf(low) and not json_equal(low, math.floor(low))

"""Judging the arguments of one call against the rules that narrow them or ask about them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from maymust.core.fragment import Fragment, Undecided, admits, spoken_kind
from maymust.core.permit import Permit


def outside(permit: Permit, name: str, arguments: Mapping[str, Any] | None) -> str | None:
    """Return why the arguments leave what the rules admit, in words for the model; None when they are within.

    A narrowed parameter has to be given: one that is left out counts as null. A bound speaks of its own kind of value only, and
    admits no other. A keyword that cannot be judged here keeps the call closed.
    """
    for parameter, fragments in permit.arguments(name).items():
        value = None if arguments is None else arguments.get(parameter)
        for fragment in fragments:
            try:
                if _is_within(fragment, value):
                    continue
            except Undecided as error:
                return f"{parameter} cannot be judged: the rule uses the keyword {error}"
            if arguments is None or parameter not in arguments:
                return f"{parameter} has to be given: {_all_words(fragments)}{_reasons(permit, name, parameter)}"
            return f"{parameter} has to be {fragment_words(fragment)}, got {_json(value)}{_reasons(permit, name, parameter)}"
    return None


def askers(permit: Permit, name: str, arguments: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Names of the requirements that ask a person about this call, in rank order.

    A condition on parameters asks when every fragment holds; where one cannot be judged, speaks of another kind of value, or its
    parameter is left out, it asks. Nobody asks about a tool that is not allowed.
    """
    if name not in permit.asks:
        return ()
    asking = [by for by, when in permit.questions(name) if when is True or (isinstance(when, Mapping) and _matches(when, arguments))]
    return tuple(by for by in asking if not permit.excused(by, name, arguments))


def _matches(when: Mapping[str, Fragment], arguments: Mapping[str, Any] | None) -> bool:
    if arguments is None:
        return True
    for parameter, fragment in when.items():
        try:
            if parameter in arguments and not (_is_odd(fragment, arguments[parameter]) or admits(fragment, arguments[parameter])):
                return False
        except Undecided:
            continue
    return True


def _is_odd(fragment: Fragment, value: Any) -> bool:
    """True for a value of another kind than the fragment's bounds speak of."""
    kind = spoken_kind(fragment)
    return kind is not None and not admits({"type": kind}, value)


def _is_within(fragment: Fragment, value: Any) -> bool:
    return not _is_odd(fragment, value) and admits(fragment, value)


def _reasons(permit: Permit, name: str, parameter: str) -> str:
    rules = (spoken.rule for spoken in permit.why(name) if spoken.rule.target == name)
    texts = dict.fromkeys(rule.reason for rule in rules if rule.reason and rule.arguments and parameter in rule.arguments)
    return f" ({'; '.join(text for text in texts if text)})" if texts else ""


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else text[:77] + "..."


def _all_words(fragments: tuple[Fragment, ...]) -> str:
    return " and ".join(fragment_words(fragment) for fragment in fragments)


_WORDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "above {}",
    "exclusiveMaximum": "below {}",
    "const": "{}",
    "pattern": "a text that matches {}",
    "multipleOf": "a multiple of {}",
    "maxItems": "at most {} items",
    "minItems": "at least {} items",
}
_ARTICLES = {"integer": "an integer", "array": "an array", "object": "an object", "null": "null"}


_MOST_VALUES = 50


def fragment_words(fragment: Fragment, *, most: int = _MOST_VALUES) -> str:
    """Return a fragment in words, e.g. `a number, at most 100`; of a list of values at most so many are named."""
    if fragment.get("type") == "array" and fragment.keys() == {"type", "items"} and isinstance(fragment["items"], Mapping):
        return f"an array, each item {fragment_words(fragment['items'], most=most)}"
    parts = []
    for keyword, value in fragment.items():
        if keyword == "anyOf" and all(isinstance(part, Mapping) for part in value):
            parts.append(" or ".join(fragment_words(part, most=most) for part in value))
            continue
        if keyword == "type":
            names = (value,) if isinstance(value, str) else value
            parts.append(" or ".join(_ARTICLES.get(name, f"a {name}") for name in names))
        elif keyword == "not" and isinstance(value, Mapping) and value.keys() == {"enum"}:
            more = f" and {len(value['enum']) - most} more" if len(value["enum"]) > most else ""
            parts.append(f"other than {', '.join(_json(item) for item in value['enum'][:most])}{more}")
        elif keyword == "enum":
            more = f" and {len(value) - most} more" if len(value) > most else ""
            parts.append(f"one of {', '.join(_json(item) for item in value[:most])}{more}" if value else "no value at all")
        elif keyword in ("minLength", "maxLength"):
            parts.append(f"{'at least' if keyword == 'minLength' else 'at most'} {value} character{'' if value == 1 else 's'} long")
        elif keyword in _WORDS:
            parts.append(_WORDS[keyword].format(_json(value)))
        else:
            parts.append(f"{keyword} {_json(value)}")
    return ", ".join(parts) or "anything"

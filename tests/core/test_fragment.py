"""What the core decides about fragments of JSON Schema."""

from __future__ import annotations

from typing import Any

import fastjsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maymust.core.fragment import check_fragments, has_value
from maymust.core.schema_value import Undecided, admits
from maymust.errors import PolicyError

numbers = st.one_of(st.integers(-4, 4), st.sampled_from((-1.5, -0.5, 0.0, 0.5, 1.5, 2.5)))
values = st.one_of(numbers, st.text("ab", max_size=4), st.booleans(), st.none())
types = st.sampled_from(("integer", "number", "string", "boolean", "null", "object", "array"))


@st.composite
def fragments(draw: st.DrawFn) -> dict[str, Any]:
    """A fragment of the keywords by which emptiness is decided."""
    parts: dict[str, Any] = {}
    if draw(st.booleans()):
        parts["type"] = draw(st.one_of(types, st.lists(types, min_size=1, max_size=3, unique=True)))
    for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if draw(st.sampled_from((False, False, True))):
            parts[keyword] = draw(numbers)
    for keyword in ("minLength", "maxLength"):
        if draw(st.sampled_from((False, False, True))):
            parts[keyword] = draw(st.integers(0, 3))
    if draw(st.sampled_from((False, False, True))):
        parts["enum"] = draw(st.lists(values, max_size=4))
    elif draw(st.sampled_from((False, False, True))):
        parts["const"] = draw(values)
    return parts


# Every interval between bounds from `numbers`, every length up to 3 and every type has a value among these.
WITNESSES: list[Any] = [n / 4 for n in range(-20, 21)] + list(range(-5, 6)) + ["", "a", "aa", "aaa", "aaaa", True, False, None, {}, []]


@settings(max_examples=600, deadline=None)
@given(st.lists(fragments(), max_size=3))
def test_emptiness_is_decided_exactly(parts: list[dict[str, Any]]) -> None:
    listed = [value for part in parts for value in part.get("enum", [])] + [part["const"] for part in parts if "const" in part]
    found = any(all(admits(part, value) for part in parts) for value in WITNESSES + listed)
    assert has_value(parts) is found


@settings(max_examples=400, deadline=None)
@given(fragments(), values)
def test_values_are_judged_as_a_validator_does(part: dict[str, Any], value: Any) -> None:
    if any(isinstance(item, bool) for item in [*part.get("enum", []), part.get("const")]) or isinstance(value, bool):
        return  # that validator takes true for 1
    try:
        fastjsonschema.compile(part)(value)
        valid = True
    except fastjsonschema.JsonSchemaValueException:
        valid = False
    assert admits(part, value) is valid


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([{"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}], False),
        ([{"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 2}], True),
        ([{"type": "integer", "minimum": 0.5, "maximum": 0.7}], False),
        ([{"type": "integer"}, {"type": "number", "minimum": 2.5, "maximum": 2.5}], False),
        ([{"type": "integer"}, {"type": "string"}], False),
        ([{"type": "number"}, {"type": "integer"}], True),
        ([{"minimum": 5}, {"maximum": 1}], True),  # a text is outside of neither
        ([{"type": "string", "minLength": 3}, {"maxLength": 2}], False),
        ([{"enum": [1]}, {"enum": [True]}], False),
        ([{"enum": [1]}, {"const": 1.0}], True),
        ([{"enum": [[1, {"a": 2}]]}, {"const": [1, {"a": 2}]}], True),
        ([{"type": "string", "pattern": "^a$"}, {"type": "string", "pattern": "^b$"}], True),  # judged at admission
        ([{"type": "integer", "minimum": 10**30}, {"maximum": 10**30 - 1}], False),
        ([{"type": ["integer", "null"]}, {"type": ["string", "null"]}], True),
        ([{"type": "integer", "maximum": 5}], True),
        ([], True),
    ],
)
def test_examples_of_conjunctions(parts: list[dict[str, Any]], expected: bool) -> None:
    assert has_value(parts) is expected


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"multipleOf": 0.1}, 0.3, True),
        ({"multipleOf": 2}, 3, False),
        ({"pattern": "b+"}, "abc", True),
        ({"items": {"type": "integer"}, "minItems": 1, "maxItems": 2}, [1, "a"], False),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, ["a", 1], True),
        ({"uniqueItems": True}, [1, 1.0], False),
        ({"uniqueItems": True}, [1, True], True),
        ({"contains": {"const": 1}}, [2, 1], True),
        ({"required": ["a"], "properties": {"a": {"const": 1}}, "additionalProperties": False}, {"a": 1}, True),
        ({"properties": {"a": True}, "additionalProperties": False}, {"a": 1, "b": 2}, False),
        ({"minProperties": 1, "maxProperties": 1}, {}, False),
        ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, 3, False),
        ({"anyOf": [{"const": 1}, {"const": 2}]}, 2, True),
        ({"oneOf": [{"minimum": 1}, {"maximum": 2}]}, 1, False),
        ({"not": {"const": 1}}, 2, True),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"const": 1}}, "a", False),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"const": 1}}, 1, True),
        ({"title": "words", "description": "say nothing", "default": 3}, 4, True),
        (False, 1, False),
    ],
)
def test_examples_of_values(schema: Any, value: Any, expected: bool) -> None:
    assert admits(schema, value) is expected


def test_a_keyword_that_cannot_be_judged_is_no_yes() -> None:
    with pytest.raises(Undecided, match="unevaluatedProperties"):
        admits({"unevaluatedProperties": False}, {})
    with pytest.raises(Undecided, match="patternProperties"):
        admits({"additionalProperties": False, "patternProperties": {}}, {})


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("amount", "has to map parameters"),
        ({1: {}}, "has to map parameters"),
        ({"amount": 5}, "amount"),
        ({"amount": {"minimum": "5"}}, "minimum of parameter amount"),
        ({"amount": {"maximum": float("nan")}}, "maximum of parameter amount"),
        ({"amount": {"enum": "abc"}}, "enum of parameter amount"),
        ({"amount": {"type": "int"}}, "type of parameter amount"),
        ({"amount": {"minLength": -1}}, "minLength of parameter amount"),
        ({"amount": {"pattern": "("}}, "pattern of parameter amount"),
    ],
)
def test_what_is_no_fragment_is_refused(bad: Any, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        check_fragments(bad, "cap")

"""Fragments of JSON Schema, as rules use them."""

import math
from typing import Any

import pytest

from maymust.errors import PolicyError
from maymust.tools.json_schema import SchemaFault, compile_schema, fragment_check, in_question


@pytest.mark.parametrize(
    ("fragment", "good", "bad", "text"),
    [
        ({"type": "integer", "maximum": 100}, 100, 500, "500 is not allowed; an integer, at most 100"),
        ({"maximum": 100}, 99.5, 500, "500 is not allowed; a number, at most 100"),
        ({"minimum": 1, "maximum": 5}, 3, 0, "0 is not allowed; a number, at least 1, at most 5"),
        ({"enum": ["a", "b"]}, "a", "c", '"c" is not allowed; one of "a", "b"'),
        ({"const": "o-17"}, "o-17", "o-18", '"o-18" is not allowed; only "o-17"'),
        ({"type": "string", "maxLength": 3}, "abc", "abcd", '"abcd" is not allowed; text, at most 3 characters'),
        ({"enum": []}, None, 1, "1 is not allowed; no value at all"),
        (False, None, 1, "1 is not allowed; no value at all"),
        ({"type": ["integer", "null"]}, None, "x", '"x" is not allowed; an integer or null'),
        (
            {"type": "object", "properties": {"a": {"maximum": 1}}},
            {"a": 1},
            {"a": 2},
            '{"a": 2} is not allowed; an object (at a: at most 1)',
        ),
    ],
)
def test_a_fragment_admits_what_it_allows_and_says_what_that_is(fragment: Any, good: Any, bad: Any, text: str) -> None:
    check = fragment_check(fragment)
    if fragment not in (False, {"enum": []}):
        assert check(good) is None
    assert check(bad) == text


@pytest.mark.parametrize("value", ["5", None, True, [1], math.nan, -math.inf])
def test_a_bound_without_a_type_admits_only_its_own_kind(value: object) -> None:
    assert fragment_check({"maximum": 100})(value) is not None


@pytest.mark.parametrize("value", [math.nan, math.inf, [math.nan]])
def test_numbers_that_are_none_are_never_admitted(value: object) -> None:
    assert fragment_check({})(value) is not None
    assert fragment_check({"type": "number", "maximum": 100})(value) is not None


def test_true_is_not_one() -> None:
    assert fragment_check({"enum": [1]})(True) is not None
    assert fragment_check({"const": 0})(False) is not None


@pytest.mark.parametrize(
    ("fragment", "word"),
    [
        ({"maxmum": 100}, "maximum"),
        ({"anyOf": [{"const": 1}, {"properties": {"a": {"minimun": 2}}}]}, "minimum"),
        ({"maximum": "100"}, "number"),
        ({"type": "intger"}, "type"),
        ({"pattern": "("}, "schema"),
        ({"$ref": "file:///etc/passwd"}, "passwd"),
        (100, "100"),
        ({"const": {1, 2}}, "JSON"),
    ],
)
def test_a_fragment_that_would_not_be_checked_as_written_is_refused(fragment: Any, word: str) -> None:
    with pytest.raises(PolicyError, match=word):
        fragment_check(fragment)


def test_equal_fragments_are_compiled_once() -> None:
    assert fragment_check({"minimum": 1, "maximum": 2}) is fragment_check({"maximum": 2, "minimum": 1})


@pytest.mark.parametrize(
    ("fragment", "value", "asked"),
    [
        ({"minimum": 100}, 100, True),
        ({"minimum": 100}, 99, False),
        ({"minimum": 100}, None, True),
        ({"minimum": 100}, "500", True),
        ({"minimum": 100}, math.nan, True),
        ({"enum": ["prod"]}, "prod", True),
        ({"enum": ["prod"]}, "test", False),
        ({"pattern": "^x"}, 5, True),
        (True, 5, True),
    ],
)
def test_a_person_is_asked_about_what_matches_and_about_what_the_bound_does_not_speak_of(fragment: Any, value: Any, asked: bool) -> None:
    assert in_question(fragment)(value) is asked


LISTS: list[dict[str, Any]] = [
    {"enum": ["a", 1, None, 2.5, ["x"], {"k": 1}]},
    {"enum": ["a", 5, 50], "type": "number", "minimum": 1, "maximum": 10},
    {"type": "array", "items": {"enum": ["a", 1]}},
    {"anyOf": [{"type": "null"}, {"type": "array", "items": {"enum": ["a"]}}]},
    {"anyOf": [{"enum": ["a"]}, {"enum": [5], "maximum": 3}]},
]


@pytest.mark.parametrize("fragment", LISTS)
def test_a_list_of_values_is_looked_up_with_the_same_answers_as_the_library(fragment: dict[str, Any]) -> None:
    compiled = compile_schema(fragment, whose="It")
    for value in ["a", "b", 1, 1.0, 0, 2.5, 5, 50, None, [], ["a"], ["x"], ["a", 1], [1.0], ["b"], {"k": 1}, {"k": 2}, {}]:
        try:
            compiled(value)
            expected = True
        except SchemaFault:
            expected = False
        assert (fragment_check(fragment)(value) is None) == expected, value


def test_a_list_of_values_tells_true_from_one() -> None:
    assert fragment_check({"enum": [1]})(True) is not None
    assert fragment_check({"enum": [True]})(1) is not None


def test_a_list_that_is_none_is_refused_as_ever() -> None:
    for broken in ({"enum": 5}, {"enum": [1], "minimum": "1"}, {"enum": [1], "minimun": 1}):
        with pytest.raises(PolicyError):
            fragment_check(broken)

"""Allowed tools as one JSON schema, and output turned back into a call."""

import json
from typing import Any

import fastjsonschema
import pytest

from maymust.models import ToolDefinition
from maymust.models.structured import Bounds, NotACall, bounded, call_schema, read_call


def fields(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties) if required is None else required}


SEARCH = ToolDefinition("search", "Search.", fields(q={"type": "string"}, page={"type": "integer", "minimum": 1}))
NOTE = ToolDefinition("note", "Note.", fields(text={"type": "string", "minLength": 2, "maxLength": 5}))


def is_valid(schema: dict[str, Any], value: Any) -> bool:
    try:
        fastjsonschema.compile(schema)(value)
    except fastjsonschema.JsonSchemaValueException:
        return False
    return True


def test_the_union_lets_through_calls_of_the_given_tools_and_nothing_else() -> None:
    schema = call_schema([SEARCH, NOTE])
    assert is_valid(schema, {"name": "search", "arguments": {"q": "x", "page": 1}})
    assert is_valid(schema, {"name": "note", "arguments": {"text": "abc"}})
    for other in (
        {"name": "delete", "arguments": {}},
        {"name": "search", "arguments": {"text": "abc"}},
        {"name": "search", "arguments": {"q": "x", "page": 0}},
        {"name": "search", "arguments": {"q": "x", "page": 1, "more": 1}},
        {"name": "note", "arguments": {"text": "abc"}, "more": 1},
        {"text": "an answer"},
    ):
        assert not is_valid(schema, other), other


def test_a_text_is_let_through_only_when_it_is_asked_for() -> None:
    assert is_valid(call_schema([SEARCH], text=True), {"text": "an answer"})
    assert not is_valid(call_schema([SEARCH], text=True), {"text": ""})


@pytest.mark.parametrize(
    ("schema", "inside", "outside"),
    [
        ({"type": "string"}, "x" * 20, "x" * 21),
        ({"type": "string", "maxLength": 5}, "x" * 5, "x" * 6),
        ({"type": "integer"}, 10**9, 10**9 + 1),
        ({"type": "integer", "exclusiveMaximum": 5}, 4, 5),
        ({"type": "number"}, -3, 10.0**10),
        ({"type": "number", "minimum": 0, "maximum": 10}, 2.5, 11),
        ({"type": "array", "items": {"type": "boolean"}}, [True] * 2, [True] * 3),
        ({"type": "array", "items": {"type": "string"}}, ["x" * 20], ["x" * 21]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": "x"}),
        ({"type": "object"}, {"a": "x" * 20}, {"a": "x" * 21}),
        ({}, "x" * 20, "x" * 21),
        ({"type": ["string", "null"]}, None, "x" * 21),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, "x" * 21),
        ({"enum": ["a", 3]}, 3, "b"),
        ({"allOf": [{"type": "string"}, {"maxLength": 4}]}, "x" * 4, "x" * 5),
    ],
)
def test_everything_that_could_go_on_for_ever_gets_a_bound(schema: dict[str, Any], inside: Any, outside: Any) -> None:
    bound = bounded(fields(v=schema), Bounds(characters=20, items=2))
    assert is_valid(bound, {"v": inside})
    assert not is_valid(bound, {"v": outside})


def test_a_least_length_above_the_bound_is_kept() -> None:
    bound = bounded(fields(v={"type": "string", "minLength": 30}), Bounds(characters=20))
    assert is_valid(bound, {"v": "x" * 30})


TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["name"],
        }
    },
    **fields(root={"$ref": "#/$defs/node"}),
}


def test_references_are_written_out_and_a_schema_inside_itself_ends() -> None:
    bound = bounded(TREE, Bounds())
    assert "$ref" not in json.dumps(bound)
    assert is_valid(bound, {"root": {"name": "a", "children": [{"name": "b", "children": []}]}})
    chain: dict[str, Any] = {"name": "z"}
    for _ in range(6):
        chain = {"name": "a", "children": [chain]}
    assert not is_valid(bound, {"root": chain})


def test_a_tool_whose_arguments_cannot_end_can_still_be_named() -> None:
    endless = {"$defs": {"n": fields(next={"$ref": "#/$defs/n"})}, **fields(n={"$ref": "#/$defs/n"})}
    assert is_valid(call_schema([ToolDefinition("t", "", endless)]), {"name": "t", "arguments": {}})


def test_what_fits_the_bounds_fits_the_tools_own_schema() -> None:
    bound = bounded(SEARCH.parameters, Bounds())
    value = {"q": "x", "page": 3}
    assert is_valid(bound, value)
    assert is_valid(dict(SEARCH.parameters), value)


def test_output_becomes_a_call() -> None:
    assert read_call('{"name":"search","arguments":{"q":"ä","page":1}}', [SEARCH]) == ("search", '{"q": "ä", "page": 1}')
    assert read_call('{"text":"done"}', [SEARCH]) == ("", "done")


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("", "empty"),
        ('{"name":"search","argum', "no JSON"),
        ("[]", "not an object"),
        ('{"name":"search"}', "not an object"),
        ('{"name":"note","arguments":{"text":"abc"}}', "none of the allowed tools"),
        ('{"name":"search","arguments":{"q":"x","page":0}}', r"search\.page: expected at least 1"),
    ],
)
def test_output_that_is_no_allowed_call_says_what_is_wrong(output: str, words: str) -> None:
    with pytest.raises(NotACall, match=words):
        read_call(output, [SEARCH])


def test_keywords_that_no_constraint_covers_are_checked_afterwards() -> None:
    unique = ToolDefinition("pick", "", fields(ids={"type": "array", "items": {"type": "integer"}, "uniqueItems": True}))
    assert read_call('{"name":"pick","arguments":{"ids":[1,2]}}', [unique])[0] == "pick"
    with pytest.raises(NotACall, match="unique"):
        read_call('{"name":"pick","arguments":{"ids":[1,1]}}', [unique])

"""Schemas narrowed by rules: never narrower than what the rules leave, and as narrow as one schema can say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maymust.agent.narrowed_schema import narrowed_schema, narrowed_tool
from maymust.core.fragment import admits
from maymust.models.chat_model import ToolDefinition

ROOT: dict[str, Any] = {"$defs": {"Colour": {"enum": ["red", "green", "blue"], "type": "string"}}}
MAYBE = {"anyOf": [{"type": "string"}, {"type": "null"}]}


@pytest.mark.parametrize(
    ("own", "fragments", "expected"),
    [
        ({"type": "string"}, [{"enum": ["a", "b"]}], {"type": "string", "enum": ["a", "b"]}),
        ({"type": "string", "description": "Which."}, [{"enum": ["a"]}], {"description": "Which.", "type": "string", "enum": ["a"]}),
        ({"type": "integer", "minimum": 1}, [{"type": "number", "maximum": 100}], {"type": "integer", "minimum": 1, "maximum": 100}),
        ({"type": "number", "maximum": 50}, [{"maximum": 100}, {"maximum": 20}], {"type": "number", "maximum": 20}),
        ({"enum": ["a", "b", "c"]}, [{"enum": ["b", "c", "d"]}, {"enum": ["c", "b"]}], {"enum": ["c", "b"]}),
        (MAYBE, [{"enum": ["a"]}], {"type": "string", "enum": ["a"]}),
        (MAYBE, [{"anyOf": [{"type": "null"}, {"enum": ["a"]}]}], {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        ({"$ref": "#/$defs/Colour"}, [{"enum": ["red", "pink"]}], {"type": "string", "enum": ["red"]}),
        (
            {"type": "array", "items": {"type": "string"}},
            [{"type": "array", "items": {"enum": ["a"]}}],
            {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        ),
        ({"type": "string"}, [{"type": "string", "pattern": "^a$"}], {"type": "string", "pattern": "^a$"}),
        ({"default": "x", "type": "string"}, [{"enum": ["a"]}], {"type": "string", "enum": ["a"]}),
        ({"default": "a", "type": "string"}, [{"enum": ["a"]}], {"default": "a", "type": "string", "enum": ["a"]}),
        ({}, [{"maximum": 3}], {"maximum": 3}),
        (True, [{"const": 3}], {"enum": [3]}),
    ],
)
def test_examples(own: Any, fragments: list[Any], expected: Any) -> None:
    assert narrowed_schema(own, fragments, ROOT) == expected


values: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, 1, 2, 3, 7.5, 100, -4, "", "a", "b", "abc", [], ["a"], ["b", "a"], [1], {}]
)
enums = st.lists(values, min_size=1, max_size=4).map(lambda options: {"enum": options})
numbers = st.fixed_dictionaries(
    {}, optional={"type": st.sampled_from(["number", "integer"]), "minimum": st.integers(-5, 5), "maximum": st.integers(-5, 100)}
)
texts = st.fixed_dictionaries({"type": st.just("string")}, optional={"minLength": st.integers(0, 2), "maxLength": st.integers(0, 3)})
simple = enums | numbers | texts | st.sampled_from([{"type": "null"}, {"type": ["string", "null"]}, {"$ref": "#/$defs/Colour"}, {}])
lists = simple.map(lambda items: {"type": "array", "items": items})
schemas = simple | lists | st.lists(simple | lists, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})


def _resolved(schema: Any) -> Any:
    if isinstance(schema, dict):
        if "$ref" in schema:
            return ROOT["$defs"]["Colour"]
        return {key: _resolved(part) if key in ("items",) else part for key, part in schema.items()} | (
            {"anyOf": [_resolved(part) for part in schema["anyOf"]]} if "anyOf" in schema else {}
        )
    return schema


@settings(max_examples=600)
@given(schemas, st.lists(schemas, min_size=1, max_size=3), values)
def test_a_value_that_all_admit_is_admitted(own: Any, fragments: list[Any], value: Any) -> None:
    if all(admits(_resolved(schema), value) for schema in (own, *fragments)):
        assert admits(_resolved(narrowed_schema(own, fragments, ROOT)), value)


def test_a_parameter_whose_default_is_not_left_has_to_be_given() -> None:
    parameters = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "default": "x"},
            "note": {**MAYBE, "default": None},
            "n": {"type": "integer", "default": 1},
        },
        "additionalProperties": False,
    }
    tool = ToolDefinition("write", "Write.", parameters)
    narrowed = narrowed_tool(tool, {"id": ({"enum": ["a"]},), "n": ({"maximum": 3},), "gone": ({"maximum": 3},)})
    assert narrowed.parameters["required"] == ["id"]
    assert narrowed.parameters["properties"]["note"] == parameters["properties"]["note"]  # type: ignore[index]
    assert narrowed.parameters["properties"]["n"] == {"type": "integer", "default": 1, "maximum": 3}
    assert narrowed_tool(tool, {}) is tool
    assert "required" not in parameters

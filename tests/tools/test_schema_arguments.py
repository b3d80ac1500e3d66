"""Tools whose arguments are described by a JSON schema."""

import math
from typing import Any

import pytest

from maymust import FunctionInvocationContext, Tool
from maymust.errors import PolicyError
from maymust.tools.arguments import ArgumentsInvalid

SCHEMA = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "maximum": 100},
        "to": {"type": "object", "properties": {"name": {"type": "string"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}}},
        "currency": {"enum": ["EUR", "USD"], "default": "EUR"},
    },
    "required": ["amount"],
    "additionalProperties": False,
    "$defs": {"line": {"type": "string", "maxLength": 5}},
}


def body(**arguments: Any) -> Any:
    return arguments


def pay(schema: Any = SCHEMA, **settings: Any) -> Tool:
    return Tool.from_schema("pay", "Pay somebody.", schema, body, **settings)


def fault(arguments: dict[str, Any], schema: Any = SCHEMA) -> str:
    with pytest.raises(ArgumentsInvalid) as caught:
        pay(schema).parse(arguments)
    return str(caught.value)


def test_the_schema_is_shown_as_it_is_and_the_arguments_come_as_they_are() -> None:
    made = pay()
    assert (made.name, made.description, made.parameters, made.function) == ("pay", "Pay somebody.", SCHEMA, body)
    parsed = made.parse({"amount": 3})
    assert parsed.json == parsed.values == {"amount": 3, "currency": "EUR"}
    assert made.invoke(parsed.values, None) == {"amount": 3, "currency": "EUR"}


def test_a_body_may_take_one_dict_and_the_context() -> None:
    def whole(arguments: dict[str, Any], ctx: FunctionInvocationContext | None) -> Any:
        return arguments, ctx

    made = Tool.from_schema("pay", "", SCHEMA, whole, pass_as="dict")
    assert made.invoke({"amount": 1}, None) == ({"amount": 1}, None)


def test_an_async_body_is_known_as_one() -> None:
    async def slow(**arguments: Any) -> Any:
        return arguments

    assert Tool.from_schema("slow", "", {"type": "object"}, slow).is_async


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "amount: missing; expected an integer, at most 100"),
        ({"amount": "x"}, 'amount: expected an integer; got "x"'),
        ({"amount": 101}, "amount: expected at most 100; got 101"),
        ({"amount": 1, "currency": "GBP"}, 'currency: expected one of "EUR", "USD"; got "GBP"'),
        ({"amount": 1, "to": {"name": 5}}, "to.name: expected text; got 5"),
        ({"amount": 1, "to": {"lines": ["ok", "too long"]}}, 'to.lines[1]: expected at most 5 characters; got "too long"'),
        ({"amount": 1, "dry_run": True}, "there is no parameter 'dry_run'; parameters: amount, to, currency"),
        ({"amount": True}, "amount: expected an integer; got true"),
    ],
)
def test_faults_read_like_those_of_function_tools(arguments: dict[str, Any], text: str) -> None:
    assert fault(arguments) == text


def test_numbers_that_are_none_never_pass() -> None:
    assert "no JSON" in fault({"amount": math.nan}, {"type": "object"})


def test_an_empty_schema_takes_any_object() -> None:
    assert pay({}).parse({"a": [1]}).json == {"a": [1]}
    assert pay({}).parameters == {"type": "object", "properties": {}}


def test_changing_the_schema_afterwards_changes_nothing() -> None:
    own: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    made = pay(own)
    own["properties"]["a"]["type"] = "string"
    with pytest.raises(ArgumentsInvalid):
        made.parse({"a": "x"})


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"type": "array"}, "object"),
        ("text", "object"),
        ({"type": "object", "properties": {"a": {"type": "intger"}}}, "no JSON schema"),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}, "example.com"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/nowhere"}}}, "no JSON schema"),
        ({"type": "object", "properties": {"a": {"const": math.nan}}}, "no JSON"),
    ],
)
def test_what_is_no_schema_of_an_object_is_refused_at_construction(schema: Any, word: str) -> None:
    with pytest.raises(PolicyError, match=word):
        pay(schema)


def test_a_body_that_is_no_function_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        Tool.from_schema("pay", "", SCHEMA, 5)
    with pytest.raises(PolicyError, match="pass_as"):
        pay(pass_as="list")


def test_parameters_that_are_marked_write_only_are_secrets() -> None:
    made = pay({"type": "object", "properties": {"key": {"type": "string", "writeOnly": True}, "q": {"type": "string"}}})
    assert made.secrets == {"key"}

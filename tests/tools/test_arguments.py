"""What the model wrote, validated: values for the body, JSON for the rules, words for the model."""

import datetime
import enum
import json
import math
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, Json, SecretStr, field_validator

from maymust import tool
from maymust.errors import PolicyError
from maymust.tools.arguments import ArgumentsInvalid, Parsed
from maymust.tools.function_tool import Tool


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Size:
    width: int
    height: int = 1


class Item(BaseModel):
    name: str
    price: float = Field(gt=0)


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: datetime.date
    pair: tuple[int, int]


def order(
    item: Item,
    amount: int = 1,
    color: Color = Color.RED,
    day: datetime.date | None = None,
    size: Size | None = None,
    tags: frozenset[str] = frozenset(),
    kind: Literal["gift", "own"] = "own",
    share: float = 1.0,
) -> None: ...


def fault(made: Tool, arguments: dict[str, Any]) -> str:
    with pytest.raises(ArgumentsInvalid) as caught:
        made.parse(arguments)
    return str(caught.value)


# --- values and JSON ---


def test_values_are_python_objects_and_json_is_json_with_defaults_filled_in() -> None:
    parsed = tool(order).parse(
        {"item": {"name": "tea", "price": "3"}, "day": "2026-02-03", "size": {"width": 2}, "tags": ["a"], "color": "blue"}
    )
    assert parsed.values == {
        "item": Item(name="tea", price=3),
        "amount": 1,
        "color": Color.BLUE,
        "day": datetime.date(2026, 2, 3),
        "size": Size(2),
        "tags": frozenset({"a"}),
        "kind": "own",
        "share": 1.0,
    }
    assert parsed.json == {
        "item": {"name": "tea", "price": 3.0},
        "amount": 1,
        "color": "blue",
        "day": "2026-02-03",
        "size": {"width": 2, "height": 1},
        "tags": ["a"],
        "kind": "own",
        "share": 1.0,
    }


def test_validation_is_the_usual_lax_one() -> None:
    def take(n: int) -> None: ...

    assert tool(take).parse({"n": "5"}).json == {"n": 5}
    assert fault(tool(take), {"n": "five"}) == 'n: expected a valid integer; got "five"'


def test_strict_models_take_the_json_form_of_dates_and_tuples() -> None:
    def take(it: Strict) -> None: ...

    assert tool(take).parse({"it": {"day": "2026-01-02", "pair": [1, 2]}}).values["it"].pair == (1, 2)


def test_python_objects_that_middleware_puts_in_are_taken() -> None:
    tea = Item(name="tea", price=3)
    assert tool(order).parse({"item": tea, "day": datetime.date(2026, 1, 2)}).values["item"] == tea


def test_a_secret_reaches_the_body_and_is_masked_everywhere_else() -> None:
    def login(user: str, password: SecretStr, pin: SecretStr = SecretStr("0000")) -> None: ...  # noqa: B008

    made = tool(login)
    parsed = made.parse({"user": "ann", "password": "hunter2"})
    assert parsed.values["password"].get_secret_value() == "hunter2"
    assert parsed.values["pin"].get_secret_value() == "0000"
    assert parsed.json == {"user": "ann", "password": "**********", "pin": "**********"}
    assert "0000" not in json.dumps(made.parameters)
    assert made.secrets == {"password", "pin"}
    assert "4711" not in fault(made, {"user": "ann", "password": 4711})


def test_money_is_a_number_for_the_rules_and_exact_for_the_body() -> None:
    def pay(amount: Decimal) -> None: ...

    parsed = tool(pay).parse({"amount": "500.10"})
    assert parsed.values == {"amount": Decimal("500.10")}
    assert parsed.json == {"amount": 500.1}
    assert tool(pay).parse({"amount": 500}).json == {"amount": 500}
    assert tool(pay).parse({"amount": "0.1234567890123456789"}).json == {"amount": "0.1234567890123456789"}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "nan", "Infinity", 10**400])
def test_numbers_that_are_none_never_pass_since_they_would_pass_every_bound(value: object) -> None:
    def pay(amount: float) -> None: ...

    assert "amount" in fault(tool(pay), {"amount": value})


@pytest.mark.parametrize("value", [math.nan, [1, {"a": math.inf}]])
def test_no_kind_of_parameter_lets_them_in(value: object) -> None:
    @tool
    def take(it: Any = None, **further: Any) -> None: ...

    assert "it" in fault(take, {"it": value})
    assert "other" in fault(take, {"other": value})


def test_a_default_without_a_json_form_reaches_the_body_only() -> None:
    marker = object()

    @tool
    def take(it: str = marker) -> None: ...  # type: ignore[assignment]

    parsed = take.parse({})
    assert (parsed.values, parsed.json) == ({"it": marker}, {})
    assert take.parameters["properties"] == {"it": {"type": "string"}}


def test_a_default_factory_makes_a_new_value_for_every_call() -> None:
    @tool
    def take(it: list[int] = Field(default_factory=list)) -> None: ...  # noqa: B008

    one, two = take.parse({}), take.parse({})
    assert one.values == two.values == {"it": []}
    assert one.values["it"] is not two.values["it"]


# --- further arguments ---


def test_without_kwargs_an_unknown_argument_fails_and_the_text_lists_the_parameters() -> None:
    def pay(amount: int) -> None: ...

    assert fault(tool(pay), {"amount": 1, "dry_run": True}) == "there is no parameter 'dry_run'; parameters: amount"
    assert fault(tool(pay), {"amuont": 1}).splitlines() == [
        "amount: missing; expected an integer",
        "there is no parameter 'amuont' (did you mean 'amount'?); parameters: amount",
    ]


def test_kwargs_take_any_further_json() -> None:
    @tool
    def take(a: int, **kwargs: Any) -> dict[str, Any]:
        return kwargs

    assert take.parameters["additionalProperties"] is True
    parsed = take.parse({"a": 1, "b": [1, {"c": None}], "kwargs": 2})
    assert take.invoke(parsed.values, None) == {"b": [1, {"c": None}], "kwargs": 2}
    assert parsed.json == {"a": 1, "b": [1, {"c": None}], "kwargs": 2}


def test_annotated_kwargs_are_validated() -> None:
    @tool
    def take(**counts: int) -> None: ...

    assert take.parameters["additionalProperties"] == {"type": "integer"}
    assert take.parse({"a": "3"}).json == {"a": 3}
    assert fault(take, {"a": "x"}) == 'a: expected a valid integer; got "x"'


def test_a_body_cannot_be_given_its_own_self() -> None:
    class Take(Tool):
        name = "take"

        def run(self, **further: Any) -> Any:
            return further

    assert "self" in fault(Take(), {"self": 1})


# --- words ---


def test_each_field_at_fault_has_a_line_with_its_path_what_was_expected_and_what_came() -> None:
    text = fault(tool(order), {"item": {"price": -1}, "amount": "two", "color": "green", "size": {"width": []}, "kind": "x", "day": "soon"})
    assert text.splitlines() == [
        "item.name: missing",
        "item.price: expected greater than 0; got -1",
        'amount: expected a valid integer; got "two"',
        "color: expected 'red' or 'blue'; got \"green\"",
        'day: expected a valid date or datetime, input is too short; got "soon"',
        "size.width: expected a valid integer; got []",
        "kind: expected 'gift' or 'own'; got \"x\"",
    ]


def test_branches_of_a_union_are_one_line_under_the_path_of_the_value() -> None:
    @tool
    def take(it: int | list[int] | Item) -> None: ...

    assert fault(take, {"it": "x"}) == 'it: expected a valid integer or a valid array or an object; got "x"'
    assert "it[1]: expected a valid integer" in fault(take, {"it": [1, "x"]})
    assert "it.price: missing" in fault(take, {"it": {"name": "tea"}})


def test_two_wrong_fields_of_the_same_value_are_two_lines() -> None:
    assert len(fault(tool(order), {"item": {"name": 1, "price": "x"}, "amount": "x"}).splitlines()) == 3


def test_a_validator_of_the_types_author_speaks_for_itself() -> None:
    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, value: int) -> int:
            if value == 13:
                raise RuntimeError("out of luck")
            if value % 2:
                raise ValueError("give an even number")
            return value

    @tool
    def take(it: Even) -> None: ...

    assert fault(take, {"it": {"n": 3}}) == "it.n: give an even number; got 3"
    assert "RuntimeError" in fault(take, {"it": {"n": 13}})


def test_long_values_and_long_lists_of_faults_are_cut_off() -> None:
    @tool
    def take(ns: list[int]) -> None: ...

    text = fault(take, {"ns": ["x" * 10_000] * 1_000, "y" * 10_000: 1})
    assert len(text.splitlines()) == 21
    assert "more" in text.splitlines()[-1]
    assert len(text) < 5_000


def test_lone_surrogates_make_no_text_that_cannot_be_sent() -> None:
    @tool
    def take(q: str, n: int = 1) -> None: ...

    text = fault(take, {"q": "\ud83d", "n": "\ud83d", "\ud83d": 1})
    text.encode()
    assert "q: expected text without lone surrogates" in text


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    n: int = 1


@pytest.mark.parametrize(
    ("annotation", "given", "said"),
    [
        (Closed, {"n": 1, "m": 2}, "it.m: there is no such field; got 2"),
        (Annotated[str, Field(min_length=3)], "ab", 'it: string should have at least 3 characters; got "ab"'),
        (Annotated[list[int], Field(max_length=1)], [1, 2], "it: list should have at most 1 item after validation, not 2; got [1, 2]"),
        (Path, 3, "it: is not a valid path"),
        (AwareDatetime, "2026-01-01T00:00:00", "it: should have timezone info"),
        (Json, "{", "it: invalid JSON: EOF while parsing an object"),
        (Annotated[int, Field(gt=0)], -1, "it: expected greater than 0; got -1"),
    ],
)
def test_a_fault_reads_as_a_sentence_about_the_field(annotation: Any, given: Any, said: str) -> None:
    def take(it: Any) -> None: ...

    take.__annotations__["it"] = annotation
    assert fault(tool(take), {"it": given}).startswith(said)


def test_nesting_without_end_is_a_fault_like_another() -> None:
    @tool
    def take(it: Any) -> None: ...

    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert "it" in fault(take, {"it": deep})


def test_an_alias_is_refused_since_the_name_is_the_name() -> None:
    def take(it: int = Field(alias="other")) -> None: ...

    with pytest.raises(PolicyError, match="alias"):
        _ = tool(take).parameters


# --- properties ---

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3),
    max_leaves=8,
)


@tool
def anything(it: Any = None, **further: Any) -> None: ...


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=4))
def test_any_json_passes_unchanged_through_a_tool_that_takes_anything(arguments: dict[str, Any]) -> None:
    expected = {"it": None, **arguments}
    assert anything.parse(arguments) == Parsed(expected, expected)


@given(st.dictionaries(st.sampled_from(["item", "amount", "color", "day", "size", "tags", "kind", "share", "x"]), JSON, max_size=5))
@settings(max_examples=200)
def test_arguments_are_valid_or_refused_with_words_and_never_anything_else(arguments: dict[str, Any]) -> None:
    try:
        parsed = tool(order).parse(arguments)
    except ArgumentsInvalid:
        return
    assert json.loads(json.dumps(parsed.json, allow_nan=False)) == parsed.json


@given(
    st.fixed_dictionaries(
        {"item": st.fixed_dictionaries({"name": st.text(st.characters(exclude_categories=["Cs"])), "price": st.floats(0.01, 1e9)})},
        optional={
            "amount": st.integers(),
            "color": st.sampled_from(["red", "blue"]),
            "day": st.dates().map(str),
            "size": st.none() | st.fixed_dictionaries({"width": st.integers()}),
            "tags": st.lists(st.sampled_from(["a", "b"]), unique=True),
            "share": st.floats(allow_nan=False, allow_infinity=False),
        },
    )
)
def test_the_json_form_is_valid_again_and_says_the_same(arguments: dict[str, Any]) -> None:
    once = tool(order).parse(arguments)
    again = tool(order).parse(json.loads(json.dumps(once.json)))
    assert again.values == once.values
    assert {**again.json, "tags": sorted(again.json["tags"])} == {**once.json, "tags": sorted(once.json["tags"])}

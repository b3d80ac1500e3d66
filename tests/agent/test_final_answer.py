"""The final answer as a tool, for every kind of output."""

import datetime
import enum
import math
import threading
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Required, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field

from maymust.agent.final_answer import FinalAnswer
from maymust.errors import PolicyError
from maymust.tools.arguments import ArgumentsInvalid


class Color(enum.Enum):
    RED = "red"


class Town(BaseModel):
    city: str
    people: int
    founded: datetime.date | None = None


class Alias(BaseModel):
    model_config = ConfigDict(extra="forbid")
    one: int = Field(alias="first")
    two: int = Field(validation_alias="second", serialization_alias="zweite")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def both(self) -> int:
        return self.one + self.two


class Node(BaseModel):
    value: int
    children: list["Node"] = []


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: datetime.date
    pair: tuple[int, int]


@dataclass
class Size:
    width: int
    color: Color = Color.RED
    marks: list[int] = field(default_factory=list)


class Record(TypedDict, total=False):
    key: Required[int]
    note: str


class Pair(NamedTuple):
    a: int
    b: int = 2


def fault(output_type: Any, arguments: dict[str, Any]) -> str:
    with pytest.raises(ArgumentsInvalid) as caught:
        FinalAnswer(output_type).parse(arguments)
    return str(caught.value)


def test_without_an_output_type_the_answer_is_text() -> None:
    final: FinalAnswer[str] = FinalAnswer()
    assert final.tool.name == "final_answer"
    assert list(final.tool.parameters["properties"]) == ["answer"]
    assert final.parse({"answer": "42"}) == ("42", "42")
    assert final.from_text("42") == ("42", "42")
    assert final.load("42") == "42"


@pytest.mark.parametrize(
    ("output_type", "arguments", "output", "value"),
    [
        (str, {"answer": "x"}, "x", "x"),
        (int, {"answer": "5"}, 5, 5),
        (bool, {"answer": True}, True, True),
        (list[str], {"answer": ["a"]}, ["a"], ["a"]),
        (dict[str, int], {"answer": {"a": 1}}, {"a": 1}, {"a": 1}),
        (dict, {"answer": {"a": [1]}}, {"a": [1]}, {"a": [1]}),
        (Literal["a", "b"], {"answer": "b"}, "b", "b"),
        (int | str, {"answer": "x"}, "x", "x"),
        (Color, {"answer": "red"}, "red", Color.RED),
        (Pair, {"answer": [1]}, [1, 2], Pair(1)),
        (RootModel[list[int]], {"answer": [1]}, [1], RootModel[list[int]]([1])),
        (list[Size], {"answer": [{"width": 1}]}, [{"width": 1, "color": "red", "marks": []}], [Size(1)]),
        (Town | Size, {"answer": {"width": 1}}, {"width": 1, "color": "red", "marks": []}, Size(1)),
        (
            Town,
            {"city": "Delft", "people": "110000"},
            {"city": "Delft", "people": 110000, "founded": None},
            Town(city="Delft", people=110000),
        ),
        (Size, {"width": 1, "color": "red"}, {"width": 1, "color": "red", "marks": []}, Size(1)),
        (Record, {"key": "1"}, {"key": 1}, {"key": 1}),
        (
            Strict,
            {"day": "2026-01-02", "pair": [1, 2]},
            {"day": "2026-01-02", "pair": [1, 2]},
            Strict(day=datetime.date(2026, 1, 2), pair=(1, 2)),
        ),
        (
            Node,
            {"value": 1, "children": [{"value": 2}]},
            {"value": 1, "children": [{"value": 2, "children": []}]},
            Node(value=1, children=[Node(value=2)]),
        ),
        (Alias, {"first": 1, "second": 2}, {"one": 1, "two": 2}, Alias.model_validate({"first": 1, "second": 2})),
    ],
)
def test_every_kind_of_output_comes_back_as_it_was_meant(output_type: Any, arguments: dict[str, Any], output: Any, value: Any) -> None:
    final: FinalAnswer[Any] = FinalAnswer(output_type)
    text, form = final.parse(arguments)
    assert form == output
    assert final.load(form) == value
    assert final.from_text(text) == (text, form) or output_type is Alias


@pytest.mark.parametrize(
    ("output_type", "fields"),
    [(Town, {"city", "people", "founded"}), (Size, {"width", "color", "marks"}), (Record, {"key", "note"}), (Node, {"value", "children"})],
)
def test_records_give_the_tool_their_fields(output_type: Any, fields: set[str]) -> None:
    schema = FinalAnswer(output_type).tool.parameters
    assert schema["type"] == "object"
    assert set(schema["properties"]) == fields


def test_invalid_answers_give_the_exact_errors() -> None:
    assert fault(Town, {"people": "many"}).splitlines() == ["city: missing", 'people: expected a valid integer; got "many"']
    assert fault(int, {"answer": "x"}) == 'answer: expected a valid integer; got "x"'
    assert fault(None, {}) == "answer: missing; expected text"
    assert fault(None, {"text": "x"}).splitlines()[1] == "there is no parameter 'text'; parameters: answer"
    assert "answer" in fault(float, {"answer": math.nan})


@pytest.mark.parametrize(
    ("output_type", "text"),
    [
        (Town, "Delft has many people"),
        (Town, "[]"),
        (Town, '{"city": 1}'),
        (Town, 'So: {"city": "Delft", "people": 1}'),
        (int, "five"),
        (float, "NaN"),
        (list[int], "1, 2"),
    ],
)
def test_a_text_that_is_not_as_a_whole_a_valid_output_is_none(output_type: Any, text: str) -> None:
    assert FinalAnswer(output_type).from_text(text) is None


def test_a_text_that_is_a_valid_output_is_one() -> None:
    assert FinalAnswer(Town).from_text(' {"city": "Delft", "people": 1}\n') == (
        ' {"city": "Delft", "people": 1}\n',
        {"city": "Delft", "people": 1, "founded": None},
    )
    assert FinalAnswer(int).from_text("5") == ("5", 5)


def test_a_type_without_a_schema_is_refused() -> None:
    with pytest.raises(PolicyError, match="output_type"):
        FinalAnswer(type(threading.Lock()))


@given(st.builds(Town, city=st.text(st.characters(exclude_categories=["Cs"])), people=st.integers(), founded=st.none() | st.dates()))
def test_whatever_an_output_holds_it_survives_the_way_through_json(town: Town) -> None:
    final: FinalAnswer[Town] = FinalAnswer(Town)
    assert final.load(final.parse(town.model_dump(mode="json"))[1]) == town

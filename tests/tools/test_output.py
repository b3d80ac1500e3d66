"""What tools give back."""

import datetime
import enum
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr, model_serializer

from maymust.errors import ToolError
from maymust.tools.output import OutputInvalid, render_output


class Kind(enum.StrEnum):
    GIFT = "gift"


@dataclass
class Size:
    width: int


class Item(BaseModel):
    name: str
    size: Size
    key: SecretStr = SecretStr("hunter2")


class Broken(BaseModel):
    @model_serializer
    def give(self) -> dict[str, Any]:
        raise KeyError("no such thing")


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        ("héllo", "héllo", "héllo"),
        (Kind.GIFT, "gift", "gift"),
        (5, 5, "5"),
        (True, True, "true"),
        ([1, None], [1, None], "[1,null]"),
        ({"a": "é"}, {"a": "é"}, '{"a":"é"}'),
        ({1: 2}, {"1": 2}, '{"1":2}'),
        ({3}, [3], "[3]"),
        ((1, 2), [1, 2], "[1,2]"),
        (Size(2), {"width": 2}, '{"width":2}'),
        (
            Item(name="tea", size=Size(1)),
            {"name": "tea", "size": {"width": 1}, "key": "**********"},
            '{"name":"tea","size":{"width":1},"key":"**********"}',
        ),
        (datetime.date(2026, 1, 2), "2026-01-02", '"2026-01-02"'),
        (Decimal("1.50"), "1.50", '"1.50"'),
        (b"\xff\x00", "_wA=", '"_wA="'),
    ],
)
def test_a_value_has_a_json_form_and_a_text(value: Any, form: Any, text: str) -> None:
    assert render_output(value) == (form, text)


def test_nothing_and_the_empty_text_get_a_text_that_says_so() -> None:
    assert render_output(None) == (None, "The tool succeeded and returned nothing.")
    assert render_output("") == ("", "The tool succeeded and returned an empty text.")


def test_a_lone_surrogate_never_reaches_the_model() -> None:
    form, text = render_output("a\ud83d")
    assert (form, text) == ("a\N{REPLACEMENT CHARACTER}", "a\N{REPLACEMENT CHARACTER}")


def test_two_halves_of_a_character_become_one() -> None:
    assert render_output("\ud83d\ude00") == ("\N{GRINNING FACE}", "\N{GRINNING FACE}")


def test_half_a_character_inside_of_a_value_is_replaced() -> None:
    form, text = render_output({"letters": ["a\ude00"]})
    assert form == {"letters": ["a\N{REPLACEMENT CHARACTER}"]}
    text.encode()


def loop() -> list[Any]:
    it: list[Any] = []
    it.append(it)
    return it


def generator() -> Iterator[int]:
    yield 1
    raise RuntimeError("broken")


@pytest.mark.parametrize("value", [object(), math.nan, [math.inf], {"a": -math.inf}, loop(), Broken(), {"a": object()}, generator()])
def test_what_has_no_json_form_is_an_error_that_says_the_tool_did_run(value: Any) -> None:
    with pytest.raises(OutputInvalid, match="ran, but") as caught:
        render_output(value)
    assert isinstance(caught.value, ToolError)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
        max_leaves=10,
    )
)
def test_json_stays_what_it_is_and_the_text_says_the_same(value: Any) -> None:
    form, text = render_output(value)
    assert form == value
    if not isinstance(value, str | None):
        assert json.loads(text) == value
    text.encode()

"""Arguments of one call against the rules."""

from __future__ import annotations

from typing import Any

import pytest

from maymust.core.narrowing import askers, fragment_words, outside
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.rule import Rule
from tests.core.random_policies import Says


def permit(*rules: Rule) -> Permit:
    return Policy([Says(f"r{number}", 10, [rule]) for number, rule in enumerate(rules)], tools=["pay"]).permit()


def test_within_and_outside() -> None:
    one = permit(Rule("pay", arguments={"amount": {"maximum": 100}}), Rule("pay", arguments={"amount": {"minimum": 1}}, reason="no gifts"))
    assert outside(one, "pay", {"amount": 50}) is None
    assert outside(one, "pay", {"amount": 0}) == "amount has to be at least 1, got 0 (no gifts)"
    assert outside(one, "pay", {"other": 0}) == "amount has to be given: at most 100 and at least 1 (no gifts)"
    assert outside(one, "pay", None) is not None


def test_a_keyword_nobody_can_judge_keeps_the_call_closed_and_asks() -> None:
    odd = {"x": {"unevaluatedItems": False}}
    assert "cannot be judged" in (outside(permit(Rule("pay", arguments=odd)), "pay", {"x": 1}) or "")
    assert askers(permit(Rule("pay", ask=odd)), "pay", {"x": 1}) == ("r0",)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"amount": 200, "to": "x"}, ("r0", "r1")),
        ({"amount": 20, "to": "x"}, ("r1",)),
        ({"amount": 200}, ("r0", "r1")),
        ({}, ("r0", "r1")),
        (None, ("r0", "r1")),
    ],
)
def test_who_asks(arguments: dict[str, Any] | None, expected: tuple[str, ...]) -> None:
    both = permit(Rule("pay", ask={"amount": {"minimum": 100}, "to": {"type": "string"}}), Rule("pay", ask=True))
    assert askers(both, "pay", arguments) == expected


@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 5}, "an integer, above 1, below 5"),
        ({"enum": ["A1", "B2"]}, 'one of "A1", "B2"'),
        ({"enum": []}, "no value at all"),
        ({"const": None}, "null"),
        (
            {"type": ["string", "null"], "minLength": 1, "maxLength": 3},
            "a string or null, at least 1 character long, at most 3 characters long",
        ),
        ({"pattern": "^a"}, 'a text that matches "^a"'),
        ({"uniqueItems": True}, "uniqueItems true"),
        ({}, "anything"),
    ],
)
def test_fragments_in_words(fragment: dict[str, Any], words: str) -> None:
    assert fragment_words(fragment) == words


@pytest.mark.parametrize("value", [None, "a lot", True, [1]])
def test_a_bound_admits_no_value_of_another_kind_and_a_question_is_put_about_it(value: Any) -> None:
    assert "has to be" in (outside(permit(Rule("pay", arguments={"amount": {"maximum": 100}})), "pay", {"amount": value}) or "")
    assert askers(permit(Rule("pay", ask={"amount": {"minimum": 100}})), "pay", {"amount": value}) == ("r0",)


def test_what_is_left_out_counts_as_null() -> None:
    maybe = permit(Rule("pay", arguments={"note": {"anyOf": [{"type": "null"}, {"enum": ["a"]}]}}))
    assert outside(maybe, "pay", {}) is None
    assert outside(maybe, "pay", None) is None
    assert outside(maybe, "pay", {"note": "b"}) is not None


def test_a_pattern_ends_where_the_text_ends() -> None:
    mail = permit(Rule("pay", arguments={"to": {"pattern": "^a@b$"}}))
    assert outside(mail, "pay", {"to": "a@b"}) is None
    assert outside(mail, "pay", {"to": "a@b\n"}) is not None

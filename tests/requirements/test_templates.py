"""The further conditions of a conditional requirement: any-of, attempts, cooldown, and what has to follow."""

from __future__ import annotations

from typing import Any

import pytest

from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.errors import PolicyError
from maymust.requirements.conditional import ConditionalRequirement

TOOLS = ("read", "write", "test", "note")


def after(words: str) -> History:
    history = History()
    for word in words.split():
        tool, _, outcome = word.partition("!")
        history = history.add(tool, outcome=outcome or "ok")
    return history


def permit(words: str, **parameters: Any) -> Permit:
    return Policy([ConditionalRequirement("write", **parameters)], tools=TOOLS).permit(after(words))


def is_open(words: str, **parameters: Any) -> bool:
    return "write" in permit(words, **parameters).allowed


def test_only_after_any_opens_with_the_first_of_them() -> None:
    assert not is_open("note", only_after_any=["read", "test"])
    assert not is_open("read!failed", only_after_any=["read", "test"])
    assert is_open("read", only_after_any=["read", "test"])
    assert is_open("test", only_after_any=["read", "test"])
    assert permit("", only_after_any=["read", "test"]).reasons["write"] == ("read or test has to succeed first",)


def test_only_after_and_only_after_any_stand_each_alone() -> None:
    parameters: dict[str, Any] = {"only_after": ["note"], "only_after_any": ["read", "test"]}
    assert not is_open("read", **parameters)
    assert not is_open("note", **parameters)
    assert is_open("test note", **parameters)


def test_attempts_count_failures_even_where_only_successes_count_otherwise() -> None:
    assert is_open("write!failed", max_attempts=2)
    assert not is_open("write!failed write!failed", max_attempts=2)
    assert not is_open("write write!failed", max_attempts=2)
    assert is_open("write!denied write!refused", max_attempts=2)
    assert is_open("write!failed write!failed", max_invocations=2)
    assert not is_open("", max_attempts=0)
    assert permit("write!failed", max_attempts=1).reasons["write"] == ("write was already called 1 time (limit 1), and failed calls count",)


def test_a_cooldown_wants_other_steps_in_between() -> None:
    assert is_open("", cooldown=2)
    assert not is_open("write", cooldown=2)
    assert not is_open("write read", cooldown=2)
    assert is_open("write read note", cooldown=2)
    assert not is_open("write read note write", cooldown=2)
    assert not is_open("write read!failed", cooldown=1)
    assert is_open("write read!failed", cooldown=1, only_success_invocations=False)
    assert permit("write read", cooldown=3).reasons["write"] == ("3 calls of other tools have to succeed between two calls of write",)


def test_a_cooldown_of_one_is_never_twice_in_a_row() -> None:
    for words in ("", "write", "write read", "read write", "write!failed", "write read write"):
        assert is_open(words, cooldown=1) == is_open(words, consecutive_allowed=False)


def test_what_has_to_follow_is_owed_after_each_call() -> None:
    parameters: dict[str, Any] = {"followed_by": ["test"]}
    assert permit("", **parameters).may_stop
    assert not permit("write", **parameters).may_stop
    assert not permit("write test!failed", **parameters).may_stop
    assert permit("write test", **parameters).may_stop
    assert not permit("write test write", **parameters).may_stop
    assert permit("test", **parameters).may_stop
    assert permit("write", **parameters).owed == ("conditional:write",)
    assert permit("write", **parameters).reasons["final_answer"] == ("test has to succeed after write before the end",)


def test_of_several_that_have_to_follow_each_is_owed() -> None:
    parameters: dict[str, Any] = {"followed_by": ["test", "note"], "min_invocations": 2}
    assert permit("write test", **parameters).reasons["final_answer"] == (
        "write has to succeed 2 times and note has to succeed after write before the end",
    )
    assert permit("write write note test", **parameters).may_stop


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"max_attempts": -1}, "max_attempts has to be a whole number of at least 0, got -1"),
        ({"cooldown": 0}, "cooldown has to be a whole number of at least 1, got 0"),
        ({"min_invocations": 3, "max_attempts": 2}, r"min_invocations \(3\) is above max_attempts \(2\)"),
        ({"followed_by": ["write"]}, "write is in its own followed_by, so each call would owe another one for ever"),
        ({"only_after_any": ["write"]}, "write is in its own only_after_any, so it could never be called"),
        ({"only_after_any": ["read", "test"], "only_before": ["test", "read"]}, "in both only_after_any and only_before"),
        ({"only_after_any": ["raed"]}, "did you mean read"),
        ({"followed_by": ["tset"]}, "did you mean test"),
        ({"force_after": ["write"]}, "would be forced for ever"),
    ],
)
def test_contradictions_are_refused(parameters: dict[str, Any], text: str) -> None:
    with pytest.raises(PolicyError, match=text):
        Policy([ConditionalRequirement("write", **parameters)], tools=TOOLS)


def test_a_tool_in_its_own_force_after_is_fine_with_a_cooldown() -> None:
    assert permit("write", force_after=["write"], cooldown=1).forced is None
    assert is_open("read", only_after_any=["write", "read"])


def test_all_of_it_is_described() -> None:
    said = Policy(
        [ConditionalRequirement("write", only_after_any=["read", "note"], max_attempts=3, cooldown=2, followed_by=["test"])], tools=TOOLS
    ).describe()["requirements"][0]
    assert {key: said[key] for key in ("only_after", "max_attempts", "cooldown", "followed_by")} == {
        "only_after": [["read", "note"]],
        "max_attempts": 3,
        "cooldown": 2,
        "followed_by": ["test"],
    }


def test_evidence_names_attempts_and_how_long_ago_it_was() -> None:
    said = permit("write write!failed read", max_attempts=3, cooldown=2).why("write")[0].evidence
    assert said == "write: 2 ok or failed calls; last write: 1 step ago"

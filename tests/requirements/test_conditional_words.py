"""What a conditional requirement says in its own words, and of itself."""

from __future__ import annotations

from typing import Any

import pytest

from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.core.requirement import RunView
from maymust.errors import PolicyError
from maymust.requirements.conditional import ConditionalRequirement

TOOLS = ("think", "search", "fetch")


def reasons(words: str, *, of: str = "search", **settings: Any) -> tuple[str, ...]:
    history = History()
    for word in words.split():
        tool, _, outcome = word.partition("!")
        history = history.add(tool, outcome=outcome or "ok")
    return Policy([ConditionalRequirement("search", **settings)], tools=TOOLS).permit(history).reasons[of]


def office_hours(history: History) -> bool:
    return False


@pytest.mark.parametrize(
    ("words", "settings", "expected"),
    [
        ("", {"only_after": ["think"]}, "think has to succeed first"),
        ("", {"only_after": ["think", "fetch"]}, "think and fetch have to succeed first"),
        ("think", {"only_after": ["think", "fetch"]}, "fetch has to succeed first"),
        ("", {"only_after": ["think"], "only_success_invocations": False}, "think has to be called first"),
        ("fetch", {"only_before": ["fetch"]}, "fetch was already called, and search is possible only before that"),
        ("search search", {"max_invocations": 2}, "search was already called 2 times (limit 2)"),
        ("", {"max_invocations": 0}, "search may not be called at all (limit 0)"),
        ("search", {"consecutive_allowed": False}, "search may not be called twice in a row, so another tool has to succeed first"),
        ("", {"custom_checks": [office_hours]}, "the check office_hours does not hold"),
        ("", {"custom_checks": [lambda history: False], "name": "hours"}, "a condition of hours does not hold"),
    ],
)
def test_a_denial_names_the_tools_concerned(words: str, settings: dict[str, Any], expected: str) -> None:
    assert reasons(words, **settings) == (expected,)


def test_what_is_owed_is_said_of_the_final_answer() -> None:
    assert reasons("", of="final_answer", min_invocations=1) == ("search has to succeed before the end",)
    assert reasons("", of="final_answer", min_invocations=3) == ("search has to succeed 3 times before the end",)
    assert reasons("", of="final_answer", force_at_step=1) == ("search has to be called now",)
    closed = reasons("", of="final_answer", min_invocations=1, only_after=["think"])
    assert closed == ("think has to succeed first; search has to succeed before the end",)


def test_a_reason_of_the_author_stands_in_its_place() -> None:
    assert reasons("", only_after=["think"], reason="think it over") == ("think it over",)


def test_equal_situations_give_the_very_same_rule() -> None:
    (bound,) = Policy([ConditionalRequirement("search", only_after=["think", "fetch"], min_invocations=2)], tools=TOOLS).requirements
    one, other = History().add("think"), History().add("think").add("think").add("fetch", outcome="failed")
    assert bound.rules(one, RunView()) is bound.rules(other, RunView())
    assert bound.rules(one, RunView()) is not bound.rules(History(), RunView())


def test_it_can_be_asked_by_itself() -> None:
    (rule,) = ConditionalRequirement("search", only_after="think").rules(History(), RunView(tools=TOOLS))
    assert (rule.target, rule.allowed) == ("search", False)


def test_it_describes_itself_with_resolved_names() -> None:
    requirement = ConditionalRequirement(
        "search",
        only_after=["think"],
        force_after=["fetch"],
        force_prevent_stop=False,
        max_invocations=2,
        custom_checks=[office_hours],
        reason="r",
    )
    (bound,) = Policy([requirement], tools=TOOLS).requirements
    assert bound.describe() == {  # type: ignore[attr-defined]
        "kind": "conditional",
        "target": "search",
        "only_after": ["think"],
        "force_after": ["fetch"],
        "max_invocations": 2,
        "custom_checks": ["office_hours"],
        "reason": "r",
        "force_prevent_stop": False,
    }


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"force_at_step": True}, "force_at_step"),
        ({"max_invocations": 1.5}, "max_invocations"),
        ({"consecutive_allowed": None}, "consecutive_allowed"),
        ({"force_prevent_stop": 0}, "force_prevent_stop"),
        ({"only_success_invocations": "yes"}, "only_success_invocations"),
        ({"reason": 5}, "reason"),
        ({"priority": 0}, "priority"),
        ({"priority": None}, "priority"),
        ({"enabled": "no"}, "enabled"),
        ({"custom_checks": [5]}, "custom_checks"),
        ({"custom_checks": [lambda: True]}, "has to take"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_at_once(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        ConditionalRequirement("search", **settings)


@pytest.mark.parametrize("target", [None, ["search"], ("search", "fetch")])
def test_a_target_is_one_tool(target: Any) -> None:
    with pytest.raises(PolicyError, match="target has to be one tool"):
        ConditionalRequirement(target)


def test_a_check_may_look_at_the_run() -> None:
    policy = Policy([ConditionalRequirement("search", custom_checks=[lambda history, run: run.deps == "admin"])], tools=TOOLS)
    assert policy.permit().denied == ("search",)
    assert policy.permit(run=RunView(deps="admin")).denied == ()


def test_disabled_requirements_are_checked_too() -> None:
    with pytest.raises(PolicyError, match="serach"):
        Policy([ConditionalRequirement("serach", enabled=False)], tools=TOOLS)

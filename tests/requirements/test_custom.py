"""Requirements out of functions, with the worked example."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.core.requirement import RunView
from maymust.core.rule import Rule
from maymust.errors import PolicyError
from maymust.requirements.custom import FunctionRequirement, requirement

TOOLS = ("search", "note")


def retry_when_empty(tool: str, times: int) -> FunctionRequirement:
    """A tool whose last output was empty is forced again, at most `times` times in a row."""

    @requirement(name=f"retry:{tool}", targets=[tool], depends_on=[tool])
    def retry(history: History) -> Rule | None:
        empty = 0
        for step in reversed([step for step in history if step.tool == tool and step.outcome == "ok"]):
            if step.output:
                break
            empty += 1
        again = 0 < empty <= times and history.last == tool
        return Rule(tool, forced=True, prevent_stop=True, reason=f"{tool} found nothing, so try other words") if again else None

    return retry


def test_the_worked_example_forces_a_tool_again_until_it_finds_something_or_has_tried_enough() -> None:
    policy = Policy([retry_when_empty("search", 2)], tools=TOOLS)
    history = History()
    assert policy.permit(history).forced is None
    history = history.add("search", output="")
    first = policy.permit(history)
    assert (first.forced, first.may_stop, first.reasons["final_answer"]) == ("search", False, ("search found nothing, so try other words",))
    assert policy.permit(history.add("search", output="Delft")).forced is None
    history = history.add("search", output=None)
    assert policy.permit(history).forced == "search"
    history = history.add("search", output=[])
    assert policy.permit(history).forced is None
    assert policy.permit(history.add("note")).forced is None


def test_a_function_may_take_the_run() -> None:
    @requirement(targets="note")
    def office_hours(history: History, run: RunView) -> Rule:
        return Rule("note", allowed=run.now is not None and run.now < 18, reason="closed")

    policy = Policy([office_hours], tools=TOOLS)
    assert policy.permit().denied == ("note",)
    assert policy.permit(run=RunView(now=12)).denied == ()


def test_it_can_be_used_without_parentheses_and_called() -> None:
    @requirement
    def quiet(history: History) -> None:
        """Says nothing."""

    assert (quiet.name, quiet.priority, quiet.__doc__) == ("quiet", 10, "Says nothing.")
    assert quiet(History()) is None
    assert Policy([quiet], tools=TOOLS).permit().denied == ()


def test_a_rule_on_another_tool_than_declared_is_an_error() -> None:
    @requirement(name="narrow", targets=["search"])
    def narrow(history: History) -> list[Rule]:
        return [Rule("search"), Rule("note", allowed=False)]

    with pytest.raises(PolicyError, match="narrow gives a rule on note"):
        Policy([narrow], tools=TOOLS).permit()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": "x", "targets": ["serach"]}, "x: targets: there is no tool called serach; did you mean search"),
        ({"name": "x", "depends_on": ["serach"]}, "x: depends_on: there is no tool called serach"),
    ],
)
def test_unknown_tools_are_found_when_the_policy_is_built(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        Policy([requirement(**settings)(lambda history: None)], tools=TOOLS)


@pytest.mark.parametrize(
    ("function", "settings", "words"),
    [
        (lambda: None, {}, "has to take"),
        (lambda a, b, c: None, {}, "has to take"),
        (lambda history, *, user: None, {}, "has to take"),
        ("text", {}, "needs a function"),
        (lambda history: None, {"priority": 0}, "priority"),
        (lambda history: None, {"enabled": None}, "enabled"),
        (lambda history: None, {"stable_once_true": 1}, "stable_once_true has to be True or False, got 1"),
        (lambda history: None, {"max_denials": 0}, "max_denials has to be a whole number above 0, got 0"),
    ],
)
def test_what_cannot_be_a_requirement_is_refused(function: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        requirement(**settings)(function)


def test_a_default_of_its_own_is_not_the_run() -> None:
    @requirement(targets=["note"])
    def loop_variable(history: History, limit: int = 3) -> Rule:
        return Rule("note", allowed=len(history) < limit)

    assert Policy([loop_variable], tools=TOOLS).permit(History().add("search")).denied == ()


def test_an_async_function_is_awaited_by_whoever_can_wait() -> None:
    @requirement(name="later", targets=["note"])
    async def later(history: History, run: RunView) -> list[Rule]:
        await asyncio.sleep(0)
        return [Rule("search" if history else "note", allowed=False)]

    policy = Policy([later], tools=TOOLS)
    (bound,) = policy.opaque
    rules = asyncio.run(bound.rules(History(), RunView()))
    assert policy.permit(given={"later": rules}).denied == ("note",)
    with pytest.raises(PolicyError, match="not among its targets"):
        asyncio.run(bound.rules(History().add("note"), RunView()))


def test_it_says_what_it_depends_on() -> None:
    (bound,) = Policy([retry_when_empty("search", 1)], tools=TOOLS).opaque
    assert bound.depends_on == frozenset({"search"})  # type: ignore[attr-defined]


def test_a_disabled_one_is_checked_and_silent() -> None:
    policy = Policy([requirement(enabled=False)(lambda history: Rule("note", allowed=False))], tools=TOOLS)
    assert policy.permit().denied == ()
    assert policy.opaque == ()
    with pytest.raises(PolicyError, match="serach"):
        Policy([requirement(enabled=False, targets=["serach"])(lambda history: None)], tools=TOOLS)

"""What authors promise of their own checks and requirements, and what verification makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from maymust import ConditionalRequirement, History, Policy, PolicyError, Rule, Tool, requirement
from maymust.verify import Report, supervise, verify

TOOLS = ("lookup", "search")


def report_of(*rules: Any, **promises: Any) -> Report:
    @requirement(name="warm", targets=["search"], **promises)
    def warm(history: History) -> Rule:
        return Rule("search", allowed=bool(history))

    answer = ConditionalRequirement("final_answer", only_after=["search"])
    return verify(Policy([warm, answer, *rules], tools=TOOLS))


def test_without_a_promise_the_verdict_is_conditional() -> None:
    assert report_of().provided == ("warm",)


def test_what_says_no_a_few_times_only_is_no_condition() -> None:
    report = report_of(max_denials=2)
    assert report.provided == ()
    assert "warm says no at most 2 times" in report.assumptions


def test_what_stays_true_is_needed_once() -> None:
    twice = ConditionalRequirement("search", min_invocations=2)
    report = report_of(twice, stable_once_true=True)
    assert report.provided == ("warm",)
    assert "warm stays true once it was" in report.assumptions


def test_an_answer_that_nothing_can_change_any_more_is_found() -> None:
    one_lookup = ConditionalRequirement("lookup", max_invocations=1)
    stuck = [finding for finding in report_of(one_lookup, depends_on=["lookup"]).findings if finding.name == "check_stuck"]
    assert [finding.witness for finding in stuck] == [("lookup",)]
    assert not [finding for finding in report_of(depends_on=["lookup"]).findings if finding.name == "check_stuck"]


class Search(Tool):
    name = "search"
    description = "Search."

    def run(self) -> str:
        return "found"


class Later:
    """A requirement of a class of its own, whose targets are written as authors write them."""

    name = "later"
    targets = (Search,)
    depends_on = ("lookup",)
    max_denials: Any = 1

    def rules(self, history: History, run: Any) -> list[Rule]:
        return [Rule(Search, allowed=bool(history))]


def test_promises_may_be_attributes_of_a_class() -> None:
    policy = Policy([Later(), ConditionalRequirement("final_answer", only_after=["search"])], tools=["lookup", Search()])
    report = verify(policy)
    assert report.provided == ()
    assert "later says no at most 1 time" in report.assumptions


def test_a_promise_that_cannot_be_meant_is_an_error() -> None:
    class Never(Later):
        max_denials = 0

    with pytest.raises(PolicyError, match="later: max_denials has to be a whole number above 0, got 0"):
        verify(Policy([Never()], tools=["lookup", Search()]))


@pytest.mark.parametrize("function", [verify, supervise])
def test_what_is_no_policy_and_no_list_of_tools_is_named(function: Any) -> None:
    with pytest.raises(PolicyError, match=rf"{function.__name__}\(\) takes a Policy"):
        function([ConditionalRequirement("pay")])
    for given in ("pay", 3, pay):
        with pytest.raises(PolicyError, match="may_fail has to be a list of tools"):
            function(Policy([], tools=["pay"]), may_fail=given)


def pay() -> None:
    """Pay."""

"""`histories(policy)`: what Hypothesis draws can happen, and everything that can happen may be drawn."""

import pytest
from hypothesis import HealthCheck, find, given, settings

from maymust import AskPermissionRequirement, ConditionalRequirement, History, Outcome, Policy, PolicyError, requirement
from maymust.testing import assert_permit, histories

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
POLICY = Policy(
    [
        ConditionalRequirement("think", force_at_step=1),
        ConditionalRequirement("search", only_after=["think"], max_invocations=2),
        AskPermissionRequirement(["refund"]),
    ],
    tools=["think", "search", "refund"],
)


@settings(CALM, max_examples=100)
@given(histories(POLICY))
def test_every_step_was_allowed_when_it_came(history: History) -> None:
    for number, step in enumerate(history):
        permit = POLICY.permit(history.at(number))
        assert step.tool in permit.allowed
        assert step.outcome is not Outcome.DENIED or step.tool in permit.asks
    assert history.count("search") <= 2


@settings(CALM, max_examples=50)
@given(histories(POLICY, max_steps=3, may_fail="search"))
def test_length_and_failures_are_bounded(history: History) -> None:
    assert len(history) <= 3
    assert all(step.tool == "search" for step in history if step.outcome is Outcome.FAILED)


def test_a_no_and_a_failure_can_be_found() -> None:
    strategy = histories(POLICY)
    assert find(strategy, lambda history: any(step.outcome is Outcome.DENIED for step in history))
    assert find(strategy, lambda history: history.count("search") == 2)
    assert find(histories(POLICY, lawful=False), lambda history: any(step.outcome is Outcome.REFUSED for step in history))


def test_a_history_ends_where_the_policy_leaves_no_next_step() -> None:
    stuck = Policy(
        [
            ConditionalRequirement("lookup", max_invocations=1),
            ConditionalRequirement("refund", min_invocations=1, only_before=["lookup"]),
        ],
        tools=["lookup", "refund"],
    )
    assert list(find(histories(stuck, may_fail=()), lambda history: history.seen("lookup") and not history.seen("refund"))) != []


@settings(CALM, max_examples=50)
@given(histories(POLICY, max_steps=6))
def test_a_property_of_every_permit_reads_like_this(history: History) -> None:
    permit = POLICY.permit(history)
    if not history.seen("think"):
        assert_permit(permit, forces="think", denies={"search": "think"})


def test_a_policy_that_looks_at_more_than_the_history_is_refused() -> None:
    @requirement
    def clock(history: History) -> None:
        return None

    with pytest.raises(PolicyError, match="cannot say what clock would see"):
        histories(Policy([clock], tools=["a"]))

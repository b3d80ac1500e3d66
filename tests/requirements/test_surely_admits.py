"""What is promised of a call while others are open holds however they end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from maymust.core.bounds import Bounds
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.step import Outcome
from maymust.errors import PolicyError
from maymust.requirements.approval_memory import Decision
from maymust.requirements.conditional import ConditionalRequirement
from maymust.requirements.permission import AskPermissionRequirement
from tests.core.random_policies import TARGETS, TOOLS, conditionals, histories

tails = st.lists(st.tuples(st.sampled_from(TOOLS), st.sampled_from((None, None, *Outcome))), max_size=3)


def resolutions(history: History, tail: list[tuple[str, Outcome | None]]) -> Iterator[tuple[History, dict[str, list[Outcome]]]]:
    """Every way in which the open calls may end, with what came of each tool's open calls."""
    open_places = [place for place, (_, outcome) in enumerate(tail) if outcome is None]
    for ends in itertools.product(Outcome, repeat=len(open_places)):
        settled = dict(zip(open_places, ends, strict=True))
        result, came = history, {}  # type: History, dict[str, list[Outcome]]
        for place, (tool, outcome) in enumerate(tail):
            if place in settled:
                came.setdefault(tool, []).append(settled[place])
            result = result.add(tool, outcome=outcome or settled[place])
        yield result, came


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    kept: list[Any] = []
    for requirement in draw(st.lists(conditionals(), max_size=5)):
        try:
            Policy([requirement], tools=TOOLS)
        except PolicyError:
            continue
        kept.append(requirement)
    if draw(st.booleans()):
        include = draw(st.sampled_from((None, ["a"], ["b", "c"])))
        kept.append(
            AskPermissionRequirement(include, remember_choices=draw(st.booleans()), hide_disallowed=draw(st.booleans()), name="ask")
        )
    return Policy(kept, tools=TOOLS)


def asking(policy: Policy) -> AskPermissionRequirement | None:
    return next((one.source for one in policy.requirements if one.name == "ask"), None)  # type: ignore[attr-defined]


def is_same_pass(one: Permit, other: Permit, tool: str) -> bool:
    return one.arguments(tool) == other.arguments(tool) and one.questions(tool) == other.questions(tool)


@settings(max_examples=500, deadline=None)
@given(policies(), histories, tails, st.sampled_from(TARGETS))
def test_a_sure_call_is_allowed_however_the_open_ones_end(
    policy: Policy, history: History, tail: list[tuple[str, Outcome | None]], tool: str
) -> None:
    if not policy.surely_admits(tool, Bounds(history, tail)):
        return
    ask = asking(policy)
    passes = []
    for result, came in resolutions(history, tail):
        choices = [{}]  # type: list[dict[str, Any]]
        if ask is not None and ask.remember_choices:
            # A person may have said yes or no to any of the open calls, and it is remembered.
            choices = [
                {name: Decision(allow, "no").choice() for name, allow in zip(came, answers, strict=True)}
                for answers in itertools.product((True, False), repeat=len(came))
            ]
        for remembered in choices:
            permit = policy.permit(result, memories={"ask": {"choices": remembered}})
            assert tool in permit.allowed
            passes.append(permit)
    assert all(is_same_pass(passes[0], other, tool) for other in passes)


@settings(max_examples=300, deadline=None)
@given(histories, tails)
def test_bounds_hold_and_are_reached(history: History, tail: list[tuple[str, Outcome | None]]) -> None:
    bounds = Bounds(history, tail)
    ends = [result for result, _ in resolutions(history, tail)]
    for failures in (False, True):
        for name in TOOLS:
            counts = [result.count(name, failures) for result in ends]
            assert bounds.count(name, failures) == (min(counts), max(counts))
        steps = [result.total(failures) + 1 for result in ends]
        assert bounds.step(failures) == (min(steps), max(steps))
        assert bounds.last(failures) == {result.last_invocation if failures else result.last for result in ends}
    assert bounds.open == {tool for tool, outcome in tail if outcome is None}


def test_without_open_calls_what_the_permit_lists_is_sure() -> None:
    policy = Policy(
        [
            ConditionalRequirement("b", only_after=["a"], max_invocations=2, consecutive_allowed=False),
            ConditionalRequirement("final_answer", only_after=["b"]),
        ],
        tools=TOOLS,
    )
    history = History()
    for tool in ("a", "b", "a", "b", "c"):
        permit = policy.permit(history)
        for name in permit.tools:
            assert policy.surely_admits(name, Bounds(history)) is (name in permit.allowed)
        history = history.add(tool)


def test_three_calls_under_a_limit_of_one_wait_for_each_other() -> None:
    policy = Policy([ConditionalRequirement("a", max_invocations=1)], tools=TOOLS)
    assert policy.surely_admits("a", Bounds(History()))
    assert not policy.surely_admits("a", Bounds(History(), [("a", None)]))
    assert policy.surely_admits("b", Bounds(History(), [("a", None)]))
    assert policy.surely_admits("a", Bounds(History(), [("a", Outcome.REFUSED), ("a", Outcome.FAILED)]))


def test_a_remembered_choice_is_waited_for() -> None:
    policy = Policy([AskPermissionRequirement(["a"], remember_choices=True)], tools=TOOLS)
    assert not policy.surely_admits("a", Bounds(History(), [("a", None)]))
    assert policy.surely_admits("b", Bounds(History(), [("a", None)]))
    forgetful = Policy([AskPermissionRequirement(["a"])], tools=TOOLS)
    assert forgetful.surely_admits("a", Bounds(History(), [("a", None)]))


def test_an_unknown_or_absent_tool_is_never_sure() -> None:
    policy = Policy([], tools=TOOLS)
    assert not policy.surely_admits("zebra", Bounds(History()))
    assert not policy.surely_admits("a", Bounds(History()), present=["b"])


def test_custom_checks_are_never_sure() -> None:
    policy = Policy([ConditionalRequirement("a", custom_checks=[lambda history: True])], tools=TOOLS)
    assert not policy.surely_admits("b", Bounds(History(), [("a", None)]))

"""Properties of the fold that hold for any rules."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maymust import explain
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.refusal import refusal
from maymust.core.rule import Rule
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.core.verdict import Extra, Verdict
from maymust.errors import ConflictError, DeadEndError, PermitError, PolicyError
from tests.core.random_policies import TARGETS, TOOLS, Says, rules, sayings


def permit_of(said: list[Says], extra: tuple[Extra, ...] = ()) -> Permit | None:
    """The permit, also of a dead end; None for a conflict."""
    return attempt(said, extra=extra)[0]


def attempt(said: list[Says], **settings: Any) -> tuple[Permit | None, PermitError | None]:
    """What there is: the permit, and the error that came of it."""
    try:
        return Policy(said, tools=TOOLS).permit(**settings), None
    except DeadEndError as error:
        return error.permit, error
    except ConflictError as error:
        return None, error


def everything(said: list[Says]) -> list[tuple[Says, Rule]]:
    return [(one, rule) for one in said for rule in one.given]


@settings(max_examples=150, deadline=None)
@given(sayings())
def test_deny_always_wins_and_hidden_is_denied(said: list[Says]) -> None:
    permit = permit_of(said)
    if permit is None:
        return
    for _, rule in everything(said):
        if not rule.allowed or rule.hidden:
            assert rule.target not in permit.allowed
            assert permit.forced != rule.target
            assert permit.verdict(rule.target) in (Verdict.DENIED, Verdict.HIDDEN)
        if rule.hidden:
            assert permit.verdict(rule.target) is Verdict.HIDDEN


@settings(max_examples=150, deadline=None)
@given(sayings())
def test_the_verdicts_partition_the_tools(said: list[Says]) -> None:
    permit = permit_of(said)
    if permit is None:
        return
    lists = (permit.allowed, permit.denied, permit.hidden, permit.withheld)
    assert sorted(name for names in lists for name in names) == sorted(TARGETS)
    for names in (*lists, permit.asks):
        assert list(names) == [name for name in TARGETS if name in names]
    assert set(permit.asks) <= set(permit.allowed)
    assert permit.may_stop is (FINAL_ANSWER in permit.allowed)
    assert FINAL_ANSWER not in permit.withheld
    assert (permit.forced is None) or permit.forced in permit.allowed
    assert bool(permit.withheld) <= (permit.forced is not None)
    if permit.forced is not None:
        assert set(permit.allowed) <= {permit.forced, FINAL_ANSWER}
    if permit.owed and permit.forced != FINAL_ANSWER:
        assert not permit.may_stop


@settings(max_examples=150, deadline=None)
@given(sayings(lapsing=False), rules(), st.integers(1, 3), st.booleans())
def test_adding_a_denying_rule_never_allows_more(said: list[Says], rule: Rule, priority: int, as_extra: bool) -> None:
    denying = Rule(rule.target, allowed=False, hidden=rule.hidden)
    before = permit_of(said)
    after = permit_of(said, (Extra("more", denying),)) if as_extra else permit_of([*said, Says("more", priority, [denying])])
    if before is None or after is None:
        return
    assert before.forced != rule.target, "a denied force is a conflict, so there is no permit after it"
    assert set(after.allowed) <= set(before.allowed)


@settings(max_examples=150, deadline=None)
@given(sayings(), st.randoms())
def test_the_order_of_requirements_decides_nothing_but_the_order_of_equal_reasons(said: list[Says], chance: random.Random) -> None:
    shuffled = list(said)
    chance.shuffle(shuffled)
    one, other = permit_of(said), permit_of(shuffled)
    assert (one is None) == (other is None)
    if one is None or other is None:
        return
    assert one.verdicts() == other.verdicts()
    assert (one.tool_choice, one.forced, one.may_stop) == (other.tool_choice, other.forced, other.may_stop)
    assert {name: sorted(reasons) for name, reasons in one.reasons.items()} == {name: sorted(r) for name, r in other.reasons.items()}
    assert sorted(one.owed) == sorted(other.owed)
    assert sorted(one.lapsed) == sorted(other.lapsed)
    assert sorted(one.outranked) == sorted(other.outranked)


@settings(max_examples=150, deadline=None)
@given(sayings())
def test_the_json_form_says_the_same(said: list[Says]) -> None:
    permit = permit_of(said)
    if permit is None:
        return
    back = Permit.from_dict(permit.to_dict())
    assert back == permit
    assert back.to_dict() == permit.to_dict() | {"steps": 0}
    for name in TARGETS:
        assert back.why(name) == permit.why(name)
        assert back.arguments(name) == permit.arguments(name)
        assert back.questions(name) == permit.questions(name)
        assert back.unlocks(name) == permit.unlocks(name)
    assert (back.lapsed, back.outranked, back.owed, back.asks) == (permit.lapsed, permit.outranked, permit.owed, permit.asks)


@settings(max_examples=150, deadline=None)
@given(sayings())
def test_everybody_at_fault_is_named(said: list[Says]) -> None:
    _, error = attempt(said)
    if isinstance(error, DeadEndError):
        closing = {one.name for one, rule in everything(said) if not rule.allowed or rule.hidden}
        assert closing <= set(error.requirements)
        assert error.permit.allowed == ()
        for name in error.requirements:
            assert name in str(error)
    elif isinstance(error, ConflictError):
        closing = {one.name for one, rule in everything(said) if rule.target == error.tool and (not rule.allowed or rule.hidden)}
        assert closing <= set(error.closing)
        forcing = {one.name for one, rule in everything(said) if rule.target == error.tool and rule.forced}
        assert set(error.forcing) == {name for name in forcing if name in error.forcing} != set()


@settings(max_examples=150, deadline=None)
@given(sayings())
def test_relaxing_takes_off_obligations_and_opens_nothing(said: list[Says]) -> None:
    permit, _ = attempt(said, relaxed=True)
    assert permit is not None, "without force there is no conflict"
    assert permit.forced is None
    assert permit.owed == ()
    for _, rule in everything(said):
        if not rule.allowed or rule.hidden:
            assert rule.target not in permit.allowed
    assert set(permit.relaxed) == {one.name for one, rule in everything(said) if rule.forced or rule.prevent_stop}


def test_a_lapsing_denial_takes_the_force_and_its_prevent_stop_away() -> None:
    said = [
        Says("plan", 10, [Rule("a", forced=True, prevent_stop=True)]),
        Says("quota", 10, [Rule("b", prevent_stop=True)]),
    ]
    guard = Extra("loop_guard", Rule("a", allowed=False, reason="a was called three times"), lapses_force=True)
    permit = Policy(said, tools=TOOLS).permit(extra=(guard,))
    assert permit.forced is None
    assert permit.lapsed == (("a", "plan"),)
    assert permit.owed == ("quota",)
    assert permit.reasons["a"] == ("a was called three times",)
    with pytest.raises(ConflictError) as caught:
        Policy(said, tools=TOOLS).permit(extra=(Extra("strict", Rule("a", allowed=False)),))
    assert (caught.value.tool, caught.value.forcing, caught.value.closing) == ("a", ("plan",), ("strict",))


def test_an_extra_force_may_give_way() -> None:
    said = [Says("hold", 10, [Rule(FINAL_ANSWER, allowed=False)])]
    finish = Rule(FINAL_ANSWER, forced=True)
    permit = Policy(said, tools=TOOLS).permit(extra=(Extra("finish", finish, lapses_force=True),))
    assert permit.forced is None
    assert permit.lapsed == ((FINAL_ANSWER, "finish"),)
    with pytest.raises(ConflictError, match="finish"):
        Policy(said, tools=TOOLS).permit(extra=(Extra("finish", finish),))


def test_extra_rules_rank_above_every_requirement_and_the_first_ranks_highest() -> None:
    said = [Says("plan", 10**6, [Rule("a", forced=True)])]
    one, other = Extra("one", Rule("c", forced=True)), Extra("other", Rule("b", forced=True))
    permit = Policy(said, tools=TOOLS).permit(extra=(one, other))
    assert permit.forced == "c"
    assert set(permit.outranked) == {("a", "plan"), ("b", "other")}


def test_modes() -> None:
    policy = Policy([], tools=TOOLS)
    assert policy.permit().tool_choice == "required"
    assert policy.permit(mode="auto").tool_choice == "auto"
    assert policy.permit(mode="none").tool_choice == "none"
    held = Policy([Says("hold", 1, [Rule("a", prevent_stop=True)])], tools=TOOLS)
    assert held.permit(mode="auto").tool_choice == "required"


def test_asks_join_into_one_question_and_narrowings_are_conjoined() -> None:
    said = [
        Says("low", 1, [Rule("a", ask=True, arguments={"x": {"minimum": 1}})]),
        Says("high", 5, [Rule("a", ask={"x": {"minimum": 100}}, arguments={"x": {"maximum": 9}, "y": {"const": 1}})]),
    ]
    permit = Policy(said, tools=TOOLS).permit()
    assert permit.asks == ("a",)
    assert permit.verdict("a") is Verdict.ASK
    assert permit.questions("a") == (("high", {"x": {"minimum": 100}}), ("low", True))
    assert permit.arguments("a") == {"x": ({"maximum": 9}, {"minimum": 1}), "y": ({"const": 1},)}
    assert permit.arguments("b") == {}
    assert permit.questions("b") == ()


def test_the_tools_own_schema_takes_part() -> None:
    class Spec:
        name = "pay"
        description = "pays"
        parameters: ClassVar[dict[str, Any]] = {"type": "object", "properties": {"amount": {"type": "integer", "minimum": 10}}}

    said = [Says("cap", 1, [Rule("pay", arguments={"amount": {"maximum": 5}}, reason="too much")])]
    permit = Policy(said, tools=[Spec()]).permit()
    assert permit.denied == ("pay",)
    assert permit.reasons["pay"] == ("too much",)
    assert Policy([Says("cap", 1, [Rule("pay", arguments={"amount": {"maximum": 10}})])], tools=[Spec()]).permit().denied == ()


def test_limits_that_leave_no_call_say_so_where_no_author_gives_a_reason() -> None:
    said = [Says(name, 1, [Rule("a", arguments={"x": limit})]) for name, limit in (("low", {"maximum": 1}), ("high", {"minimum": 2}))]
    permit = Policy(said, tools=TOOLS).permit()
    words = "no call satisfies all that rules and schema say of x"
    assert permit.reasons["a"] == (words, words)
    assert refusal(permit, "a", ["b"]) == f"not now: {words}; you may call: b"
    assert str(explain(permit, "a")).splitlines()[1:3] == ["  low: it limits x", "  high: it limits x"]
    forced = Says("first", 1, [Rule("a", forced=True)])
    with pytest.raises(ConflictError, match=words):
        Policy([*said, forced], tools=TOOLS).permit()


def test_the_final_answer_is_never_asked_for() -> None:
    with pytest.raises(PolicyError, match="final_answer"):
        Rule(FINAL_ANSWER, ask=True)


@pytest.mark.parametrize("switches", [{"forced": True, "allowed": False}, {"forced": True, "hidden": True}])
def test_a_rule_that_contradicts_itself_is_refused(switches: dict[str, bool]) -> None:
    with pytest.raises(PolicyError, match=r"\ba\b"):
        Rule("a", **switches)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"allowed": 1}, {"forced": "yes"}, {"reason": 5}, {"ask": "yes"}, {"arguments": [1]}, {"hidden": None}, {"prevent_stop": 0}]
)
def test_a_rule_with_a_value_of_the_wrong_kind_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PolicyError, match=next(iter(wrong))):
        Rule("a", **wrong)  # type: ignore[arg-type]


def test_an_empty_condition_asks_about_every_call() -> None:
    assert Rule("a", ask={}).ask is True


def test_every_error_of_a_permit_is_a_permit_error() -> None:
    assert issubclass(ConflictError, PermitError)
    assert issubclass(DeadEndError, PermitError)
    assert issubclass(PolicyError, ValueError)

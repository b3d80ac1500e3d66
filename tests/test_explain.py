"""A verdict explained: the rules, what of the history they rest on, and what would change it."""

from __future__ import annotations

from typing import Any

import pytest

from maymust import (
    AskPermissionRequirement,
    ConditionalRequirement,
    History,
    Permit,
    Policy,
    PolicyError,
    Rule,
    Verdict,
    explain,
    requirement,
)
from maymust.core.verdict import Extra
from maymust.verify import supervise
from maymust.verify.witness import history_of

TOOLS = ("get_order", "refund", "close", "note")


def permit_of(words: str, *requirements: Any, **settings: Any) -> Permit:
    return Policy(requirements, tools=TOOLS).permit(history_of(words.split()), **settings)


def test_a_failed_call_is_named_and_does_not_count() -> None:
    said = explain(permit_of("note close get_order!failed", ConditionalRequirement("refund", only_after=["get_order"])), "refund")
    assert said.verdict is Verdict.DENIED
    assert said.evidence == ("get_order failed at step 3; failures do not count",)
    assert said.change == ("get_order",)
    assert str(said) == (
        "⊘ refund is denied\n"
        "  conditional:refund: get_order has to succeed first\n"
        "  get_order failed at step 3; failures do not count\n"
        "  refund opens after get_order"
    )


def test_a_tool_that_was_never_called_is_said_to_be_so() -> None:
    said = explain(permit_of("", ConditionalRequirement("refund", only_after=["get_order"])), "refund")
    assert said.evidence == ("get_order was not called yet",)


def test_denied_and_refused_calls_do_not_count_either() -> None:
    words = "get_order!denied get_order!denied get_order!refused"
    said = explain(permit_of(words, ConditionalRequirement("refund", only_after=["get_order"])), "refund")
    assert said.evidence == (
        "get_order was denied at steps 1 and 2; denied calls do not count",
        "get_order was refused at step 3; refused calls do not count",
    )


def test_the_way_is_a_shortest_one_through_several_rules() -> None:
    said = explain(
        permit_of(
            "",
            ConditionalRequirement("close", only_after=["refund"]),
            ConditionalRequirement("refund", only_after=["get_order"]),
        ),
        "close",
    )
    assert said.change == ("get_order", "refund")
    assert said.outlook == "close opens after get_order, refund"


def test_what_nothing_can_open_is_said_to_be_so() -> None:
    limit = ConditionalRequirement("refund", max_invocations=2)
    said = explain(permit_of("refund note refund", limit), "refund")
    assert said.change is None
    assert said.nothing
    assert said.evidence == ("refund was called at steps 1 and 3",)
    assert said.outlook == "nothing can open refund any more in this run"
    closed = explain(permit_of("close", ConditionalRequirement("note", only_before=["close"])), "note")
    assert closed.nothing
    assert closed.evidence == ("close was called at step 1",)


def test_the_final_answer_opens_when_nothing_is_owed() -> None:
    said = explain(permit_of("note!failed", ConditionalRequirement("note", min_invocations=2, only_after=["get_order"])), "final_answer")
    assert said.change == ("get_order", "note", "note")
    assert said.evidence[-2:] == ("note was called 0 of 2 times", "note failed at step 1; failures do not count")


def test_a_withheld_tool_waits_for_the_forced_one() -> None:
    said = explain(permit_of("refund", ConditionalRequirement("note", force_after=["refund"])), "close")
    assert said.verdict is Verdict.WITHHELD
    assert said.evidence == ("refund was the last call, at step 1",)
    assert said.change == ("note",)


def test_open_tools_may_be_called_now() -> None:
    permit = permit_of("refund", ConditionalRequirement("note", force_after=["refund"]), AskPermissionRequirement(["close"]))
    assert explain(permit, "note").outlook == "note has to be called now"
    asking = permit_of("", AskPermissionRequirement(["close"]))
    assert explain(asking, "close").outlook == "close may be called, after a person's yes"
    assert explain(asking, "note").outlook == "note may be called now"
    assert explain(asking, "note").change == ()


def test_a_question_without_a_reason_is_told_as_one() -> None:
    permit = permit_of("", AskPermissionRequirement(["close"], name="ask"))
    assert "  ask: a person is asked" in str(explain(permit, "close")).splitlines()


def test_a_cooldown_and_the_last_call_are_evidence() -> None:
    said = explain(permit_of("refund note", ConditionalRequirement("refund", cooldown=3)), "refund")
    assert said.evidence == ("refund was last called 1 step ago",)
    assert len(said.change or ()) == 2
    twice = explain(permit_of("refund", ConditionalRequirement("refund", consecutive_allowed=False)), "refund")
    assert twice.evidence == ("refund was the last call, at step 1",)
    owed = explain(permit_of("note refund", ConditionalRequirement("refund", followed_by=["close"])), "final_answer")
    assert owed.evidence == ("refund was called at step 2",)
    assert owed.change == ("close",)


def office_hours(history: History) -> bool:
    return False


def test_a_check_that_says_no_is_waited_for() -> None:
    said = explain(permit_of("", ConditionalRequirement("refund", custom_checks=[office_hours])), "refund")
    assert said.waits_for == ("the check office_hours",)
    assert said.outlook == "refund opens when the check office_hours lets it"
    both = explain(permit_of("", ConditionalRequirement("refund", only_after=["get_order"], custom_checks=[office_hours])), "refund")
    assert both.outlook == "refund opens after get_order and when the check office_hours lets it"


def test_a_custom_requirement_is_waited_for() -> None:
    @requirement(name="quiet", targets=["refund"])
    def quiet(history: History) -> Rule:
        return Rule("refund", allowed=False, reason="not today")

    assert explain(permit_of("", quiet), "refund").outlook == "refund opens when quiet lets it"


def test_a_persons_no_that_is_remembered_is_final() -> None:
    ask = AskPermissionRequirement(["refund"], remember_choices=True, name="ask")
    memories = {"ask": {"choices": {"refund": {"allow": False, "reason": "too much", "by": None}}}}
    said = explain(permit_of("", ask, memories=memories), "refund")
    assert said.nothing


def test_what_the_run_itself_closes_is_said_to_be_its_doing() -> None:
    guard = Extra("loop_guard", Rule("note", allowed=False, reason="three times the same"), lapses_force=True)
    said = explain(permit_of("", extra=[guard]), "note")
    assert said.outlook == "note opens when the run (loop_guard) lets it"


def test_a_derived_denial_opens_when_the_obligation_is_met() -> None:
    policy = Policy([ConditionalRequirement("note", min_invocations=1, only_before=["close"], name="owed")], tools=TOOLS)
    said = explain(supervise(policy).permit(), "close")
    assert said.change == ("note",)
    assert said.rules[0].rule.reason == "close waits: note is still owed and would become impossible"


def test_a_permit_from_json_knows_its_reasons_only() -> None:
    permit = permit_of("", ConditionalRequirement("refund", only_after=["get_order"]))
    said = explain(Permit.from_dict(permit.to_dict()), "refund")
    assert said.change is None
    assert not said.nothing
    assert "get_order has to succeed first" in str(said)


def test_an_absent_tool_is_no_way() -> None:
    rule = ConditionalRequirement("refund", only_after=["get_order"])
    assert explain(permit_of("", rule, present=["refund", "note"]), "refund").nothing


def test_what_is_no_permit_and_no_name_is_an_error() -> None:
    permit = Policy([], tools=["pay"]).permit()
    wrong: Any = Policy([], tools=["pay"])
    with pytest.raises(PolicyError, match=r"explain\(\) takes a Permit"):
        explain(wrong, "pay")
    with pytest.raises(PolicyError, match="the permit knows no tool called 3"):
        explain(permit, 3)  # type: ignore[arg-type]


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(PolicyError, match="did you mean refund"):
        explain(permit_of(""), "refnd")


def test_the_public_name_is_the_function_whatever_was_imported_before() -> None:
    import maymust
    import maymust.explanation

    assert maymust.explain is maymust.explanation.explain

"""The gate keeps the rules in somebody else's loop."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.core.rule import Rule
from maymust.errors import DeadEndError, RunError
from maymust.requirements.conditional import ConditionalRequirement
from maymust.requirements.custom import requirement
from maymust.requirements.permission import AskPermissionRequirement

TOOLS = ("think", "search", "pay")


class Call(NamedTuple):
    id: str
    name: str
    arguments: Any = None


def test_of_three_parallel_calls_under_a_limit_of_one_one_runs() -> None:
    gate = Policy([ConditionalRequirement("search", max_invocations=1)], tools=TOOLS).gate()
    calls = [Call(f"c{number}", "search") for number in range(3)]
    gate.permit()
    assert gate.admit(calls[0]).allowed
    second = gate.admit(calls[1])
    assert (second.allowed, second.waits) == (False, True)
    assert second.reason == "not yet: it depends on search, which has not come back"
    gate.observe(calls[0], "ok", "found")
    refused = gate.admit(calls[1])
    assert (refused.allowed, refused.waits) == (False, False)
    assert refused.reason == "not now: search was already called 1 time (limit 1); you may call: think, pay, final_answer"
    assert [step.tool for step in gate.history] == ["search"]


def test_a_failed_call_leaves_the_limit_to_the_next() -> None:
    gate = Policy([ConditionalRequirement("search", max_invocations=1)], tools=TOOLS).gate()
    gate.permit()
    gate.admit("search")
    gate.observe("search", "failed")
    assert gate.admit("search").allowed


def test_what_was_not_offered_is_refused_although_it_is_open_by_now() -> None:
    gate = Policy([ConditionalRequirement("search", only_after=["think"])], tools=TOOLS).gate()
    assert gate.permit().denied == ("search",)
    assert gate.admit("think").allowed
    gate.observe("think", "ok")
    assert gate.admit("search").reason == "not now: think has to succeed first; you may call: think, pay, final_answer"
    gate.observe("search", "refused")
    assert "search" in gate.permit().allowed
    assert gate.admit("search").allowed


def test_an_independent_call_does_not_wait() -> None:
    gate = Policy([ConditionalRequirement("search", max_invocations=1)], tools=TOOLS).gate()
    assert gate.admit("search").allowed
    assert gate.admit("pay").allowed
    gate.observe("pay", "ok")
    gate.observe("search", "ok")
    assert [step.tool for step in gate.history] == ["search", "pay"], "steps keep the order of admission"


def test_an_unknown_and_a_hidden_tool_read_alike() -> None:
    @requirement(name="veil")
    def veil(history: History) -> Rule:
        return Rule("pay", hidden=True)

    gate = Policy([veil], tools=TOOLS).gate()
    gate.permit()
    assert gate.admit("pay").reason == "there is no tool called 'pay'; you may call: think, search, final_answer"
    assert gate.admit("pey").reason == "there is no tool called 'pey'; you may call: think, search, final_answer"
    assert gate.admit("serach").reason == (
        "there is no tool called 'serach'; did you mean search? you may call: think, search, final_answer"
    )


def test_an_answer_counts_only_beside_calls_that_succeeded() -> None:
    gate = Policy([], tools=TOOLS).gate()
    gate.permit()
    gate.admit("search")
    assert gate.admit("final_answer").waits
    assert not gate.may_stop()
    gate.observe("search", "failed")
    assert gate.may_stop()
    assert gate.admit("final_answer").reason == "not now: search in the same turn did not succeed"
    gate.permit()
    assert gate.admit("final_answer").allowed
    assert gate.admit("final_answer").reason == "not now: final_answer in the same turn came first"


def test_a_refused_sibling_holds_the_answer_back() -> None:
    gate = Policy([ConditionalRequirement("pay", max_invocations=0)], tools=TOOLS).gate()
    gate.permit()
    assert not gate.admit("pay").allowed
    assert not gate.admit("final_answer").allowed


def test_arguments_are_judged_and_a_person_is_asked() -> None:
    @requirement(name="cap", targets=["pay"])
    def cap(history: History) -> Rule:
        return Rule("pay", arguments={"amount": {"type": "number", "maximum": 100}}, reason="a clerk may pay 100")

    gate = Policy([cap, AskPermissionRequirement(["pay"], when={"amount": {"minimum": 50}})], tools=TOOLS).gate()
    gate.permit()
    assert gate.admit(Call("c1", "pay", '{"amount": 101}')).reason == (
        "not with these arguments: amount has to be a number, at most 100, got 101 (a clerk may pay 100)"
    )
    assert gate.admit(Call("c2", "pay", {})).reason == (
        "not with these arguments: amount has to be given: a number, at most 100 (a clerk may pay 100)"
    )
    small, large = gate.admit({"id": "c3", "name": "pay", "arguments": {"amount": 5}}), None
    assert (small.allowed, small.ask) == (True, False)
    gate.observe({"id": "c3", "name": "pay"}, "ok")
    large = gate.admit({"id": "c4", "name": "pay", "arguments": {"amount": 60}})
    assert (large.allowed, large.ask) == (True, True)


def test_a_turn_is_over_when_every_call_has_come_back() -> None:
    gate = Policy([], tools=TOOLS).gate()
    gate.permit()
    gate.admit("pay")
    with pytest.raises(RunError, match="observe pay first"):
        gate.permit()
    gate.observe("pay", "refused")
    assert gate.permit().tools == (*TOOLS, "final_answer")


def test_an_opaque_requirement_makes_calls_run_one_after_another_unless_it_says_what_it_depends_on() -> None:
    def nothing(history: History) -> None:
        return None

    def gate_under(depends_on: list[str] | None) -> Any:
        gate = Policy([requirement(name="own", depends_on=depends_on)(nothing)], tools=TOOLS).gate()
        gate.permit()
        gate.admit("search")
        return gate

    assert gate_under(None).admit("pay").waits
    assert gate_under(["search"]).admit("pay").waits
    assert gate_under(["think"]).admit("pay").allowed


def test_a_dead_end_inside_a_batch_refuses_the_rest_and_the_next_turn_raises() -> None:
    rules = [ConditionalRequirement(name, max_invocations=1) for name in ("think", "search")]
    gate = Policy([*rules, ConditionalRequirement("search", only_before=["think"], min_invocations=1)], tools=TOOLS[:2]).gate()
    gate.permit()
    gate.admit("think")
    gate.observe("think", "ok")
    assert (gate.admit("search").reason or "").startswith("not now: nothing may be called")
    with pytest.raises(DeadEndError):
        gate.permit()
    assert not gate.may_stop()


def test_two_calls_of_one_name_without_ids_are_observed_in_order() -> None:
    gate = Policy([], tools=TOOLS).gate()
    gate.permit()
    gate.admit("pay")
    gate.admit("pay")
    gate.observe("pay", "ok", 1)
    gate.observe("pay", "failed", 2)
    assert [(step.outcome.value, step.output) for step in gate.history] == [("ok", 1), ("failed", 2)]


@pytest.mark.parametrize("call", [{"name": None}, {"id": "1"}, 5, {"name": 7}])
def test_what_is_no_call_is_refused_in_words(call: object) -> None:
    with pytest.raises(TypeError, match="is no call: give a tool's name"):
        Policy(tools=["search"]).gate().admit(call)

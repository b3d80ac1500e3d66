"""What asking a person means for the permit."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.core.requirement import RunView
from maymust.core.verdict import Verdict
from maymust.errors import PolicyError
from maymust.requirements.conditional import ConditionalRequirement
from maymust.requirements.permission import ApprovalMemory, AskPermissionRequirement, Decision

TOOLS = ("search", "pay", "refund")


def remembered(**choices: Decision) -> dict[str, dict[str, Any]]:
    return {"ask": {"choices": {tool: decision.choice() for tool, decision in choices.items()}}}


def test_it_asks_about_the_included_tools() -> None:
    permit = Policy([AskPermissionRequirement(["pay"])], tools=TOOLS).permit()
    assert permit.asks == ("pay",)
    assert permit.verdict("pay") is Verdict.ASK
    assert permit.questions("pay") == (("ask:pay", True),)


def test_without_include_it_asks_about_all_but_the_final_answer_also_late_ones() -> None:
    policy = Policy([AskPermissionRequirement(exclude="search")], tools=TOOLS)
    assert policy.permit().asks == ("pay", "refund")
    assert policy.permit(present=["late", "search"]).asks == ("late",)


def test_when_becomes_the_condition_of_the_question() -> None:
    permit = Policy([AskPermissionRequirement("pay", when={"amount": {"minimum": 100}}, name="big")], tools=TOOLS).permit()
    assert permit.questions("pay") == (("big", {"amount": {"minimum": 100}}),)


def test_a_remembered_yes_asks_no_more_and_a_remembered_no_closes_the_tool() -> None:
    policy = Policy([AskPermissionRequirement(["pay", "refund"], remember_choices=True, name="ask")], tools=TOOLS)
    permit = policy.permit(memories=remembered(pay=Decision(True), refund=Decision(False, "over budget")))
    assert (permit.asks, permit.denied) == ((), ("refund",))
    assert permit.reasons["refund"] == ("over budget",)
    assert permit.why("refund")[0].evidence == "yes to pay; no to refund"
    assert policy.permit(memories=remembered(pay=Decision(False, by="ada"))).reasons["pay"] == ("ada said no to pay",)
    assert policy.permit(memories=remembered(pay=Decision(False))).reasons["pay"] == ("a person said no to pay",)
    assert policy.permit().asks == ("pay", "refund")


def test_a_no_may_hide_the_tool() -> None:
    policy = Policy([AskPermissionRequirement("pay", remember_choices=True, hide_disallowed=True, name="ask")], tools=TOOLS)
    assert policy.permit(memories=remembered(pay=Decision(False))).hidden == ("pay",)


def test_a_no_makes_a_force_lapse() -> None:
    policy = Policy(
        [AskPermissionRequirement("pay", remember_choices=True, name="ask"), ConditionalRequirement("pay", force_at_step=1, name="plan")],
        tools=TOOLS,
    )
    assert policy.permit().forced == "pay"
    permit = policy.permit(memories=remembered(pay=Decision(False)))
    assert (permit.forced, permit.lapsed, permit.may_stop) == (None, (("pay", "plan"),), True)


def test_a_shared_memory_reaches_every_run_and_the_runs_own_choice_goes_first() -> None:
    memory = ApprovalMemory()
    policy = Policy([AskPermissionRequirement("pay", remember_in=memory, name="ask")], tools=TOOLS)
    assert policy.permit().asks == ("pay",)
    memory.put("pay", Decision(False, "not today"))
    assert policy.permit().reasons["pay"] == ("not today",)
    assert policy.permit(memories=remembered(pay=Decision(True))).denied == ()
    memory.forget("pay")
    assert memory.get("pay") is None
    assert policy.permit().asks == ("pay",)
    memory.put("pay", Decision(True))
    memory.forget()
    assert dict(memory.choices) == {}
    assert ApprovalMemory({"pay": {"allow": True}}).get("pay") == {"allow": True, "reason": None, "by": None}


def test_a_shared_memory_can_be_written_by_many_threads() -> None:
    memory = ApprovalMemory()

    def write(number: int) -> None:
        for place in range(50):
            memory.put(f"t{number}-{place}", Decision(True))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(memory.choices) == 400


def test_always_allow_asks_nobody() -> None:
    policy = Policy([AskPermissionRequirement("pay", always_allow=True)], tools=TOOLS)
    assert policy.permit().asks == ()


def test_what_the_driver_reads() -> None:
    def handler(call: object) -> bool:
        return True

    (bound,) = Policy([AskPermissionRequirement("pay", handler=handler)], tools=TOOLS).requirements
    asked = bound
    assert (asked.handler, asked.remember_choices, asked.always_allow) == (handler, False, False)  # type: ignore[attr-defined]
    assert bound.describe() == {"kind": "ask_permission", "include": ["pay"], "handler": True}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        (["final_answer"], {}, "final_answer is never asked for"),
        (None, {"exclude": ["final_answer"]}, "final_answer is never asked for"),
        (["serach"], {}, "ask: include: there is no tool called serach; did you mean search"),
        (["pay"], {"handler": "yes"}, "handler"),
        (["pay"], {"remember_choices": 1}, "remember_choices"),
        (["pay"], {"remember_in": {}}, "remember_in"),
        (["pay"], {"when": ["amount"]}, "when"),
        (["pay"], {"priority": 0}, "priority"),
        (["pay"], {"enabled": 0}, "enabled"),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        Policy([AskPermissionRequirement(arguments, **settings)], tools=TOOLS)


@pytest.mark.parametrize("bad", [{"allow": "no"}, {"allow": 1}, {"allow": True, "reason": 5}, {"allow": True, "by": 5}])
def test_a_decision_is_a_real_yes_or_no(bad: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        Decision(**bad)


def test_equal_situations_give_the_very_same_rules() -> None:
    (bound,) = Policy([AskPermissionRequirement(["pay"], remember_choices=True)], tools=TOOLS).requirements
    one, other = ({"choices": {"pay": Decision(False, "no").choice()}} for _ in range(2))
    assert bound.rules(History(), RunView(memory=one)) is bound.rules(History().add("pay"), RunView(memory=other))


def test_it_can_be_asked_by_itself() -> None:
    (rule,) = AskPermissionRequirement().rules(History(), RunView(tools=("pay",)))
    assert (rule.target, rule.ask) == ("pay", True)


def test_a_question_about_tools_that_are_all_excluded_is_a_contradiction() -> None:
    asking = AskPermissionRequirement(["pay", "send"], exclude=["send", "pay"])
    with pytest.raises(PolicyError, match=r"exclude takes out all that include names \(pay, send\)"):
        Policy([asking], tools=["pay", "send"])
    Policy([AskPermissionRequirement(["pay", "send"], exclude=["send"])], tools=["pay", "send"])


@pytest.mark.parametrize("nothing", [[], (), set()])
def test_a_question_about_no_tool_is_refused_and_without_include_it_is_about_every_tool(nothing: Any) -> None:
    with pytest.raises(PolicyError, match="ask: include names no tool, so nobody would be asked; name some, or leave it out for every"):
        AskPermissionRequirement(nothing)
    with pytest.raises(PolicyError, match="person: include names no tool"):
        AskPermissionRequirement(nothing, name="person", enabled=False)
    assert Policy([AskPermissionRequirement(None)], tools=TOOLS).permit().asks == TOOLS

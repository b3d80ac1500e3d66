"""`mutually_exclusive`: of some tools a run uses one."""

from __future__ import annotations

from typing import Any

import pytest

from maymust import Agent, ConditionalRequirement, History, Policy, PolicyError, mutually_exclusive, tool
from maymust.models import ScriptedModel, call
from maymust.verify import verify

TOOLS = ("refund", "replace", "credit", "note")


def allowed(*words: str, **parameters: Any) -> tuple[str, ...]:
    history = History()
    for word in words:
        name, _, outcome = word.partition("!")
        history = history.add(name, outcome=outcome or "ok")
    return Policy(mutually_exclusive("refund", "replace", "credit", **parameters), tools=TOOLS).permit(history).allowed


def test_once_one_was_used_the_others_are_closed() -> None:
    assert allowed() == (*TOOLS, "final_answer")
    assert allowed("note", "replace") == ("replace", "note", "final_answer")
    assert allowed("replace!failed") == (*TOOLS, "final_answer")
    assert allowed("replace!failed", only_success_invocations=False) == ("replace", "note", "final_answer")


def test_each_closed_tool_says_which_one_closed_it() -> None:
    said = Policy(mutually_exclusive("refund", "replace"), tools=TOOLS).permit(History().add("replace"))
    assert said.reasons["refund"] == ("replace was already called, and refund is possible only before that",)
    assert said.why("refund")[0].requirement == "exclusive:refund"


def test_they_exclude_each_other_for_each_value_by_itself() -> None:
    rules = Policy(mutually_exclusive("refund", "replace", same="order"), tools=TOOLS)
    said = rules.permit(History().add("refund", arguments={"order": 1}))
    assert said.arguments("replace") == {"order": ({"not": {"enum": [1]}},)}
    assert not said.arguments("refund")


def test_of_two_in_one_batch_the_first_that_succeeds_counts() -> None:
    @tool
    def refund(order: int) -> str:
        """Refund."""
        raise ValueError("closed")

    @tool
    def replace(order: int) -> str:
        """Replace."""
        return "replaced"

    @tool
    def credit(order: int) -> str:
        """Credit."""
        return "credited"

    batch = [call("refund", order=1), call("replace", order=1), call("credit", order=1)]
    model = ScriptedModel([batch, call("final_answer", answer="done")])
    agent = Agent(model, tools=[refund, replace, credit], requirements=mutually_exclusive(refund, replace, credit))
    assert [str(step.outcome) for step in agent.run_sync("go").steps] == ["failed", "ok", "refused", "ok"]


def test_verification_knows_it() -> None:
    owed = [ConditionalRequirement(name, min_invocations=1) for name in ("refund", "replace")]
    assert verify(Policy([*mutually_exclusive("refund", "replace"), *owed], tools=TOOLS)).verdict == "unreachable"
    assert verify(Policy([*mutually_exclusive("refund", "replace"), owed[0]], tools=TOOLS)).witness == ("replace",)


@pytest.mark.parametrize(
    ("tools", "text"),
    [
        (("refund",), "takes two tools or more, got refund"),
        ((), "takes two tools or more, got none"),
        (("refund", "replace", "refund"), "refund is named twice, so it would exclude itself"),
    ],
)
def test_fewer_than_two_tools_are_refused(tools: tuple[str, ...], text: str) -> None:
    with pytest.raises(PolicyError, match=text):
        mutually_exclusive(*tools)

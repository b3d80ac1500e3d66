"""A typo in a fragment of JSON Schema is an error before a run depends on it."""

from __future__ import annotations

from typing import Any

import pytest

from maymust import Agent, AskPermissionRequirement, ConditionalRequirement, History, PolicyError, Rule, requirement, tool
from maymust.models import ScriptedModel, call

ran: list[float] = []


@tool
async def refund(amount: float) -> str:
    """Pay money back."""
    ran.append(amount)
    return "paid"


def asking(when: Any) -> Agent:
    return Agent(ScriptedModel([]), tools=[refund], requirements=[AskPermissionRequirement(refund, when=when, name="big")])


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ({"amount": {"exclusivMinimum": 100}}, "exclusiveMinimum"),
        ({"amount": {"minimum": "100"}}, "minimum"),
        ({"amount": {"type": "nummer"}}, "type"),
        ({"amount": {"anyOf": [{"minimun": 3}]}}, "minimum"),
        ({"amuont": {"minimum": 100}}, "did you mean amount"),
    ],
)
def test_a_condition_with_a_typo_is_refused_by_the_agent(when: Any, said: str) -> None:
    with pytest.raises(PolicyError, match=rf"big.*when.*{said}"):
        asking(when)


def test_a_condition_on_a_parameter_that_may_be_there_is_taken() -> None:
    asking({"amount": {"minimum": 100}})

    @tool
    async def anything(**more: float) -> str:
        """Take anything."""
        return "taken"

    Agent(ScriptedModel([]), tools=[anything], requirements=[AskPermissionRequirement(anything, when={"amount": {"minimum": 1}})])


@pytest.mark.parametrize("switch", ["arguments", "ask"])
def test_a_rule_with_a_typo_stops_the_run_before_anything_is_called(switch: str) -> None:
    ran.clear()

    @requirement(targets=[refund])
    def limit(history: History) -> Any:
        fragment: dict[str, Any] = {"amount": {"maximun" if history.count("refund") else "maximum": 100}}
        return Rule(refund, arguments=fragment) if switch == "arguments" else Rule(refund, ask=fragment)

    model = ScriptedModel([call("refund", amount=200 if switch == "ask" else 5), call("refund", amount=5)])
    with pytest.raises(PolicyError, match=r"limit.*amount.*'maximun'.*maximum"):
        Agent(model, tools=[refund], requirements=[limit]).run_sync("pay")
    assert ran == [200 if switch == "ask" else 5]
    assert len(model.requests) == 1


def test_a_custom_requirement_may_give_one_rule_or_none() -> None:
    @requirement
    def sometimes(history: History) -> Any:
        return Rule(refund, allowed=False, reason="enough") if history.count("refund") else None

    model = ScriptedModel([call("refund", amount=5), call("refund", amount=5), call("final_answer", answer="done")])
    result = Agent(model, tools=[refund], requirements=[sometimes, ConditionalRequirement(refund, max_invocations=3)]).run_sync("pay")
    assert [str(step.outcome) for step in result.steps] == ["ok", "refused", "ok"]

"""Questions that hang on a value: what the condition does not speak of is asked about, never waved through."""

from __future__ import annotations

from typing import Any

import pytest

from maymust import Agent, AskPermissionRequirement, tool
from maymust.models import ScriptedModel, call

paid_out: list[Any] = []


@tool
async def refund(amount: float | str | None = None, note: str = "") -> str:
    """Pay money back."""
    paid_out.append(amount)
    return f"paid {amount}"


def agent(when: dict[str, Any], *calls: Any) -> Agent:
    return Agent(
        ScriptedModel([*calls, call("final_answer", answer="done")]),
        tools=[refund],
        requirements=[AskPermissionRequirement(refund, when=when)],
    )


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    paid_out.clear()


@pytest.mark.parametrize("amount", [0, 99.99, 100])
def test_below_the_limit_it_runs(amount: float) -> None:
    result = agent({"amount": {"exclusiveMinimum": 100}}, call("refund", amount=amount)).run_sync("pay")
    assert result.stop_reason == "final_answer"
    assert paid_out == [amount]


@pytest.mark.parametrize("amount", [100.01, 5000])
def test_above_the_limit_a_person_is_asked_and_the_recorded_call_runs(amount: float) -> None:
    paying = agent({"amount": {"exclusiveMinimum": 100}}, call("refund", amount=amount))
    paused = paying.run_sync("pay")
    assert paused.stop_reason == "paused"
    assert paid_out == []
    assert [pending.arguments["amount"] for pending in paused.pending] == [amount]
    done = paying.resume_sync(paused, {paused.pending[0].call_id: True})
    assert done.stop_reason == "final_answer"
    assert paid_out == [amount]


@pytest.mark.parametrize("amount", [None, "100", "a lot"])
def test_a_value_of_another_kind_is_asked_about(amount: Any) -> None:
    result = agent({"amount": {"minimum": 100}}, call("refund", amount=amount)).run_sync("pay")
    assert result.stop_reason == "paused"
    assert paid_out == []


def test_a_no_is_a_denied_step_and_the_run_goes_on() -> None:
    paying = agent({"amount": {"exclusiveMinimum": 100}}, call("refund", amount=500))
    paused = paying.run_sync("pay")
    done = paying.resume_sync(paused, {paused.pending[0].call_id: False})
    assert [str(step.outcome) for step in done.steps] == ["denied", "ok"]
    assert paid_out == []

"""What is given as `deps` reaches the rules, the pure ones too, and is never stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maymust import (
    Agent,
    ArgumentRequirement,
    AskPermissionRequirement,
    ConditionalRequirement,
    History,
    RunState,
    RunView,
    requirement,
    tool,
)
from maymust.errors import PolicyError
from maymust.models import ScriptedModel, call


@tool
def pay(to: str) -> str:
    """Pay somebody."""
    return f"paid {to}"


def is_admin(history: History, run: RunView) -> bool:
    """Whether the user of this run may pay."""
    return bool(run.deps["role"] == "admin")


def agent(*turns: Any, **settings: Any) -> Agent:
    return Agent(ScriptedModel(list(turns)), tools=[pay], **settings)


ADMINS_ONLY = ConditionalRequirement("pay", custom_checks=[is_admin], reason="only admins pay")


@pytest.mark.parametrize(("role", "verdict"), [("admin", "ok"), ("guest", "refused")])
def test_a_check_sees_the_deps_of_its_run_from_the_first_turn_on(role: str, verdict: str) -> None:
    made = agent(call("pay", to="Ada"), call("pay", to="Bob"), "Done.", requirements=[ADMINS_ONLY])
    result = made.run_sync("Pay.", deps={"role": role})
    assert [str(step.outcome) for step in result.steps[:2]] == [verdict, verdict]
    assert ("pay" in result.permits[0].allowed) is (role == "admin")


def test_runs_at_once_see_their_own_deps() -> None:
    made = agent(call("pay", to="Ada"), "Done.", call("pay", to="Ada"), "Done.", requirements=[ADMINS_ONLY])
    outcomes = [made.run_sync("Pay.", deps={"role": role}).steps[0].outcome for role in ("guest", "admin")]
    assert list(map(str, outcomes)) == ["refused", "ok"]


def test_values_may_come_from_the_deps() -> None:
    rule = ArgumentRequirement("pay", "to", one_of=lambda history, run: run.deps["friends"])
    result = agent(call("pay", to="Eve"), call("pay", to="Ada"), "Done.", requirements=[rule]).run_sync("Pay.", deps={"friends": ["Ada"]})
    assert [str(step.outcome) for step in result.steps[:2]] == ["refused", "ok"]


def test_a_resumed_run_is_judged_by_the_deps_it_is_given_then() -> None:
    rules = [ADMINS_ONLY, AskPermissionRequirement(["pay"])]
    paused = agent(call("pay", to="Ada"), requirements=rules).run_sync("Pay.", deps={"role": "admin"})
    (waiting,) = paused.pending
    stored = RunState.from_json(paused.state.to_json())
    after = agent("Done.", requirements=rules).resume_sync(stored, {waiting.call_id: True}, deps={"role": "guest"})
    assert [str(step.outcome) for step in after.steps] == ["refused"]
    after = agent("Done.", requirements=rules).resume_sync(stored, {waiting.call_id: True}, deps={"role": "admin"})
    assert [str(step.outcome) for step in after.steps] == ["ok"]


def test_a_child_agent_has_the_deps_of_its_parent() -> None:
    child = agent(call("pay", to="Ada"), call("final_answer", answer="Paid."), requirements=[ADMINS_ONLY])
    parent = Agent(ScriptedModel([call("payer", task="Pay."), "Done."]), tools=[child.as_tool("payer", "Pays.")])
    result = parent.run_sync("Pay.", deps={"role": "admin"})
    assert [(step.tool, str(step.outcome)) for step in result.steps] == [("payer", "ok")]


def test_deps_are_in_no_json() -> None:
    result = agent(call("pay", to="Ada"), "Done.", requirements=[ADMINS_ONLY]).run_sync("Pay.", deps={"role": "admin", "key": "s3cr3t"})
    assert "s3cr3t" not in result.state.to_json()
    assert "s3cr3t" not in repr(result.state)
    assert "deps" not in json.loads(result.state.to_json())


def test_a_first_state_can_be_made_before_there_are_deps() -> None:
    made = agent(call("pay", to="Ada"), "Done.", requirements=[ADMINS_ONLY])
    state = RunState.from_json(made.first_state("Pay.").to_json())
    assert [str(step.outcome) for step in made.resume_sync(state, deps={"role": "admin"}).steps] == ["ok"]
    with pytest.raises(PolicyError, match="the check is_admin raised TypeError") as caught:
        made.resume_sync(state)
    assert caught.value.state is not None


@requirement
def clock(history: History, run: RunView) -> None:
    """A rule of one's own, which is asked with a reading of the clock."""
    assert run.now is not None


@pytest.mark.parametrize("beside", [[], [clock]], ids=["alone", "beside a rule with a clock"])
def test_checks_have_no_clock_not_even_an_old_reading_of_it(beside: list[Any]) -> None:
    seen: list[Any] = []

    def looks(history: History, run: RunView) -> bool:
        seen.append(run.now)
        return True

    rules = [ConditionalRequirement("pay", custom_checks=[looks]), AskPermissionRequirement(["pay"]), *beside]
    paused = agent(call("pay", to="Ada"), requirements=rules).run_sync("Pay.", deps={"role": "admin"}, metadata={"user": "Ada"})
    (waiting,) = paused.pending
    after = agent(call("pay", to="Bob"), requirements=rules).resume_sync(paused.state, {waiting.call_id: True}, deps={"role": "admin"})
    assert [str(step.outcome) for step in after.steps] == ["ok"]
    assert seen
    assert set(seen) == {None}

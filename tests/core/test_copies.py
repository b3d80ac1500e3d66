"""Policies, permits and agents are copied, and policies and permits go to other processes."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
from hypothesis import given

from maymust import (
    AfterUntrustedRequirement,
    Agent,
    ApprovalMemory,
    ArgumentRequirement,
    AskPermissionRequirement,
    ConditionalRequirement,
    History,
    Permit,
    Policy,
    RunView,
    tool,
)
from maymust.errors import DeadEndError, PermitError
from maymust.models import ScriptedModel, call
from maymust.policyfile import load_policy
from maymust.verify import supervise, verify
from tests.core.random_policies import busy_histories, conditional_policies

TOOLS = ("look", "read", "pay")


def twice(history: History) -> bool:
    """Whether two calls succeeded."""
    return history.total() >= 2


def friends(history: History) -> list[str]:
    """Who may be paid."""
    return ["Ada", *(str(len(history)))]


def paths_in(output: Any) -> list[str]:
    """The paths in what `look` returned."""
    return [row["path"] for row in output]


RULES: dict[str, list[Any]] = {
    "none": [],
    "conditional": [ConditionalRequirement("pay", only_after=["look"], max_invocations=1, custom_checks=[twice])],
    "same": [ConditionalRequirement("read", only_after=["look"], same="path")],
    "argument of a function": [ArgumentRequirement("pay", "to", one_of=friends, from_output=("look", paths_in), optional=True)],
    "argument": [
        ArgumentRequirement("pay", "to", one_of=["Ada", "Bob"], pattern="[A-Z].*"),
        ArgumentRequirement("read", "path", from_output=("look", "$[*].path"), from_argument=("look", "path")),
    ],
    "ask": [AskPermissionRequirement(["pay"], remember_choices=True), AskPermissionRequirement(exclude=["look", "pay"])],
    "untrusted": [AfterUntrustedRequirement("pay", untrusted="look")],
}


def histories() -> list[History]:
    looked = History().add("look", arguments={"path": "a"}, output=[{"path": "a"}])
    read = looked.add("read", arguments={"path": "a"}, output="text")
    return [History(), looked, read, read.add("pay", arguments={"to": "Ada"})]


def permits(policy: Policy) -> list[dict[str, Any]]:
    return [policy.permit(history).to_dict() for history in histories()]


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("warm", [False, True], ids=["new", "used"])
@pytest.mark.parametrize("rules", RULES)
def test_a_pickled_policy_says_the_same(rules: str, warm: bool) -> None:
    policy = Policy(RULES[rules], tools=TOOLS)
    said = permits(policy) if warm else permits(Policy(RULES[rules], tools=TOOLS))
    other = pickled(policy)
    assert permits(other) == said
    assert permits(other) == said
    assert (other.hash, other.tools, other.final_answer_as_tool) == (policy.hash, policy.tools, True)
    assert verify(other).verdict == verify(policy).verdict


@given(conditional_policies(), busy_histories)
def test_a_pickled_policy_says_the_same_of_any_history(policy: Policy, history: History) -> None:
    other = pickled(policy)
    for length in range(len(history) + 1):
        assert verdict(other, history.at(length)) == verdict(policy, history.at(length))


def verdict(policy: Policy, history: History) -> Any:
    try:
        return policy.permit(history).to_dict()
    except PermitError as error:
        return type(error), str(error)


def test_a_supervised_policy_and_one_of_a_file_pickle_as_well(tmp_path: Any) -> None:
    policy = Policy([ConditionalRequirement("pay", only_before=["read"], min_invocations=1)], tools=TOOLS)
    other = pickled(supervise(policy))
    assert "read" in policy.permit().allowed
    assert "read" not in other.permit().allowed
    path = tmp_path / "pay.policy.yaml"
    path.write_text("version: 1\ntools: [look, pay]\nrules:\n  looked: {conditional: pay, only_after: look}\n")
    assert pickled(load_policy(path)).permit().allowed == ("look", "final_answer")


def test_a_policy_goes_to_another_process_and_its_permits_and_errors_come_back() -> None:
    policy = Policy([ConditionalRequirement("pay", only_after=["look"])], tools=TOOLS)
    closed = Policy([ConditionalRequirement(name, max_invocations=0) for name in ("look", "final_answer")], tools=["look"])
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(policy.permit, History().add("look")).result() == policy.permit(History().add("look"))
        error = pool.submit(closed.permit).exception()
    assert isinstance(error, DeadEndError)
    assert error.permit.allowed == ()


def test_what_pickle_cannot_take_it_says_itself() -> None:
    policy = Policy([ConditionalRequirement("pay", custom_checks=[lambda history: True])], tools=TOOLS)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(policy)


def test_a_shared_memory_is_not_torn_apart() -> None:
    memory = ApprovalMemory()
    policy = Policy([AskPermissionRequirement("pay", remember_in=memory)], tools=TOOLS)
    for make in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"shared by whoever holds it.*ApprovalMemory\(memory.choices\)"):
            make(memory)
    with pytest.raises(TypeError, match="shared by whoever holds it"):
        pickle.dumps(policy)
    assert copy.deepcopy(policy).requirements[0].remember_in is memory  # type: ignore[attr-defined]


@pytest.mark.parametrize("rules", RULES)
def test_a_deep_copy_of_a_policy_says_the_same(rules: str) -> None:
    policy = Policy(RULES[rules], tools=TOOLS)
    assert permits(copy.deepcopy({"policy": policy})["policy"]) == permits(policy)


def test_a_pickled_permit_answers_what_the_original_does_and_holds_no_deps() -> None:
    policy = Policy([ConditionalRequirement("pay", only_after=["look"], reason="look first")], tools=TOOLS)
    permit = policy.permit(History().add("read"), RunView(deps={"key": "s3cr3t", "lock": open}))
    assert b"s3cr3t" not in pickle.dumps(permit)
    other: Permit = pickled(permit)
    assert other == permit
    assert other.why("pay") == permit.why("pay")
    assert other.unlocks("pay") == permit.unlocks("pay") != ()
    assert other.history == permit.history
    assert copy.deepcopy(permit) is permit


def test_a_deep_copy_of_an_agent_works_like_the_first_and_is_an_agent_of_its_own() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    agent = Agent(ScriptedModel([call("look"), "Done.", call("look"), "Done."]), tools=[look], instructions="Look.")
    agent.run_sync("go")
    other = copy.deepcopy(agent)
    assert [step.tool for step in other.run_sync("go").steps] == ["look"]
    assert (other.tools, other.policy) == (agent.tools, agent.policy)
    other.instructions = "Do not."
    assert agent.instructions == "Look."

"""The compiled policy says what the plain requirement code says."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maymust.core.compiled import CompiledPolicy
from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.core.step import Outcome
from maymust.errors import ConflictError, DeadEndError, ForceUnmetError, PolicyError
from maymust.requirements.conditional import ConditionalRequirement
from maymust.requirements.permission import AskPermissionRequirement
from tests.core.random_policies import TOOLS, conditional_policies, likely_steps, steps

Words = list[tuple[str, Outcome]]
FAULTS = {ForceUnmetError: "force_unmet", ConflictError: "conflict", DeadEndError: "dead_end"}


def assert_same(policy: Policy, compiled: CompiledPolicy, state: int, history: History) -> None:
    said = compiled.permit(state)
    fault, permit = None, None
    try:
        permit = policy.permit(history)
    except (ForceUnmetError, ConflictError, DeadEndError) as error:
        fault = FAULTS[type(error)]
    assert said.fault == fault
    if permit is None:
        return
    assert (said.allowed, said.denied, said.withheld, said.asks) == (permit.allowed, permit.denied, permit.withheld, permit.asks)
    assert (said.forced, said.tool_choice, said.may_stop, said.owed) == (permit.forced, permit.tool_choice, permit.may_stop, permit.owed)
    assert {name: said.verdict(name) for name in permit.tools} == permit.verdicts()


@settings(max_examples=400, deadline=None)
@given(conditional_policies(), st.lists(st.one_of(steps, likely_steps, likely_steps), max_size=14))
def test_it_equals_the_plain_requirement_code_after_every_step(policy: Policy, words: Words) -> None:
    compiled = CompiledPolicy(policy)
    history, state = History(), compiled.start()
    assert_same(policy, compiled, state, history)
    for tool, outcome in words:
        history, state = history.add(tool, outcome=outcome), compiled.step(state, tool, outcome)
        assert state == compiled.state_of(history)
        assert state.bit_length() <= compiled.width
        assert_same(policy, compiled, state, history)


@settings(max_examples=100, deadline=None)
@given(conditional_policies(), st.lists(steps, max_size=8), st.lists(steps, max_size=8), st.lists(steps, max_size=4))
def test_histories_of_one_state_stay_together(policy: Policy, one: Words, other: Words, more: Words) -> None:
    compiled = CompiledPolicy(policy)

    def walk(state: int, words: Words) -> int:
        for tool, outcome in words:
            state = compiled.step(state, tool, outcome)
        return state

    if walk(compiled.start(), one) == walk(compiled.start(), other):
        assert walk(compiled.start(), one + more) == walk(compiled.start(), other + more)


@settings(max_examples=100, deadline=None)
@given(conditional_policies(), st.lists(steps, max_size=8))
def test_a_settled_state_is_that_after_many_steps_of_a_stranger(policy: Policy, words: list[tuple[str, Outcome]]) -> None:
    compiled = CompiledPolicy(policy)
    state = compiled.start()
    for tool, outcome in words:
        state = compiled.step(state, tool, outcome)
    settled = compiled.settled(state)
    for _ in range(8):
        state = compiled.step(state, "stranger")
    assert settled == state


def test_the_word_of_an_outcome_will_do() -> None:
    compiled = CompiledPolicy(Policy([ConditionalRequirement("a", max_invocations=2, only_success_invocations=False)], tools=TOOLS))
    state = compiled.step(compiled.step(compiled.start(), "a", "failed"), "a", "ok")
    assert compiled.moves(state) == ("b", "c", "d", "final_answer")
    assert compiled.step(state, "a", "refused") == state


def test_a_large_limit_costs_few_bits() -> None:
    compiled = CompiledPolicy(Policy([ConditionalRequirement("a", max_invocations=10**6)], tools=TOOLS))
    assert compiled.width <= 21


def test_a_limit_of_zero_closes_from_the_start() -> None:
    compiled = CompiledPolicy(Policy([ConditionalRequirement("a", max_invocations=0)], tools=TOOLS))
    assert "a" not in compiled.moves(compiled.start())


def test_custom_checks_are_refused_unless_taken_as_open() -> None:
    policy = Policy([ConditionalRequirement("a", name="hours", custom_checks=[lambda history: False])], tools=TOOLS)
    with pytest.raises(PolicyError, match="hours cannot be compiled"):
        CompiledPolicy(policy)
    compiled = CompiledPolicy(policy, opaque="open")
    assert compiled.left_open == ("hours",)
    assert "a" in compiled.moves(compiled.start())


def test_questions_are_kept_and_remembered_choices_are_refused() -> None:
    compiled = CompiledPolicy(Policy([AskPermissionRequirement(["a"])], tools=TOOLS))
    assert compiled.permit(compiled.start()).asks == ("a",)
    with pytest.raises(PolicyError, match="ask:a cannot be compiled"):
        CompiledPolicy(Policy([AskPermissionRequirement(["a"], remember_choices=True)], tools=TOOLS))


def test_the_facts_of_a_state_can_be_read() -> None:
    compiled = CompiledPolicy(Policy([ConditionalRequirement("b", only_after=["a"])], tools=TOOLS))
    assert list(compiled.holding(compiled.start())) == []
    (atom,) = compiled.holding(compiled.step(compiled.start(), "a"))
    assert (atom.tool, atom.times) == ("a", 1)  # type: ignore[union-attr]


def big_policy() -> Policy:
    tools = [f"t{number}" for number in range(20)]
    requirements = [
        ConditionalRequirement(
            tools[number % 20],
            only_after=[tools[(number * 7 + 3) % 20]] if number % 3 == 0 else [],
            max_invocations=5 if number % 3 == 1 else None,
            consecutive_allowed=number % 3 != 2,
        )
        for number in range(30)
    ]
    return Policy(requirements, tools=tools)


def test_verdicts_of_a_known_state_cost_next_to_nothing() -> None:
    compiled = CompiledPolicy(big_policy())
    states = [compiled.start()]
    for number in range(200):
        states.append(compiled.step(states[-1], f"t{number % 20}"))
    for state in states:
        compiled.permit(state)
    best = min(_seconds(compiled, states) for _ in range(20)) / len(states)
    assert best < 5e-6


def _seconds(compiled: CompiledPolicy, states: list[int]) -> float:
    started = time.perf_counter()
    for state in states:
        compiled.permit(state)
    return time.perf_counter() - started

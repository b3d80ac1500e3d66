"""Sets of states as diagrams say what the search says that looks at every state."""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import pytest

from maymust import ConditionalRequirement, Policy
from maymust.verify import verify
from maymust.verify.automaton import Automaton
from maymust.verify.symbolic import why_not
from maymust.verify.symbolic_survey import survey_by_sets
from maymust.verify.world import World
from tests.verify.random_rows import policy_of, random_row

COUNT = 250


def _policies() -> Any:
    for seed in range(COUNT):
        random = Random(seed)
        row = random_row(random, tools=random.randint(1, 5), rules=random.randint(1, 7))
        yield seed, row, policy_of(row)


def test_verdicts_and_lengths_of_witnesses_are_the_same() -> None:
    looked = 0
    for seed, row, policy in _policies():
        automaton = Automaton(policy, World(policy.tools))
        if why_not(automaton) is not None:
            continue
        looked += 1
        wanted, found = verify(policy), verify(policy, limit=1)
        if found.states > 1 and wanted.verdict != "conflict":
            assert found.dead_tools == wanted.dead_tools
        said = {
            name: (getattr(wanted, name), getattr(found, name))
            for name in ("verdict", "min_steps", "supervisor_exists", "stays_reachable", "forced_within")
            # A search that found a conflict at once looks no further.
            if name == "verdict" or found.stays_reachable is not None
        }
        assert all(one == other for one, other in said.values()), (seed, row, said)
        assert len(found.witness or ()) == len(wanted.witness or ()), (seed, row)
        assert (found.witness is None) == (wanted.witness is None), (seed, row)
    assert looked > COUNT // 2


def test_a_policy_with_billions_of_states_is_decided() -> None:
    tools = [f"t{number}" for number in range(36)]
    rules = [ConditionalRequirement(name, consecutive_allowed=False, max_invocations=2) for name in tools]
    rules += [ConditionalRequirement(tools[0], min_invocations=1), ConditionalRequirement("final_answer", only_after=tools[:2])]
    policy = Policy(rules, tools=tools)
    report = verify(policy, limit=500)
    assert report.verdict == "ok"
    assert report.states > 10**9
    assert report.min_steps == 3


@pytest.mark.parametrize(
    ("rules", "world", "why"),
    [
        ([ConditionalRequirement("a", cooldown=2)], {}, "a tool has a cooldown"),
        ([ConditionalRequirement("a", custom_checks=[lambda history: True])], {}, "some tools are closed by checks"),
        ([], {"may_fail": ["a"]}, "the outcomes are the world's choice"),
        ([], {"present": ["a"]}, "some tools are not there from the start"),
    ],
)
def test_what_facts_alone_do_not_tell_is_left_undecided(rules: list[Any], world: dict[str, Any], why: str) -> None:
    more = [ConditionalRequirement(name, max_invocations=1) for name in ("a", "b")]
    policy = Policy([*rules, *more], tools=["a", "b"])
    assert why_not(Automaton(policy, World(policy.tools, **world))) == why
    assert verify(policy, limit=1, **world).verdict == "undecided"


def test_sets_that_grow_too_large_are_given_up() -> None:
    policy = Policy([ConditionalRequirement(name, max_invocations=1) for name in ("a", "b")], tools=["a", "b"])
    automaton = Automaton(policy, World(policy.tools))
    for nodes in range(2, 30):
        survey_by_sets(automaton, nodes=nodes)
    assert survey_by_sets(automaton, nodes=3) is None
    assert survey_by_sets(automaton) is not None


def test_without_the_library_it_is_left_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Policy([ConditionalRequirement(name, max_invocations=1) for name in ("a", "b")], tools=["a", "b"])
    assert verify(policy, limit=1).verdict == "ok"
    monkeypatch.setitem(sys.modules, "dd.autoref", None)
    assert verify(policy, limit=1).verdict == "undecided"


@pytest.mark.parametrize("times", [61, 10_000, 10**23])
def test_a_limit_that_is_too_high_for_diagrams_leaves_the_policy_undecided_at_once(times: int) -> None:
    policy = Policy([ConditionalRequirement("pay", max_invocations=times)], tools=["pay"])
    assert survey_by_sets(Automaton(policy, World(policy.tools))) is None
    report = verify(policy, limit=50)
    assert (report.verdict, report.states) == ("undecided", 51)


def test_more_facts_than_diagrams_can_nest_leave_the_policy_undecided() -> None:
    tools = [f"t{number}" for number in range(300)]
    rules = [ConditionalRequirement(name, consecutive_allowed=False, max_invocations=2) for name in tools]
    policy = Policy(rules, tools=tools)
    assert survey_by_sets(Automaton(policy, World(policy.tools))) is None

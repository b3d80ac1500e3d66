"""A recorded run, folded again under the same policy, or another one."""

from pathlib import Path
from typing import Any

import pytest

from maymust import (
    Agent,
    ArgumentRequirement,
    AskPermissionRequirement,
    Budget,
    ConditionalRequirement,
    Policy,
    Rule,
    RunResult,
    ThinkTool,
    requirement,
)
from maymust.models import call, reply
from maymust.policyfile.write import policy_of
from maymust.trace import Recording, compare_runs, read_trace, recording_of, replay
from tests.trace.test_trace import RULES, desk, look, refund, traced


def recorded(agent: Agent[Any], tmp_path: Path, **more: Any) -> tuple[Recording, RunResult[Any]]:
    result = traced(agent, tmp_path / "t.jsonl", **more)
    return recording_of(read_trace(tmp_path / "t.jsonl")), result


THINK = ThinkTool()
AGENTS: dict[str, Any] = {
    "plain": lambda: desk(),
    "forced": lambda: desk(
        [
            call("think", thought="x"),
            [call("think", thought="y"), call("look", order=1)],
            call("look", order=1),
            call("final_answer", answer="x"),
        ],
        [
            ConditionalRequirement(THINK, force_at_step=1, max_invocations=1),
            ConditionalRequirement("look", min_invocations=1, only_after=["think"]),
        ],
        (THINK, look),
    ),
    "loop": lambda: desk([call("look", order=1)] * 5 + [call("final_answer", answer="x")], []),
    "stalled": lambda: desk(
        [reply(), reply(), reply(), call("final_answer", answer="x")], [ConditionalRequirement("look", min_invocations=1)]
    ),
    "budget": lambda: desk([call("look", order=n) for n in range(3)] + [call("final_answer", answer="x")], [], budget=Budget(turns=4)),
    "choice": lambda: desk(tool_choice={"mode": "required", "required_function_name": "look"}),
    "text": lambda: desk([call("look", order=1), "Done."], tool_choice="auto"),
    "values": lambda: desk(
        [call("look", order=1), call("refund", order=2, amount=900), call("refund", order=2, amount=9), call("final_answer", answer="x")],
        [ArgumentRequirement("refund", "amount", maximum=100)],
    ),
    "asked": lambda: desk(
        [call("refund", order=1, amount=2), call("refund", order=1, amount=3), call("final_answer", answer="x")],
        [AskPermissionRequirement(include=["refund"], handler=lambda _: False, remember_choices=True)],
    ),
}


@pytest.mark.parametrize("name", AGENTS)
def test_under_its_own_policy_nothing_differs(name: str, tmp_path: Path) -> None:
    agent = AGENTS[name]()
    run, result = recorded(agent, tmp_path)
    assert result.turns
    assert replay(run, agent.policy).differences == ()
    if name != "asked":
        described = policy_of(run.policy or {})
        assert described is not None
        assert replay(run, described).differences == ()


def test_the_first_difference_names_step_tool_verdicts_and_rule(tmp_path: Path) -> None:
    run, _ = recorded(desk(), tmp_path)
    stricter = Policy([*RULES, ConditionalRequirement("look", max_invocations=1, name="once")], tools=["look", "refund"])
    found = replay(run, stricter).differences
    assert (found[0].turn, found[0].step, found[0].kind, found[0].tool) == (2, 3, "call", "look")
    assert (found[0].before, found[0].after, found[0].rules) == ("ok", "refused", ("once",))
    assert (found[1].turn, found[1].tool, found[1].before, found[1].after) == (3, "look", "allowed", "denied")
    assert str(found[1]) == "step 4 (turn 3): look allowed → denied"
    assert "already called" in found[1].reasons[0]


def test_a_looser_policy_differs_at_once(tmp_path: Path) -> None:
    run, _ = recorded(desk(), tmp_path)
    first = replay(run, Policy([], tools=["look", "refund"])).differences[0]
    assert (first.step, first.tool, first.before, first.after) == (1, "refund", "denied", "allowed")
    assert first.rules == ("conditional:refund",)


def test_values_of_arguments_are_judged_again(tmp_path: Path) -> None:
    run, _ = recorded(desk(), tmp_path)
    bounded = Policy([*RULES, ArgumentRequirement("refund", "amount", maximum=1, name="small")], tools=["look", "refund"])
    (found,) = replay(run, bounded).differences
    assert (found.kind, found.tool, found.after, found.rules) == ("call", "refund", "refused", ("small",))


def test_no_next_step_is_a_difference(tmp_path: Path) -> None:
    run, _ = recorded(desk(), tmp_path)
    closed = Policy(
        [ConditionalRequirement(name, max_invocations=0) for name in ("look", "refund", "final_answer")], tools=["look", "refund"]
    )
    found = replay(run, closed).differences
    assert {difference.kind for difference in found} == {"error"}


def test_rules_in_python_are_taken_as_recorded_and_told(tmp_path: Path) -> None:
    @requirement(name="mood", targets=["refund"])
    def mood(history: Any) -> Any:
        yield Rule("refund", allowed=len(history) > 1, reason="not in the mood")

    agent = desk(rules=[mood, *RULES])
    run, _ = recorded(agent, tmp_path)
    done = replay(run, agent.policy)
    assert done.differences == ()
    assert done.undecided == ("mood: it is Python code, and its rules are taken as they were recorded",)
    done = replay(run, Policy(RULES, tools=["look", "refund"]), taken=("mood",))
    assert (done.differences, len(done.undecided)) == ((), 1)


def test_two_runs_are_compared_up_to_where_they_part(tmp_path: Path) -> None:
    one, result = recorded(desk(), tmp_path)
    assert compare_runs(one, one) == ()
    other, _ = recorded(desk([call("refund", order=1, amount=2), call("look", order=7), call("final_answer", answer="x")]), tmp_path)
    (found,) = compare_runs(one, other)
    assert (found.turn, found.step, found.kind) == (2, 2, "call")
    assert (found.before, found.after) == ("look (ok) {'order': 1}", "look (ok) {'order': 7}")
    free, _ = recorded(desk(rules=[]), tmp_path)
    assert [(found.kind, found.tool) for found in compare_runs(one, free)] == [
        ("verdict", "refund"),
        ("verdict", "final_answer"),
        ("call", None),
    ]
    told = recording_of(result.state)
    assert replay(told, desk().policy).differences == ()
    assert refund.name == "refund"

"""Verification and explanations of limits on arguments: the control part is known, the values are taken for granted."""

from __future__ import annotations

import pytest

from maymust import ArgumentRequirement, ConditionalRequirement, History, Policy, PolicyError, explain
from maymust.core.compiled import CompiledPolicy
from maymust.verify import verify

READ_FIRST = ArgumentRequirement("write", "id", from_output=("get", "$.id"))
OWED = ConditionalRequirement("write", min_invocations=1)


def test_a_key_seen_counts_as_seen() -> None:
    report = verify(Policy([READ_FIRST, OWED], tools=["get", "write"]))
    assert (report.verdict, report.min_steps, report.dead_tools) == ("ok", 3, ())
    assert "argument:write.id: a call that is to give a value for id gives one" in report.assumptions


def test_a_tool_whose_values_nobody_can_bring_is_dead() -> None:
    policy = Policy([READ_FIRST, OWED, ConditionalRequirement("get", max_invocations=0)], tools=["get", "write"])
    report = verify(policy)
    assert report.verdict == "unreachable"
    assert "write" in report.dead_tools


def test_any_source_will_do_and_known_values_need_none() -> None:
    both = ArgumentRequirement("write", "id", from_output=[("get", "$.id"), ("find", "$[*]")])
    closed = ConditionalRequirement("get", max_invocations=0)
    assert verify(Policy([both, OWED, closed], tools=["get", "find", "write"])).verdict == "ok"
    known = ArgumentRequirement("write", "id", from_output=("get", "$.id"), one_of=["a"])
    assert verify(Policy([known, OWED, closed], tools=["get", "write"])).verdict == "ok"
    fixed = verify(Policy([ArgumentRequirement("write", "id", maximum=3), OWED], tools=["write"]))
    assert (fixed.verdict, fixed.min_steps) == ("ok", 2)


def test_a_limit_that_only_bounds_a_value_is_no_silent_rule() -> None:
    limits = [
        ArgumentRequirement("write", "id", maximum=3),
        ArgumentRequirement("write", "path", pattern="a.*"),
        ArgumentRequirement("write", "kind", one_of=["x"]),
    ]
    assert verify(Policy(limits, tools=["write"])).findings == ()


def test_a_function_of_the_history_may_say_no_for_ever() -> None:
    def mine(history: History) -> list[str]:
        return []

    report = verify(Policy([ArgumentRequirement("write", "id", one_of=mine), OWED], tools=["get", "write"]))
    assert report.provided == ("mine",)


def test_the_compiled_form_is_whole_for_fixed_limits_only() -> None:
    fixed = CompiledPolicy(Policy([ArgumentRequirement("write", "id", maximum=3)], tools=["write"]))
    assert fixed.left_open == ()
    with pytest.raises(PolicyError, match=r"argument:write\.id cannot be compiled"):
        CompiledPolicy(Policy([READ_FIRST], tools=["get", "write"]))
    compiled = CompiledPolicy(Policy([READ_FIRST], tools=["get", "write"]), opaque="open")
    assert compiled.left_open == ("argument:write.id",)
    start = compiled.start()
    assert compiled.permit(start).denied == ("write",)
    assert compiled.permit(compiled.step(start, "get")).denied == ()


def test_explanations_say_what_would_change_it() -> None:
    policy = Policy([READ_FIRST, ArgumentRequirement("pay", "amount", maximum=3)], tools=["get", "write", "pay"])
    assert str(explain(policy.permit(), "write")).splitlines()[-1] == "  write opens after get"
    empty = policy.permit(History().add("get", output={}))
    assert str(explain(empty, "write")).splitlines()[-1] == "  write opens when the output of get lets it"
    seen = str(explain(policy.permit(History().add("get", output={"id": 1})), "write")).splitlines()
    assert seen[1:3] == ["  argument:write.id: id has to be a value that get returned", "  get: 1 ok call; values of id: 1"]
    assert "  argument:pay.amount: amount: a number, at most 3" in str(explain(policy.permit(), "pay"))

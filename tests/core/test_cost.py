"""A permit costs the same at any length of the history, and next to nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.requirements.conditional import ConditionalRequirement


def policy_of(tools: int, requirements: int) -> Policy:
    """Limits, orders, forces and minima that leave something open in every history of `walk`."""
    names = [f"t{number}" for number in range(tools)]
    made = []
    for number in range(requirements):
        target, other = names[number % tools], names[(number * 7 + 1) % tools]
        kinds: tuple[dict[str, Any], ...] = (
            {"only_after": [other] if other != target else []},
            {"max_invocations": 10**6},
            {"consecutive_allowed": False},
            {"force_at_step": 10**6 + number, "only_success_invocations": False},
            {"min_invocations": 1},
        )
        made.append(ConditionalRequirement(target, **kinds[number % 5]))
    return Policy(made, tools=names)


def walk(history: History, steps: int, tools: int) -> list[History]:
    versions = []
    for number in range(steps):
        history = history.add(f"t{number % tools}", outcome="failed" if number % 5 == 4 else "ok")
        versions.append(history)
    return versions


def operations(calls: list[Callable[[], Any]]) -> list[int]:
    """Number of bytecode instructions that each call takes."""
    counts = [0]

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        frame.f_trace_opcodes = True
        counts[-1] += event == "opcode"
        return trace

    before = sys.gettrace()
    # Python 3.12 traces opcodes only where some frame asked for it before tracing began.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        for call in calls:
            counts.append(0)
            call()
    finally:
        sys.settrace(before)
    return counts[1:]


def test_the_number_of_operations_does_not_grow_with_the_history() -> None:
    policy = policy_of(10, 10)
    short, long = (walk(History(), steps, 10)[-1] for steps in (50, 10_000))
    for history in (short, long):
        policy.permit(history)
    asked: list[Callable[[History], Any]] = [
        policy.permit,
        lambda history: history.add("t1"),
        lambda history: history.count("t1"),
        lambda history: history.seen("t1"),
        lambda history: history.total(),
    ]
    counts = operations([lambda ask=ask, history=history: ask(history) for ask in asked for history in (short, long)])  # type: ignore[misc]
    assert counts[::2] == counts[1::2]
    assert all(counts)


@pytest.mark.parametrize(("tools", "requirements", "limit"), [(10, 10, 10e-6), (1000, 100, 120e-6)])
def test_a_permit_of_a_warm_policy_costs_microseconds(tools: int, requirements: int, limit: float) -> None:
    policy = policy_of(tools, requirements)
    for length in (0, 5_000):
        versions = walk(walk(History(), length, 10)[-1] if length else History(), 100, 10)
        best = min(seconds(policy, versions) for _ in range(20)) / len(versions)
        assert best < limit


def seconds(policy: Policy, versions: list[History]) -> float:
    started = time.perf_counter()
    for history in versions:
        policy.permit(history)
    return time.perf_counter() - started


def test_what_is_kept_between_permits_is_bounded() -> None:
    policy = Policy([ConditionalRequirement("t0", min_invocations=2000, only_after=["t1"])], tools=["t0", "t1"])
    for number in range(5000):
        policy.permit(present=("t0", f"late{number}", "t1"))
    sets = policy._sets
    assert len(sets._by_tools) <= 64
    assert len(sets._by_tuple) <= 64


def test_the_core_loads_nothing_but_the_standard_library() -> None:
    modules = ("core.policy", "core.compiled", "core.gate", "requirements.conditional", "requirements.permission", "requirements.custom")
    code = [
        "import sys",
        f"sys.path[:0] = {sys.path!r}",
        f"import {', '.join(f'maymust.{name}' for name in modules)}",
        "known = sys.stdlib_module_names | {'maymust', '__main__'}",
        "print([name for name in sys.modules if name.split('.')[0] not in known])",
    ]
    result = subprocess.run([sys.executable, "-I", "-S", "-c", "\n".join(code)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"

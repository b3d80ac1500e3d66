"""What narrowing costs: 20 tools whose arguments depend on what earlier calls returned.

    python -m benchmarks.bench_arguments

The best of several runs is printed, in microseconds of this thread's own time per step, with the target beside it.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable

from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.requirements.arguments import ArgumentRequirement

TOOLS = 20
STEPS = 100
REPEATS = 15


def policy_of_own_sources() -> Policy:
    """Each tool may write what a tool of its own has read."""
    tools = [name for number in range(TOOLS) for name in (f"get_{number}", f"write_{number}")]
    rules = [ArgumentRequirement(f"write_{number}", "id", from_output=(f"get_{number}", "$.id")) for number in range(TOOLS)]
    return Policy(rules, tools=[*tools, "look"])


def policy_of_one_source() -> Policy:
    """All tools may write what one tool has read, so each of its calls changes 20 rules."""
    rules = [ArgumentRequirement(f"write_{number}", "id", from_output=("get", "$.id")) for number in range(TOOLS)]
    return Policy(rules, tools=["get", *(f"write_{number}" for number in range(TOOLS)), "look"])


_fresh = itertools.count()


def quiet(history: History, step: int) -> History:
    """A step that brings no value."""
    return history.add("look", output={"seen": step})


def one_changes(history: History, step: int) -> History:
    """A step that brings a value for one tool."""
    return history.add(f"get_{step % TOOLS}", output={"id": f"record-{next(_fresh)}"})


def all_change(history: History, step: int) -> History:
    """A step that brings a value for all tools."""
    return history.add("get", output={"id": f"record-{next(_fresh)}"})


def started(policy: Policy) -> History:
    """A history in which every tool has a value."""
    history = History()
    for tool in policy.tools:
        if tool.startswith("get"):
            history = history.add(tool, output={"id": "first"})
    return history


def per_step(policy: Policy, grow: Callable[[History, int], History]) -> tuple[float, float]:
    """Best time of one permit and of adding one step, in microseconds, over runs of `STEPS` steps."""
    best_permit = best_add = float("inf")
    for _ in range(REPEATS):
        history = started(policy)
        policy.permit(history)
        permits = adds = 0.0
        gc.disable()
        for step in range(STEPS):
            at = time.thread_time()
            history = grow(history, step)
            between = time.thread_time()
            permit = policy.permit(history)
            permit.arguments("write_0")
            permits += time.thread_time() - between
            adds += between - at
        gc.enable()
        best_permit, best_add = min(best_permit, permits), min(best_add, adds)
    return best_permit / STEPS * 1e6, best_add / STEPS * 1e6


def main() -> None:
    """Print the table."""
    cases = [
        ("no value is new", policy_of_own_sources(), quiet),
        ("one tool gets a new value", policy_of_own_sources(), one_changes),
        ("all 20 get a value", policy_of_one_source(), all_change),
    ]
    print(f"narrowing {TOOLS} tools, {STEPS} steps    µs per step    target")
    for name, policy, grow in cases:
        permit, _ = per_step(policy, grow)
        print(f"  {name:<34} {permit:>9.1f}    <= 100")


if __name__ == "__main__":
    main()

"""What `compare` finds by counting far numbers in one stride is what is found by counting them one by one."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from maymust import ConditionalRequirement, Policy
from maymust.core.compiled import CompiledPolicy
from maymust.core.history import History
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import PolicyError
from maymust.reports.difference import Difference, compare
from tests.verify.random_rows import policy_of, random_row

COUNT = int(os.environ.get("MAYMUST_SOAK", "300"))
FIRST = int(os.environ.get("MAYMUST_SOAK_FROM", "0"))
LIMIT = 20_000

_NUMBERS = {"force_at_step": (1, 9), "min_invocations": (0, 7), "max_invocations": (0, 12), "max_attempts": (0, 12), "cooldown": (1, 9)}


def pairs_of_policies() -> Iterator[tuple[int, Policy, Policy]]:
    """An old policy with somewhat larger numbers, and a new one that differs in a number or two, or lacks a rule."""
    for seed in range(FIRST, FIRST + COUNT):
        random = Random(seed)
        row = random_row(random, tools=random.randint(1, 3), rules=random.randint(1, 4), wild=seed % 3 != 0)
        if random.random() < 0.6:
            row["tools"].append("free")
        old = numbered(random, row, 0.8)
        new = numbered(random, old, 0.5)
        if random.random() < 0.4 and len(new["rules"]) > 1:
            del new["rules"][random.choice(list(new["rules"]))]
        try:
            yield seed, policy_of(old), policy_of(new)
        except PolicyError:
            continue


def numbered(random: Random, row: dict[str, Any], share: float) -> dict[str, Any]:
    rules = {}
    for name, rule in row["rules"].items():
        drawn = {key: random.randint(*_NUMBERS[key]) for key in rule if key in _NUMBERS and random.random() < share}
        rules[name] = {**rule, **drawn}
    return {"tools": row["tools"], "rules": rules}


def one_by_one(old: Policy, new: Policy) -> tuple[dict[tuple[str, str], int], bool]:
    """Every pair of states, breadth first: per tool and kind how many calls it takes."""
    one, other = CompiledPolicy(old, opaque="open"), CompiledPolicy(new, opaque="open")
    start = (one.start(), other.start())
    found: dict[tuple[str, str], int] = {}
    seen, queue = {start}, deque([(start, 0)])
    while queue:
        (mine, theirs), calls = queue.popleft()
        before, after = one.permit(mine), other.permit(theirs)
        for tool in after.allowed if after.fault is None else ():
            refused = before.fault is not None or tool not in before.allowed
            if refused or (tool in before.asks and tool not in after.asks):
                found.setdefault((tool, "allowed" if refused else "unasked"), calls)
            if refused or tool == FINAL_ANSWER:
                continue
            for outcome in ("ok", "failed"):
                pair = (one.step(mine, tool, outcome), other.step(theirs, tool, outcome))
                if pair not in seen:
                    if len(seen) >= LIMIT:
                        return found, False
                    seen.add(pair)
                    queue.append((pair, calls + 1))
    return found, True


def calls_of(witness: tuple[str, ...]) -> list[str]:
    calls = []
    for word in witness:
        what, _, times = word.partition(" ×")
        calls += what.strip("()").split(", ") * int(times or 1)
    return calls


def shortest(difference: Difference) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for gain in difference.gains:
        found.setdefault((gain.tool, gain.kind), len(calls_of(gain.witness)))
    return found


def holds(old: Policy, new: Policy, witness: tuple[str, ...]) -> bool:
    history = History()
    for call in calls_of(witness):
        tool, _, outcome = call.partition("!")
        if not all(tool in policy.permit(history).allowed for policy in (old, new)):
            return False
        history = history.add(tool, outcome=outcome or "ok")
    return True


@pytest.mark.parametrize("far", [1, 4])
def test_nothing_else_is_found_than_by_looking_at_every_state(far: int) -> None:
    compared = fewer = 0
    for seed, old, new in pairs_of_policies():
        expected, complete = one_by_one(old, new)
        if not complete:
            continue
        difference = compare(old, new, far=far)
        assert (shortest(difference), difference.complete) == (expected, True), seed
        assert all(holds(old, new, gain.witness) for gain in difference.gains), seed
        plain = compare(old, new, far=10**6)
        causes = [sorted((gain.tool, gain.kind, gain.rules, len(calls_of(gain.witness))) for gain in some.gains) for some in (difference, plain)]
        assert causes[0] == causes[1], seed
        compared += 1
        fewer += difference.pairs < plain.pairs
    assert compared > COUNT * 0.6
    assert fewer > compared * 0.1

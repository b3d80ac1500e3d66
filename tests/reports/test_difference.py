"""What `compare` finds by counting far numbers in one stride is what is found by counting them one by one."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from maymust import AskPermissionRequirement, ConditionalRequirement, Policy, requirement
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
        causes = [
            sorted((gain.tool, gain.kind, gain.rules, len(calls_of(gain.witness))) for gain in some.gains) for some in (difference, plain)
        ]
        assert causes[0] == causes[1], seed
        compared += 1
        fewer += difference.pairs < plain.pairs
    assert compared > COUNT * 0.6
    assert fewer > compared * 0.1


_TOGETHER: list[dict[str, dict[str, Any]]] = [
    {"a": {"consecutive_allowed": False, "max_invocations": 6}, "b": {"consecutive_allowed": False, "max_invocations": 7}},
    {
        "a": {"consecutive_allowed": False, "max_invocations": 6},
        "b": {"consecutive_allowed": False, "max_invocations": 4},
        "c": {"max_invocations": 5},
    },
    {name: {"cooldown": 2, "max_invocations": 4 + number} for number, name in enumerate("abc")},
    {name: {"consecutive_allowed": False, "max_invocations": 4, "min_invocations": 3} for name in "abc"},
    {"a": {"cooldown": 7, "max_invocations": 3}, "b": {"max_invocations": 9}, "c": {"max_invocations": 12}},
    {"a": {"max_invocations": 4, "max_attempts": 7}, "b": {"max_attempts": 6, "min_invocations": 3}, "c": {"max_invocations": 0}},
    {"a": {"force_at_step": 9, "max_invocations": 5}, "b": {"max_invocations": 6}, "c": {"consecutive_allowed": False}},
    {"a": {"force_after": "b", "max_invocations": 8}, "b": {"max_invocations": 9}, "c": {"cooldown": 4}},
]


@pytest.mark.parametrize("rules", _TOGETHER)
@pytest.mark.parametrize("more", [("max_invocations", 1), ("min_invocations", -1), ("cooldown", -1), ("max_attempts", 1)])
@pytest.mark.parametrize("far", [1, 3])
def test_numbers_that_grow_with_the_same_calls_are_told_apart(rules: dict[str, dict[str, Any]], more: tuple[str, int], far: int) -> None:
    key, change = more
    for tools in (["a", "b", "c"], ["a", "b", "c", "free"]):
        for loosened in [{name} for name in "abc"] + [set("abc")]:
            changed = {
                name: {**params, **({key: params[key] + change} if name in loosened and key in params else {})}
                for name, params in rules.items()
            }
            old, new = (Policy([ConditionalRequirement(name, **some[name]) for name in some], tools=tools) for some in (rules, changed))
            expected, complete = one_by_one(old, new)
            difference = compare(old, new, far=far)
            assert (shortest(difference), difference.complete) == (expected, complete)
            assert all(holds(old, new, gain.witness) for gain in difference.gains)


def policy(rules: dict[str, dict[str, Any]], *more: Any) -> Policy:
    return Policy([*(ConditionalRequirement(tool, **params) for tool, params in rules.items()), *more], tools=["a", "b", "c"])


_HIGH = {
    "max_invocations": lambda n: ({"a": {"max_invocations": n}}, {"a": {"max_invocations": n + 1}}, n),
    "max_attempts": lambda n: ({"a": {"max_attempts": n}}, {"a": {"max_attempts": n + 1}}, n),
    "min_invocations": lambda n: ({"a": {"min_invocations": n}}, {"a": {"min_invocations": n - 1}}, n - 1),
    "cooldown": lambda n: ({"a": {"cooldown": n}}, {"a": {"cooldown": n - 1}}, n),
    "force_at_step": lambda n: ({"a": {"force_at_step": n}}, {"a": {"force_at_step": n + 1}}, n - 1),
    "a limit without two in a row": lambda n: (
        {"a": {"max_invocations": n, "consecutive_allowed": False}},
        {"a": {"max_invocations": n + 1, "consecutive_allowed": False}},
        2 * n,
    ),
    "a limit and a short cooldown": lambda n: (
        {"a": {"max_invocations": n, "cooldown": 3}},
        {"a": {"max_invocations": n + 1, "cooldown": 3}},
        4 * n,
    ),
    "limits of three tools": lambda n: (
        {name: {"max_invocations": n} for name in "abc"},
        {name: {"max_invocations": n + number} for number, name in enumerate("abc")},
        n,
    ),
    "the same limits": lambda n: (
        {name: {"max_invocations": n, "min_invocations": n // 2} for name in "ab"},
        {"a": {"max_invocations": n}, "b": {"min_invocations": n // 2}},
        n // 2,
    ),
}


@pytest.mark.parametrize("name", _HIGH)
def test_a_limit_of_any_height_takes_as_many_pairs_of_states(name: str) -> None:
    looked = set()
    for height in (100, 100_000, 10**15):
        old, new, calls = _HIGH[name](height)
        difference = compare(policy(old), policy(new))
        assert difference.complete
        assert min(shortest_of(difference)) == calls
        looked.add(difference.pairs)
    assert len(looked) == 1
    assert looked.pop() < 100


def shortest_of(difference: Difference) -> list[int]:
    return [sum(word.count(",") + 1 if "×" not in word else _times(word) for word in gain.witness) for gain in difference.gains]


def _times(word: str) -> int:
    what, _, times = word.partition(" ×")
    return len(what.split(", ")) * int(times)


def test_numbers_that_grow_together_are_counted_one_by_one() -> None:
    old = policy({"a": {"max_attempts": 3_000, "min_invocations": 2_000}})
    new = policy({"a": {"max_attempts": 3_001, "min_invocations": 2_000}})
    difference = compare(old, new)
    assert difference.complete
    assert shortest_of(difference) == [3_000]
    assert difference.pairs < 10_000


def test_a_long_run_of_calls_is_one_word() -> None:
    difference = compare(policy({"a": {"cooldown": 50}}), policy({"a": {"cooldown": 40}}))
    assert [gain.witness for gain in difference.gains] == [("a", "b ×40")]
    difference = compare(policy({"a": {"cooldown": 20}}), policy({"a": {"cooldown": 10}}))
    assert [gain.witness for gain in difference.gains] == [("a", *["b"] * 10)]


def test_a_sequence_that_is_longer_than_any_list_is_told_all_the_same() -> None:
    (gain,) = compare(policy({"a": {"max_invocations": 10**23}}), policy({"a": {"max_invocations": 10**24}})).gains
    assert (gain.tool, gain.kind, gain.witness) == ("a", "allowed", (f"a ×{10**23}",))
    assert gain.reasons == ("the sequence is too long for its rules to be asked",)


def test_rules_in_python_are_not_asked_about_a_sequence_that_is_very_long() -> None:
    asked = []

    @requirement(name="own", targets=["b"])
    def own(history: History) -> Any:
        asked.append(len(history))
        return []

    rules = AskPermissionRequirement("b"), own
    difference = compare(policy({"a": {"max_invocations": 10**9}}, *rules), policy({"a": {"max_invocations": 10**9 + 1}}, *rules))
    assert [(gain.tool, gain.witness) for gain in difference.gains] == [("a", (f"a ×{10**9}",))]
    assert max(asked, default=0) < 10**6

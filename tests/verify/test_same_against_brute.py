"""What verification claims of policies with `same=`, against a slow search in which calls have values.

The search knows four values, all alike. Where verification says ok and nothing is provided, the end stays reachable as long as there are
values that nobody has used; where it says that the end is lost after some calls, it is, as
far as these calls do not depend on what counts cannot tell.
"""

from __future__ import annotations

import os
from functools import cached_property
from random import Random
from typing import Any

from maymust.errors import PolicyError
from maymust.verify import verify
from maymust.verify.opaque import opaque_of
from tests.verify.brute import FINAL, Conditional
from tests.verify.random_rows import policy_of

COUNT = int(os.environ.get("MAYMUST_SOAK", "1000")) // 10
VALUES = 4
LARGEST = 800
State = tuple[tuple[Any, ...], tuple[tuple[Any, ...], ...]]


class Valued:
    """The product of small machines: one for each plain rule, and for each value one for each rule with `same`."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.tools: list[str] = row["tools"]
        rules = [Conditional(name, params) for name, params in row["rules"].items()]
        self.plain = [rule for rule in rules if "same" not in rule.p]
        self.keyed = [rule for rule in rules if "same" in rule.p]

    @cached_property
    def fresh(self) -> tuple[Any, ...]:
        return tuple(rule.start() for rule in self.keyed)

    @property
    def start(self) -> State:
        return tuple(rule.start() for rule in self.plain), (self.fresh,) * VALUES

    def after(self, state: State, tool: str, value: int) -> State:
        plain, values = state
        moved = tuple(rule.after_event(own, (tool, "ok")) for rule, own in zip(self.plain, plain, strict=True))
        mine = tuple(rule.after_event(own, (tool, "ok")) for rule, own in zip(self.keyed, values[value], strict=True))
        # Values are alike, so only how many of each kind there are matters.
        rest = [*values[:value], mine, *values[value + 1 :]]
        return moved, tuple(sorted(rest, key=repr))

    def is_closed(self, rules: list[Conditional], states: tuple[Any, ...], tool: str) -> bool:
        return any(voice.closed for rule, own in zip(rules, states, strict=True) for voice in rule.speaks(own) if voice.target == tool)

    def prevents(self, rules: list[Conditional], states: tuple[Any, ...]) -> bool:
        return any(voice.prevents for rule, own in zip(rules, states, strict=True) for voice in rule.speaks(own))

    def moves(self, state: State) -> list[tuple[str, State]]:
        plain, values = state
        return [
            (tool, self.after(state, tool, value))
            for tool in self.tools
            if not self.is_closed(self.plain, plain, tool)
            for value in range(VALUES)
            if not self.is_closed(self.keyed, values[value], tool)
        ]

    def may_stop(self, state: State) -> bool:
        plain, values = state
        if self.is_closed(self.plain, plain, FINAL):
            return False
        return not self.prevents(self.plain, plain) and not any(self.prevents(self.keyed, own) for own in values)

    def explored(self) -> dict[State, list[tuple[str, State]]] | None:
        """Every state with its moves; None when there are too many."""
        found: dict[State, list[tuple[str, State]]] = {}
        waiting = [self.start]
        while waiting:
            state = waiting.pop()
            if state in found:
                continue
            if len(found) > LARGEST:
                return None
            found[state] = self.moves(state)
            waiting.extend(target for _, target in found[state])
        return found

    def ending(self, graph: dict[State, list[tuple[str, State]]]) -> set[State]:
        """The states that can reach the end."""
        sources: dict[State, list[State]] = {}
        for state, moves in graph.items():
            for _, target in moves:
                sources.setdefault(target, []).append(state)
        good = {state for state in graph if self.may_stop(state)}
        waiting = list(good)
        while waiting:
            for source in sources.get(waiting.pop(), ()):
                if source not in good:
                    good.add(source)
                    waiting.append(source)
        return good


def random_row(random: Random) -> dict[str, Any]:
    names = [f"t{number}" for number in range(random.randint(2, 4))]
    row: dict[str, Any] = {"tools": names, "rules": {}}
    wanted = random.randint(2, 5)
    while len(row["rules"]) < wanted:
        rule = _keyed(random, names) if random.random() < 0.5 else _plain(random, names)
        try:
            policy_of({"tools": names, "rules": {"r": rule}})
        except PolicyError:
            continue
        row["rules"][f"r{len(row['rules'])}"] = rule
    return row


def _some(random: Random, names: list[str]) -> list[str]:
    return random.sample(names, min(len(names), random.choice((1, 1, 2))))


def _keyed(random: Random, names: list[str]) -> dict[str, Any]:
    draws: dict[str, Any] = {
        "only_after": lambda: _some(random, names),
        "only_after_any": lambda: _some(random, names),
        "only_before": lambda: _some(random, names),
        "max_invocations": lambda: random.choice((1, 1, 2)),
        "max_attempts": lambda: random.choice((1, 2)),
        "followed_by": lambda: _some(random, names),
    }
    chosen = random.sample(list(draws), random.choice((1, 1, 1, 2)))
    return {"conditional": random.choice(names), "same": "k", **{parameter: draws[parameter]() for parameter in chosen}}


def _plain(random: Random, names: list[str]) -> dict[str, Any]:
    rule: dict[str, Any] = {"conditional": random.choice([*names, FINAL])}
    draws: dict[str, Any] = {
        "only_after": lambda: _some(random, names),
        "only_before": lambda: _some(random, names),
        "min_invocations": lambda: random.choice((1, 1, 2)),
        "max_invocations": lambda: random.choice((1, 2, 2, 3)),
        "consecutive_allowed": lambda: False,
        "followed_by": lambda: _some(random, names),
    }
    return {**rule, **{parameter: draws[parameter]() for parameter in random.sample(list(draws), random.choice((1, 1, 2)))}}


def _check(row: dict[str, Any]) -> str | None:
    valued = Valued(row)
    graph = valued.explored()
    if graph is None:
        return None
    good = valued.ending(graph)
    policy = policy_of(row)
    report = verify(policy)
    if report.verdict == "ok":
        if not report.provided:
            lost = [state for state in graph if state not in good and state[1].count(valued.fresh) > VALUES // 2]
            assert not lost, lost[0]
        return "proved" if not report.provided else "provided"
    if report.verdict == "unreachable":
        assert valued.start not in good
        return "unreachable"
    tools = (*policy.tools, FINAL)
    doubted = {tools[place] for one in opaque_of(policy.requirements, tools) for place in one.targets}
    if doubted.intersection(report.witness or ()):
        # A witness through calls that depend on a check shows what happens when it passes.
        return "doubted"
    states = {valued.start}
    for word in report.witness or ():
        states = {target for state in states for tool, target in graph[state] if tool == word}
    assert states - good, report.witness
    return report.verdict


def test_what_is_claimed_holds_when_calls_have_values() -> None:
    seen: dict[str | None, int] = {}
    for seed in range(COUNT):
        row = random_row(Random(seed))
        try:
            word = _check(row)
        except AssertionError as error:
            error.add_note(f"seed {seed}: {row}\n{verify(policy_of(row))}")
            raise
        seen[word] = seen.get(word, 0) + 1
    assert all(seen.get(word, 0) > COUNT // 50 for word in ("proved", "provided", "unreachable", "livelock")), seen

"""A policy as a graph: its situations, and the calls that lead from one to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from maymust.core.compiled import CompiledPolicy, Verdicts
from maymust.core.policy import Policy
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER

LIMIT = 5_000
"""How many states are looked at; what has more cannot be looked at anyway."""


class TooLargeError(Exception):
    """The policy has more states than the limit."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Calls that lead from one situation to another: `tool`, or `tool!failed`. A failed call that has no edge changes nothing."""

    source: int
    target: int
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PolicyGraph:
    """Situations by number, 0 is the start.

    verdicts    what each situation allows
    edges       the ways between them, loops included; the final answer leads nowhere
    situations  the situation of each state of the compiled policy that a lawful run can be in
    """

    verdicts: tuple[Verdicts, ...]
    edges: tuple[Edge, ...]
    situations: Mapping[int, int] = field(default_factory=dict, repr=False, compare=False)

    def label(self, number: int) -> tuple[str, ...]:
        """What to write on a situation, in lines."""
        here = self.verdicts[number]
        if here.fault is not None:
            return (f"{number}", here.fault.replace("_", " "))
        return (f"{number}", f"must {here.forced}") if here.forced is not None else (f"{number}",)

    def may_stop(self, number: int) -> bool:
        """True when the run may end there."""
        return self.verdicts[number].may_stop

    def is_stuck(self, number: int) -> bool:
        """True when there is no next step."""
        return self.verdicts[number].fault is not None


def policy_graph(policy: Policy, *, limit: int = LIMIT) -> PolicyGraph:
    """The smallest graph that behaves as the policy does. Raises TooLargeError; custom checks are taken to pass."""
    compiled = CompiledPolicy(policy, opaque="open")
    states, moves = _explore(compiled, limit)
    verdicts = [compiled.permit(state) for state in states]
    group = _merge([(one.allowed, one.asks, one.forced, one.fault) for one in verdicts], moves)
    order: dict[int, int] = {}
    for number in group:
        order.setdefault(number, len(order))
    first = {order[number]: place for place, number in reversed(list(enumerate(group)))}
    edges: dict[tuple[int, int], list[str]] = {}
    for source in range(len(order)):
        for call, target in _told(moves[first[source]], group, group[first[source]]):
            edges.setdefault((source, order[target]), []).append(call)
    return PolicyGraph(
        tuple(verdicts[first[number]] for number in range(len(order))),
        tuple(Edge(source, target, tuple(calls)) for (source, target), calls in edges.items()),
        {state: order[number] for state, number in zip(states, group, strict=True)},
    )


Moves = Mapping[tuple[str, Outcome], int]


def _explore(compiled: CompiledPolicy, limit: int) -> tuple[list[int], list[Moves]]:
    """Every state, breadth first, with where each call leads."""
    states = [compiled.start()]
    number = {states[0]: 0}
    moves: list[Moves] = []
    for state in states:
        here: dict[tuple[str, Outcome], int] = {}
        permit = compiled.permit(state)
        for tool in permit.allowed if permit.fault is None else ():
            if tool == FINAL_ANSWER:
                continue
            for outcome in (Outcome.OK, Outcome.FAILED):
                after = compiled.step(state, tool, outcome)
                if after not in number:
                    if len(states) >= limit:
                        raise TooLargeError
                    number[after] = len(states)
                    states.append(after)
                here[tool, outcome] = number[after]
        moves.append(here)
    return states, moves


def _merge(kinds: Sequence[object], moves: Sequence[Moves]) -> list[int]:
    """Put states together that no sequence of calls can tell apart; a group is named by its number."""
    names: dict[object, int] = {}
    group = [names.setdefault(kind, len(names)) for kind in kinds]
    while True:
        names = {}
        keys = ((group[place], tuple(sorted((call, group[target]) for call, target in here.items()))) for place, here in enumerate(moves))
        finer = [names.setdefault(key, len(names)) for key in keys]
        if len(names) == len(set(group)):
            return group
        group = finer


def _told(moves: Moves, group: Sequence[int], here: int) -> Iterable[tuple[str, int]]:
    """The calls of a situation and where they lead; a failure only where it leads out of the situation."""
    for (tool, outcome), target in moves.items():
        if outcome is Outcome.OK:
            yield tool, group[target]
        elif group[target] != here:
            yield f"{tool}!failed", group[target]

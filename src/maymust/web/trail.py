"""Where a run is in the automaton of its policy."""

from __future__ import annotations

from typing import Any

from maymust.core.compiled import CompiledPolicy
from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.core.step import Outcome
from maymust.views.automaton import PolicyGraph, TooLargeError, policy_graph
from maymust.views.folded import FoldedGraph, Node, fold_graph, group_text

LIMIT = 1_500
"""How many states of a policy are looked at for its graph."""

KEPT = 600
"""How many situations a page holds; it draws those around the chosen step."""


class Trail:
    """The situations that a run has been in, and the graph around them. A policy that is too large is drawn as far as the run went."""

    def __init__(self, policy: Policy, *, limit: int = LIMIT) -> None:
        self._compiled = CompiledPolicy(policy, opaque="open")
        self._graph: PolicyGraph | None = None
        self._limit = limit
        try:
            self._graph = policy_graph(policy, limit=limit)
        except TooLargeError:
            self._number: dict[int, int] = {}
            self._ways: dict[tuple[int, int], dict[str, None]] = {}
            self._before: tuple[int, History] | None = None
        self._drawn: FoldedGraph | None = None
        self._on = 0

    def node(self, history: History) -> int | None:
        """The number of the situation after a history; None for one that no lawful run comes to."""
        state = self._compiled.state_of(history)
        if self._graph is not None:
            return self._graph.situations.get(state)
        number = self._number.setdefault(state, len(self._number))
        if self._before is not None and len(history) > len(self._before[1]):
            calls = history[len(self._before[1]) :]
            words = (f"{step.tool}" if step.outcome is Outcome.OK else f"{step.tool}!{step.outcome.value}" for step in calls)
            self._ways.setdefault((self._before[0], number), {})[", ".join(words)] = None
        self._before = number, history
        return number

    def graph(self, nodes: list[int | None]) -> dict[str, Any]:
        """What to draw for a run that has been in these situations."""
        trail = [number for number in nodes if number is not None]
        if self._graph is not None:
            missing = self._drawn is None or not set(trail[self._on :]) <= {node.number for node in self._drawn.nodes}
            if missing or self._drawn is None:
                self._drawn = fold_graph(self._graph, trail, most=KEPT)
            self._on = len(trail)
            return self._drawn.to_dict()
        return self._walked(trail).to_dict()

    def _walked(self, trail: list[int]) -> FoldedGraph:
        kept = set(list(dict.fromkeys(reversed(trail)))[:KEPT])
        stays = {source: tuple(calls) for (source, target), calls in self._ways.items() if source == target}
        nodes = tuple(Node(number, (f"{number + 1}",), _loop(stays.get(number, ()))) for number in sorted(kept))
        edges = tuple(
            (source, target, (group_text(tuple(calls)),))
            for (source, target), calls in self._ways.items()
            if source != target and source in kept and target in kept
        )
        note = f"The policy has more than {self._limit} states; what is drawn is the way of this run."
        return FoldedGraph(nodes, edges, left_out=len(set(trail)) - len(kept), note=note)


def _loop(calls: tuple[str, ...]) -> tuple[str, ...]:
    return (group_text(calls),) if calls else ()

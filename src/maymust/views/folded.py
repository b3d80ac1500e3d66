"""A policy's graph made small enough to look at: loops become words, tools that act alike are told together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maymust.views.automaton import PolicyGraph

MOST = 48
"""How many situations are drawn."""

_NAMED = 3
"""How many names a group of tools is told by."""


@dataclass(frozen=True, slots=True)
class Node:
    """A situation that is drawn.

    number     its number in the whole graph
    lines      what is written on it
    stays      calls that lead back to it
    may_stop   the run may end there
    is_stuck   there is no next step
    """

    number: int
    lines: tuple[str, ...]
    stays: tuple[str, ...] = ()
    may_stop: bool = False
    is_stuck: bool = False


@dataclass(frozen=True, slots=True)
class FoldedGraph:
    """What is drawn of a policy.

    edges     (from, to, calls), situations by their numbers, loops left out
    anywhere  calls that are free wherever no tool is forced, and change nothing: told once, drawn nowhere
    left_out  how many situations are not drawn
    note      what else to say of it, in a sentence
    """

    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int, tuple[str, ...]], ...]
    anywhere: tuple[str, ...] = ()
    left_out: int = 0
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "nodes": [
                {"id": node.number, "lines": list(node.lines), "stays": list(node.stays), "stop": node.may_stop, "stuck": node.is_stuck}
                for node in self.nodes
            ],
            "edges": [{"from": source, "to": target, "calls": list(calls)} for source, target, calls in self.edges],
            "anywhere": list(self.anywhere),
            "left_out": self.left_out,
            "note": self.note,
        }


def fold_graph(graph: PolicyGraph, trail: Sequence[int] = (), *, most: int = MOST) -> FoldedGraph:
    """Fold a graph. Where it has more than `most` situations, those nearest to the end of the trail are kept."""
    ways = _ways(graph)
    free = {number for number, here in enumerate(graph.verdicts) if here.fault is None and here.forced is None}
    anywhere = tuple(call for call, way in ways.items() if _is_idle(way, free))
    leading = {(edge.source, call) for edge in graph.edges if edge.source != edge.target for call in edge.calls}
    kept = _kept(graph, trail, most)
    between: dict[tuple[int, int], list[str]] = {}
    for calls, way in _alike(ways, anywhere):
        for source, target in sorted(way):
            if source in kept and target in kept:
                between.setdefault((source, target), []).append(group_text(calls))
    nodes = tuple(
        Node(
            number,
            _lines(graph, number, leading),
            tuple(between.get((number, number), ())),
            graph.may_stop(number),
            graph.is_stuck(number),
        )
        for number in sorted(kept)
    )
    edges = tuple((source, target, tuple(calls)) for (source, target), calls in between.items() if source != target)
    return FoldedGraph(nodes, edges, anywhere, len(graph.verdicts) - len(kept))


def group_text(calls: Sequence[str]) -> str:
    """Calls that act alike, in a few words."""
    if len(calls) <= _NAMED + 1:
        return ", ".join(calls)
    return f"{', '.join(calls[:_NAMED])} and {len(calls) - _NAMED} more"


def _ways(graph: PolicyGraph) -> dict[str, frozenset[tuple[int, int]]]:
    """Per call everything it does, in the order in which the calls first occur."""
    ways: dict[str, set[tuple[int, int]]] = {}
    for edge in graph.edges:
        for call in edge.calls:
            ways.setdefault(call, set()).add((edge.source, edge.target))
    return {call: frozenset(way) for call, way in ways.items()}


def _alike(ways: Mapping[str, frozenset[tuple[int, int]]], without: Iterable[str]) -> list[tuple[list[str], frozenset[tuple[int, int]]]]:
    """Calls that do the same everywhere, together."""
    left_out = set(without)
    groups: dict[frozenset[tuple[int, int]], list[str]] = {}
    for call, way in ways.items():
        if call not in left_out:
            groups.setdefault(way, []).append(call)
    return [(calls, way) for way, calls in groups.items()]


def _kept(graph: PolicyGraph, trail: Sequence[int], most: int) -> set[int]:
    """The start, the situations of the trail from its end on, and what lies around them."""
    if len(graph.verdicts) <= most:
        return set(range(len(graph.verdicts)))
    seeds = list(dict.fromkeys((*reversed(trail), 0)))[:most]
    after: dict[int, list[int]] = {}
    for edge in graph.edges:
        after.setdefault(edge.source, []).append(edge.target)
    kept = set(seeds)
    waiting = deque(seeds)
    while waiting and len(kept) < most:
        for target in after.get(waiting.popleft(), ()):
            if target not in kept and len(kept) < most:
                kept.add(target)
                waiting.append(target)
    return kept


def _is_idle(way: frozenset[tuple[int, int]], free: set[int]) -> bool:
    return bool(free) and all(source == target for source, target in way) and free <= {source for source, _ in way}


def _lines(graph: PolicyGraph, number: int, leading: set[tuple[int, str]]) -> tuple[str, ...]:
    """What leads on from a situation."""
    here = graph.verdicts[number]
    if here.fault is not None:
        return (here.fault.replace("_", " "),)
    if here.forced is not None:
        return (f"must {here.forced}",)
    on = [name for name in here.allowed if (number, name) in leading]
    return (group_text(on),) if on else ("nothing changes",)

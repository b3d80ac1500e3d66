"""Every state that can be reached from one, with distances and safe regions. Breadth first, up to a limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from maymust.core.guard import Guard, PendingAtom, StepAtom
from maymust.verify.automaton import Automaton
from maymust.verify.situation import Situation
from maymust.verify.witness import Event

Move = tuple[int, tuple[int, ...]]
"""A tool, and the states (by number) that a call of it may lead to; that of success first."""


class Graph:
    """States by number, in the order of their distance from the first one.

    complete  False when the limit was hit: then states are missing, and the last ones have no moves
    edges     number of moves, outcomes counted one by one
    """

    def __init__(self, automaton: Automaton, start: int, limit: int) -> None:
        self.automaton = automaton
        self.states: list[int] = [start]
        self.number: dict[int, int] = {start: 0}
        self.situations: list[Situation] = []
        self.moves: list[list[Move]] = []
        self.complete: bool = True
        self.edges: int = 0
        self.branches: bool = False
        """True when some call may lead to several states: the world has a say."""
        self._parents: list[tuple[int, Event] | None] = [None]
        self._explore(limit)

    def _explore(self, limit: int) -> None:
        automaton, states, number, parents = self.automaton, self.states, self.number, self._parents
        stand_in = stand_ins(automaton)
        place = 0
        while place < len(states):
            if len(states) > limit:
                self.complete = False
                return
            state = states[place]
            situation = automaton.situation(state)
            self.situations.append(situation)
            moves: list[Move] = []
            for tool in situation.tools:
                if stand_in[tool] != tool:
                    continue
                targets = []
                for event, after in automaton.targets(state, tool):
                    known = number.get(after)
                    if known is None:
                        known = number[after] = len(states)
                        states.append(after)
                        parents.append((place, event))
                    targets.append(known)
                self.edges += len(targets)
                if len(targets) > 1:
                    self.branches = self.branches or any(target != targets[0] for target in targets)
                moves.append((tool, tuple(targets)))
            self.moves.append(moves)
            place += 1

    def path(self, number: int) -> tuple[Event, ...]:
        """A shortest way to a state."""
        events = []
        step = self._parents[number]
        while step is not None:
            number, event = step
            events.append(event)
            step = self._parents[number]
        return tuple(reversed(events))

    def backwards(self) -> list[list[int]]:
        """Per state the states that have a move to it."""
        sources: list[list[int]] = [[] for _ in self.states]
        for number, moves in enumerate(self.moves):
            for _, targets in moves:
                for target in targets:
                    sources[target].append(number)
        return sources

    def leading_to(self, goals: Iterable[int], sources: Sequence[Sequence[int]]) -> dict[int, int]:
        """The states from which some goal can be reached, with the fewest calls that it takes."""
        known = dict.fromkeys(goals, 0)
        frontier = list(known)
        steps = 0
        while frontier:
            steps += 1
            found = []
            for number in frontier:
                for source in sources[number]:
                    if source not in known:
                        known[source] = steps
                        found.append(source)
            frontier = found
        return known

    def ends(self) -> Iterator[int]:
        """The states in which the run may end."""
        return (number for number, situation in enumerate(self.situations) if situation.may_stop)


def stand_ins(automaton: Automaton) -> tuple[int, ...]:
    """Per tool the one that is looked at in its place: tools that no rule speaks of, and that come back in the same ways, are alike."""
    spoken = {clause.place for clause in automaton.clauses} | set(automaton.asked)
    for _, guard in automaton.compiled.guards:
        spoken.update(automaton.place(name) for name in named_by(guard))
    spoken.update(place for one in automaton.opaque for place in (one.targets | (one.depends_on or frozenset())))
    world = automaton.world
    spoken.update(automaton.place(name) for name in world.loads)
    ways: dict[object, int] = {}
    stand_in = []
    for place, name in enumerate(automaton.tools[:-1]):
        loaded = name not in world.present
        way = place if place in spoken or loaded else (name in world.may_fail, name in world.may_be_denied)
        stand_in.append(ways.setdefault(way, place))
    return tuple(stand_in)


def named_by(guard: Guard) -> frozenset[str]:
    """Every tool that a guard names."""
    names = {guard.target}
    for atom in guard.atoms():
        if isinstance(atom, PendingAtom):
            names.update(atom.then)
        if not isinstance(atom, StepAtom):
            names.add(atom.tool)
    return frozenset(names)


class Regions:
    """How far it is to the end from each state of a complete graph, and where a supervisor can keep it reachable.

    distance    fewest steps to the end, the final answer counted, when the world is kind; absent where it cannot be reached
    safe        the same, with only such calls that leave the end reachable in this way whatever their outcome
    guaranteed  steps within which the end can be forced, whatever the outcomes
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.sources: list[list[int]] = graph.backwards()
        ends = list(graph.ends())
        self.distance: dict[int, int] = {number: steps + 1 for number, steps in graph.leading_to(ends, self.sources).items()}
        if graph.branches:
            self.safe: dict[int, int] = self._safe(ends)
            self.guaranteed: dict[int, int] = self._guaranteed(ends)
        else:
            self.safe = self.guaranteed = self.distance

    def _safe(self, ends: Sequence[int]) -> dict[int, int]:
        inside = set(self.distance)
        while True:
            known = dict.fromkeys((number for number in ends if number in inside), 1)
            frontier = list(known)
            steps = 1
            careful = {number: [set(targets) for _, targets in self.graph.moves[number] if inside.issuperset(targets)] for number in inside}
            while frontier:
                steps += 1
                found = []
                for number in frontier:
                    for source in self.sources[number]:
                        if source in inside and source not in known and any(number in targets for targets in careful[source]):
                            known[source] = steps
                            found.append(source)
                frontier = found
            if len(known) == len(inside):
                return known
            inside = set(known)

    def _guaranteed(self, ends: Sequence[int]) -> dict[int, int]:
        known = dict.fromkeys(ends, 1)
        frontier = set(known)
        steps = 1
        while frontier:
            steps += 1
            candidates = {source for number in frontier for source in self.sources[number] if source not in known}
            frontier = {number for number in candidates if any(known.keys() >= set(targets) for _, targets in self.graph.moves[number])}
            known |= dict.fromkeys(frontier, steps)
        return known

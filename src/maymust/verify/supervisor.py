"""Which calls to hold back so that a run can still end: the largest set of calls that never gets stuck (Ramadge and Wonham).

Tools are the model's choice and can be held back; outcomes are the world's and cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from maymust.core.history import History
from maymust.core.tool_set import Shelf
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.requirements.wording import listed
from maymust.verify.automaton import Automaton
from maymust.verify.explore import Graph, Regions, stand_ins
from maymust.verify.witness import Event

LIMIT = 50_000
"""How many states a supervisor looks at from where a run stands. Beyond it, it holds nothing back."""

SURE, SAFE, POSSIBLE, LOST = 3, 2, 1, 0
"""How good a state is: the end can be forced in the turns that are left; it stays reachable whatever the outcomes; it is reachable; not."""

_KEPT = 65536
_SMALL = 5_000


class Held(NamedTuple):
    """A tool that is held back, and why."""

    tool: str
    reason: str


class _Seat(NamedTuple):
    """Where a state lies: in which graph, and under which number."""

    graph: Graph
    regions: Regions
    number: int


class Supervisor:
    """Decides for any state of an automaton. Graphs are explored when a state is first asked about, and kept.

    max_turns  turns that a run has, None for no limit
    """

    def __init__(self, automaton: Automaton, *, max_turns: int | None = None, limit: int = LIMIT) -> None:
        self.automaton = automaton
        self.max_turns = max_turns
        self._limit = limit
        self._stand_in = stand_ins(automaton)
        self._seats: dict[int, _Seat | None] = {}
        self._answers = Shelf(_KEPT)
        self._ever: frozenset[str] | None = None

    def held_back(self, history: History) -> tuple[Held, ...]:
        """The tools that may be called by the rules after a history, and had better not be."""
        left = None if self.max_turns is None else max(self.max_turns - len(history), 0)
        key = (self.automaton.state_of(history), left)
        known: tuple[Held, ...] | None = self._answers.get(key)
        if known is None:
            known = self._answers.put(key, self._decide(*key))
        return known

    def never_holds(self, tool: str, left: int | None) -> bool:
        """True when the tool is held back in no state that can be reached, with at least so many turns left."""
        seat = self._seat(self.automaton.start)
        if seat is None:
            return False
        regions = seat.regions
        if left is not None and (len(regions.guaranteed) < len(regions.safe) or left <= max(regions.guaranteed.values(), default=0)):
            return False
        if self._ever is None:
            if len(seat.graph.states) > _SMALL:
                return False
            places = {place for number in range(len(seat.graph.states)) for place in self._held(seat._replace(number=number), None)}
            self._ever = frozenset(self.automaton.tools[place] for place in places)
        return tool not in self._ever

    def _seat(self, state: int) -> _Seat | None:
        """Where a state lies, None when there is too much to look at."""
        if state not in self._seats:
            graph = Graph(self.automaton, state, self._limit)
            if not graph.complete:
                self._seats[state] = None
                return None
            regions = Regions(graph)
            for number, reached in enumerate(graph.states):
                self._seats.setdefault(reached, _Seat(graph, regions, number))
        return self._seats[state]

    def _decide(self, state: int, left: int | None) -> tuple[Held, ...]:
        situation = self.automaton.situation(state)
        seat = self._seat(state) if situation.fault is None and situation.tools else None
        if seat is None:
            return ()
        return tuple(self._explained(seat, self._held(seat, left), left))

    def _held(self, seat: _Seat, left: int | None) -> list[int]:
        """The tools to hold back in a state."""
        situation = seat.graph.situations[seat.number]
        if situation.fault is not None or not situation.tools:
            return []
        after = None if left is None else left - 1
        grades = {tool: [_grade(seat, target, after) for target in targets] for tool, targets in seat.graph.moves[seat.number]}
        stopping = (SAFE if left is None else SURE) if situation.may_stop and left != 0 else LOST
        aim = max(stopping, *(min(of) for of in grades.values()))
        measure = min
        if aim == LOST:
            # Whatever is called, the world may spoil it: then at least leave it the chance not to.
            measure = max
            aim = max(max(of) for of in grades.values())
        return [tool for tool in situation.tools if measure(grades[self._stand_in[tool]]) < aim]

    def _explained(self, seat: _Seat, held: list[int], left: int | None) -> Iterator[Held]:
        names, state, forced = self.automaton.tools, seat.graph.states[seat.number], seat.graph.situations[seat.number].forced
        after = None if left is None else left - 1
        targets = dict(seat.graph.moves[seat.number])
        for tool in held:
            events = self.automaton.targets(state, tool)
            numbers = targets[self._stand_in[tool]]
            worst = min(range(len(events)), key=lambda index: _grade(seat, numbers[index], after))
            yield Held(names[tool], f"{names[tool]} waits: {self._why(seat, events[worst][0], numbers[worst], after)}")
        if forced in held:
            # Without the force the other tools would be open, which by the rules they are not.
            yield from (Held(name, f"{name} waits together with {names[forced]}") for name in names[:-1] if name != names[forced])

    def _why(self, seat: _Seat, event: Event, number: int, after: int | None) -> str:
        """What would be wrong after a call."""
        if_ = "" if event.outcome.value == "ok" else f"if it {'fails' if event.outcome.value == 'failed' else 'is denied'}, "
        owed = self._owed(seat, number)
        distance = seat.regions.distance.get(number)
        if distance is not None and after is not None and distance > after:
            need = f"{listed(owed)} {'is' if len(owed) == 1 else 'are'} still owed" if owed else "the end takes more"
            return f"{if_}{need}, and there would be {after} turn{'' if after == 1 else 's'} left, where {distance} are needed"
        if distance is not None:
            return f"{if_}whether the run can end would depend on luck"
        lost = [name for name in owed if not self._may_be_met(seat, number, name)]
        if len(lost) == 1:
            return f"{if_}{lost[0]} is still owed and would become impossible"
        if lost or owed:
            return f"{if_}{listed(lost or owed)} are still owed and would become impossible{'' if lost else ' together'}"
        return f"{if_}the end would become impossible"

    def _owed(self, seat: _Seat, number: int) -> list[str]:
        """The tools that have to be called before the end."""
        flags = self.automaton.flags(seat.graph.states[number])
        names: dict[str, None] = {}
        for (_, guard), clause in zip(self.automaton.compiled.guards, self.automaton.clauses, strict=True):
            if clause.bits.owes and not flags & clause.bits.owes:
                names[guard.target] = None
            for atom in guard.pending:
                if flags & self.automaton.compiled.flags.bits[atom]:
                    names[" or ".join(atom.then)] = None
            if guard.target == FINAL_ANSWER:
                bits = self.automaton.compiled.flags.bits
                missing = [group for group in guard.needs if group and not any(flags & bits[atom] for atom in group)]
                names.update(dict.fromkeys(" or ".join(atom.tool for atom in group if hasattr(atom, "tool")) for group in missing))
        return list(names)

    def _may_be_met(self, seat: _Seat, number: int, owed: str) -> bool:
        """Whether some way from a state leads to one where something is no longer owed."""
        graph, seen, waiting = seat.graph, {number}, [number]
        while waiting:
            here = waiting.pop()
            if owed not in self._owed(seat, here):
                return True
            for _, targets in graph.moves[here]:
                fresh = [target for target in targets if target not in seen]
                seen.update(fresh)
                waiting.extend(fresh)
        return False


def _grade(seat: _Seat, number: int, left: int | None) -> int:
    regions = seat.regions
    if left is None:
        return SAFE if number in regions.safe else POSSIBLE if number in regions.distance else LOST
    if regions.guaranteed.get(number, left + 1) <= left:
        return SURE
    if regions.safe.get(number, left + 1) <= left:
        return SAFE
    return POSSIBLE if regions.distance.get(number, left + 1) <= left else LOST

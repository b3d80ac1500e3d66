"""What rules make of a state, as sets of states: the same as `situation.Judge` says of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maymust.core.guard import Atom
from maymust.verify.automaton import Automaton


class SymbolicRules:
    """Sets of states.

    open       per tool those in which it may be called
    may_stop   in which the run may end
    conflict   in which something is a conflict
    dead_end   in which nothing may be called
    fault      in which there is no next step, for a force that cannot be met
    speaks     per rule those in which it says anything
    """

    def __init__(self, automaton: Automaton, bdd: Any, holds: Callable[[Atom], Any]) -> None:
        self._bdd = bdd
        self._automaton = automaton
        final = automaton.final
        closed = dict.fromkeys(range(final + 1), bdd.false)
        forces = dict.fromkeys(range(final + 1), bdd.false)
        self.speaks: dict[str, Any] = {}
        unmet, prevents, foreign = bdd.false, bdd.false, bdd.false
        for name, guard in automaton.compiled.guards:
            place = automaton.place(guard.target)
            own = self._any(map(holds, guard.bars))
            for group in guard.needs:
                own |= ~self._any(map(holds, group))
            forced = self._any(map(holds, guard.forces)) & ~own
            owed = self._any(map(holds, guard.pending))
            if guard.owes is not None:
                owed |= ~holds(guard.owes)
            if guard.unmet is not None:
                unmet |= holds(guard.unmet) & own
            self.speaks[name] = own | owed | self._any(map(holds, guard.forces))
            closed[place] |= own
            forces[place] |= forced
            owed |= forced if guard.force_prevents else bdd.false
            prevents |= owed
            # An answer that is forced overrides what other rules owe.
            foreign |= owed & ~forced if place == final else owed
        fault = unmet | self._any(forces[place] & closed[place] for place in forces)
        self.fault: Any = fault
        wins, forced = self._winners(forces)
        self.open: dict[int, Any] = {place: ~fault & ~closed[place] & (wins[place] | ~forced) for place in range(final)}
        self.may_stop: Any = ~fault & ~closed[final] & (~prevents | wins[final])
        self.conflict: Any = fault | self._ties(forces) | (wins[final] & foreign)
        self.dead_end: Any = ~fault & ~self.may_stop & ~self._any(self.open.values())

    def _any(self, sets: Any) -> Any:
        found = self._bdd.false
        for one in sets:
            found |= one
        return found

    def _winners(self, forces: dict[int, Any]) -> tuple[dict[int, Any], Any]:
        """Per tool the states in which it is the forced one, and those in which some tool is."""
        levels, before = self._automaton.levels, self._bdd.false
        wins = dict.fromkeys(forces, self._bdd.false)
        for place in sorted(forces, key=lambda place: (-levels.get(place, 0), place)):
            wins[place] = forces[place] & ~before
            before |= forces[place]
        return wins, before

    def _ties(self, forces: dict[int, Any]) -> Any:
        """The states in which two tools of the highest level are forced."""
        levels = self._automaton.levels
        found, higher = self._bdd.false, self._bdd.false
        for level in sorted({levels.get(place, 0) for place in forces}, reverse=True):
            once = twice = self._bdd.false
            for place, forced in forces.items():
                if levels.get(place, 0) == level:
                    twice |= once & forced
                    once |= forced
            found |= twice & ~higher
            higher |= once
        return found

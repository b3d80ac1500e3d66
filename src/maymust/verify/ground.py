"""What a supervisor stands on: how good the states around a run are."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from maymust.core.tool_spec import FINAL_ANSWER
from maymust.verify.actions import Actions, Way
from maymust.verify.automaton import Automaton
from maymust.verify.ending import Ending, OutOfBounds
from maymust.verify.explore import Graph, Regions
from maymust.verify.goal import Goal
from maymust.verify.interference import Interference
from maymust.verify.shortest import harmful

SURE, SAFE, POSSIBLE, LOST = 3, 2, 1, 0
"""How good a state is: the end can be forced in the turns that are left; it stays reachable whatever the outcomes; it is reachable; not."""


_NEAR = 500
"""How far to look for a shortest way; beyond, a short one has to do, and a call may be held back a little too early."""

_PLANS = 4
"""How many of the last plans are tried before a new one is made."""


class Ground(Protocol):
    """Answers about the states that can be reached from some state on."""

    def grade(self, state: int, left: int | None) -> int:
        """How good a state is, with so many turns left (None: no limit)."""
        ...

    def distance(self, state: int) -> int | None:
        """Fewest steps to the end, None when it is out of reach."""
        ...

    def may_be_met(self, state: int, owed: str) -> bool:
        """Whether what is owed can still be called, when nothing else mattered."""
        ...

    def is_harmless(self, tool: int, left: int | None) -> bool:
        """True when a call of the tool makes no state worse, with at least so many turns left. False proves nothing."""
        ...


def grade_of(left: int | None, surely: int | None, safely: int | None, possibly: int | None) -> int:
    """The grade of a state from three distances to the end: forced whatever the outcomes, kept reachable, reachable."""
    if left is None:
        return SAFE if safely is not None else POSSIBLE if possibly is not None else LOST
    for grade, steps in ((SURE, surely), (SAFE, safely), (POSSIBLE, possibly)):
        if steps is not None and steps <= left:
            return grade
    return LOST


def debts_of(automaton: Automaton, state: int) -> list[str]:
    """What has to be called before the end: names of tools, `a or b` where one of several will do."""
    flags, bits = automaton.flags(state), automaton.compiled.flags.bits
    names: dict[str, None] = {}
    for (_, guard), clause in zip(automaton.compiled.guards, automaton.clauses, strict=True):
        if clause.bits.owes and not flags & clause.bits.owes:
            names[guard.target] = None
        names.update(dict.fromkeys(" or ".join(atom.then) for atom in guard.pending if flags & bits[atom]))
        if guard.target == FINAL_ANSWER:
            missing = (group for group in guard.needs if group and not any(flags & bits[atom] for atom in group))
            names.update(dict.fromkeys(" or ".join(getattr(atom, "tool", "") for atom in group) for group in missing))
    return list(names)


class Explored:
    """Everything that can be reached was looked at."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._regions = Regions(graph)
        self._worst = max(self._regions.guaranteed.values(), default=0)
        self._is_sure = len(self._regions.guaranteed) == len(self._regions.safe)
        self._harm: set[int] | None = None

    def grade(self, state: int, left: int | None) -> int:
        """Read off the regions."""
        number, regions = self._graph.number[state], self._regions
        return grade_of(left, regions.guaranteed.get(number), regions.safe.get(number), regions.distance.get(number))

    def distance(self, state: int) -> int | None:
        """Read off the regions."""
        return self._regions.distance.get(self._graph.number[state])

    def may_be_met(self, state: int, owed: str) -> bool:
        """Look for a state in which it is no longer owed."""
        graph, start = self._graph, self._graph.number[state]
        seen, waiting = {start}, [start]
        while waiting:
            here = waiting.pop()
            if owed not in debts_of(graph.automaton, graph.states[here]):
                return True
            fresh = {target for _, targets in graph.moves[here] for target in targets} - seen
            seen |= fresh
            waiting.extend(fresh)
        return False

    def is_harmless(self, tool: int, left: int | None) -> bool:
        """Compare each state with those that a call may lead to."""
        if left is not None and (not self._is_sure or left <= self._worst):
            return False
        if self._harm is None:
            safe = self._regions.safe
            self._harm = {
                place
                for number, moves in enumerate(self._graph.moves)
                if number in safe
                for place, targets in moves
                if any(target not in safe for target in targets)
            }
        return tool not in self._harm


class Asked:
    """There is too much to look at: each state is asked about by itself. Outcomes other than success must change nothing.

    Raises OutOfBounds where even that is too much.
    """

    def __init__(self, automaton: Automaton, interference: Interference, limit: int) -> None:
        self._automaton = automaton
        self._limit = limit
        self._ending = Ending(Actions(automaton, interference), limit)
        self._goal = Goal(automaton, interference, limit, near=_NEAR)
        world = automaton.world
        self._unsure = frozenset(automaton.place(name) for name in world.may_fail | world.may_be_denied)
        self._sure_goal = Goal(automaton, interference, limit, avoid=self._unsure, near=_NEAR) if self._unsure else self._goal
        self._plans: deque[Way] = deque(maxlen=_PLANS)
        self._harmful = harmful(automaton, interference)
        self._distances: dict[tuple[int, bool], int | None] = {}

    def grade(self, state: int, left: int | None) -> int:
        """See whether a plan made before still leads to the end; else ask whether it is reachable, and how far it is."""
        if self._follows(state, left):
            return SAFE if left is None else SURE
        if left is not None and self._goal.at_least(state) >= left:
            return LOST
        if not self._ending.can_end_from(state):
            return LOST
        if left is None:
            return SAFE
        steps = self.distance(state)
        return grade_of(left, self._steps(state, sure=True), steps, steps)

    def distance(self, state: int) -> int | None:
        """Go for the end."""
        return self._steps(state, sure=False)

    def _steps(self, state: int, *, sure: bool) -> int | None:
        key = (state, sure and self._sure_goal is not self._goal)
        if key not in self._distances:
            goal = self._sure_goal if sure else self._goal
            # Going for an end that is out of reach would mean to look everywhere.
            way = goal.way(state) if self._ending.can_end_from(state) else None
            self._distances[key] = None if way is None else len(way) + 1
            if way is not None and (sure or self._sure_goal is self._goal):
                self._plans.appendleft(way)
        return self._distances[key]

    def _follows(self, state: int, left: int | None) -> bool:
        """Whether one of the last plans, without what it needs no more and with what is forced, leads to the end in time."""
        return any(self._follow(plan, state, left) for plan in self._plans)

    def _follow(self, plan: Way, state: int, left: int | None) -> bool:
        automaton, steps, at = self._automaton, 0, 0
        while True:
            situation = automaton.situation(state)
            if situation.may_stop:
                return left is None or steps < left
            if situation.fault is not None or (left is not None and steps >= left) or steps > 2 * len(plan):
                return False
            tool = situation.forced
            while tool is None:
                if at == len(plan):
                    return False
                place, at = automaton.place(plan[at].tool), at + 1
                if place in situation.tools:
                    tool = place
            if tool in self._unsure:
                return False
            state, steps = automaton.step(state, tool), steps + 1

    def may_be_met(self, state: int, owed: str) -> bool:
        """See whether some tool can be called that would meet it."""
        possible = self._ending.possible(self._automaton.settled(state))
        return any(possible >> self._automaton.place(name) & 1 for name in owed.split(" or ") if name != FINAL_ANSWER)

    def is_harmless(self, tool: int, left: int | None) -> bool:
        """Go by what the rules say of the tool."""
        return left is None and self._automaton.compiled.is_past(self._automaton.start) and not self._harmful >> tool & 1


def ground_of(automaton: Automaton, interference: Interference, state: int, *, small: int, limit: int) -> tuple[Ground, list[int]] | None:
    """Look around from a state, or prepare to ask; with the states that are known then. None when there is too much for both."""
    graph = Graph(automaton, state, min(small, limit))
    if not graph.complete and limit > small:
        if interference.why_not is None and not automaton.world_has_a_say:
            return Asked(automaton, interference, limit), []
        graph = Graph(automaton, state, limit)
    return (Explored(graph), graph.states) if graph.complete else None


__all__ = ["LOST", "SAFE", "SURE", "Ground", "OutOfBounds", "debts_of", "ground_of"]

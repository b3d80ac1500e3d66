"""The shortest run that ends, found by going for the end (A*) instead of looking everywhere."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count

from maymust.core.guard import CountedAtom, LastAtom, RecentAtom, StepAtom
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.verify.actions import Actions, Way
from maymust.verify.automaton import Automaton
from maymust.verify.ending import OutOfBounds
from maymust.verify.explore import stand_ins
from maymust.verify.interference import Interference
from maymust.verify.stubborn import Stubborn
from maymust.verify.witness import Event

NEAR = 10_000
"""How many states are looked at one by one before orders of calls are left out, at the price of a way that need not be shortest."""

_END = -1


class Goal:
    """Shortest ways to the end.

    avoid    tools that must not be called
    failing  tools whose calls never succeed
    near     how many states to look at one by one, see `NEAR`
    exact    False when the last way found need not be a shortest one
    looked   how many states were looked at
    needed   names of tools that have to succeed in any run that ends, by what the rules say one by one
    """

    def __init__(
        self,
        automaton: Automaton,
        interference: Interference,
        limit: int,
        *,
        avoid: frozenset[int] = frozenset(),
        failing: frozenset[int] = frozenset(),
        near: int = NEAR,
    ) -> None:
        self.automaton = automaton
        self.exact: bool = True
        self.looked: int = 0
        self._limit = limit
        self._near = near
        self._avoid = avoid
        self._failing = failing
        self._spacer = interference.spacer
        self._guards = [guard for _, guard in automaton.compiled.guards]
        self._actions = Actions(automaton, interference, closed=failing, avoid=avoid)
        self._stubborn = Stubborn(self._actions)
        self._stand_in = stand_ins(automaton)
        names = useful_names(automaton, interference)
        self._waits = any(isinstance(atom, LastAtom | RecentAtom) for guard in self._guards for atom in guard.bars if guard.target in names)
        self._useful = fillers(automaton, interference, names)
        if interference.spacer in avoid | failing:
            # Then others have to let time pass in its place.
            self._useful = (1 << automaton.final) - 1
        overridden = bool(interference.overriders) or any(
            guard.target == FINAL_ANSWER and any(isinstance(atom, StepAtom) for atom in guard.forces) for guard in self._guards
        )
        needed = {} if overridden else self._read_needed()
        may_fail = automaton.world.may_fail
        self.needed: frozenset[str] = frozenset(tool for tool, (failures, _) in needed.items() if not failures or tool not in may_fail)
        self._fields = tuple((*automaton.compiled.field_of(tool, failures), times) for tool, (failures, times) in needed.items())

    def _read_needed(self) -> dict[str, tuple[bool, int]]:
        """How often each tool has to be counted at least in any run that ends, and whether failures count."""
        needed: dict[str, tuple[bool, int]] = {}
        waiting: list[CountedAtom] = [guard.owes for guard in self._guards if guard.owes is not None and guard.target != FINAL_ANSWER]
        waiting += self._prerequisites(FINAL_ANSWER)
        while waiting:
            atom = waiting.pop()
            known = needed.get(atom.tool)
            if known is None:
                waiting.extend(self._prerequisites(atom.tool))
            # Two ways of counting one tool are not added up; what only success counts for says more.
            if known is None or (known[0], -known[1]) > (atom.failures, -atom.times):
                needed[atom.tool] = (atom.failures, atom.times)
        return needed

    def _prerequisites(self, target: str) -> list[CountedAtom]:
        groups = [group for guard in self._guards if guard.target == target for group in guard.needs]
        return [group[0] for group in groups if len(group) == 1 and isinstance(group[0], CountedAtom)]

    def at_least(self, state: int) -> int:
        """A number of calls that no run from a state can do with less of."""
        missing = 0
        for shift, mask, times in self._fields:
            lacking = times - (state >> shift & mask)
            if lacking > 0:
                missing += lacking
        return missing

    def way(self, start: int) -> Way | None:
        """A shortest way to a state in which the run may end; None when there is none. Raises OutOfBounds."""
        self.exact = True
        if not self._waits:
            return self._search(start, self._limit, settling=True)
        try:
            return self._search(start, min(self._limit, self._near), settling=False)
        except OutOfBounds:
            self.exact = False
            way = self._search(start, self._limit, settling=True)
            return None if way is None else realized(self.automaton, self._spacer, way)

    def _search(self, start: int, limit: int, *, settling: bool) -> Way | None:
        """A*. With `settling`, states are settled after each action, and orders that make no difference are left out."""
        tick = count()
        best = {start: 0}
        parents: dict[int, tuple[int, Way]] = {}
        heap: list[tuple[int, int, int, int, int, Way]] = [(self.at_least(start), 0, next(tick), start, start, ())]
        looked = 0
        while heap:
            _, depth, _, state, before, last = heapq.heappop(heap)
            depth = -depth
            if state == _END:
                return (*_path(parents, before), *last)
            if depth > best[state]:
                continue
            if self.automaton.situation(state).may_stop:
                return _path(parents, state)
            looked += 1
            self.looked += 1
            if looked > limit:
                raise OutOfBounds
            for after, way in self._next(state) if settling else self._next_plain(state):
                reached = depth + len(way)
                if after == _END:
                    heapq.heappush(heap, (reached, -reached, next(tick), _END, state, way))
                elif reached < best.get(after, reached + 1):
                    best[after] = reached
                    parents[after] = (state, way)
                    # Of equally promising states the one that is further on goes first.
                    heapq.heappush(heap, (reached + self.at_least(after), -reached, next(tick), after, state, way))
        return None

    def _next_plain(self, state: int) -> Iterator[tuple[int, Way]]:
        """Every useful call, one by one."""
        automaton = self.automaton
        situation = automaton.situation(state)
        # As long as a step is to come at which something is forced, any call may change what happens there.
        all_ = situation.forced is not None or not automaton.compiled.is_past(state)
        for tool in situation.tools:
            if tool in self._avoid or self._stand_in[tool] != tool or not (all_ or self._useful >> tool & 1):
                continue
            for event, after in automaton.targets(state, tool):
                if not (tool in self._failing and event.outcome is Outcome.OK):
                    yield after, (event,)

    def _next(self, state: int) -> Iterator[tuple[int, Way]]:
        """Actions in settled states, and every call as long as a step is to come at which something is forced."""
        automaton = self.automaton
        if automaton.compiled.is_past(state):
            is_settled = state == automaton.settled(state)
            for one in self._stubborn.towards_end(state) if is_settled else [self._actions.from_any(state)]:
                yield from one.states.items()
                if one.ends is not None:
                    yield _END, one.ends
            return
        yield from self._next_plain(state)


def _path(parents: dict[int, tuple[int, Way]], state: int) -> Way:
    parts = []
    while state in parents:
        state, way = parents[state]
        parts.append(way)
    return tuple(event for way in reversed(parts) for event in way)


def realized(automaton: Automaton, spacer: int | None, way: Way) -> Way:
    """A way over settled states, with the calls in between that only let time pass."""
    state, events = automaton.start, list[Event]()
    for event in way:
        place = automaton.place(event.tool)
        for _ in range(64):
            if spacer is None or place in automaton.situation(state).tools:
                break
            events.append(automaton.events(spacer)[0])
            state = automaton.step(state, spacer)
        events.append(event)
        state = automaton.step(state, place, event.outcome)
    return tuple(events)


def useful_names(automaton: Automaton, interference: Interference) -> set[str]:
    """The tools that can bring the end nearer, and the final answer."""
    guards = [guard for _, guard in automaton.compiled.guards]
    names = {guard.owes.tool for guard in guards if guard.owes is not None} | {FINAL_ANSWER}
    # From where it is asked, something may be owed already.
    names |= {name for guard in guards for atom in guard.pending for name in atom.then}
    # What is forced at a step has to be open by then, or the run breaks off.
    names |= {guard.target for guard in guards if any(isinstance(atom, StepAtom) for atom in guard.forces)}
    names |= {automaton.tools[place] for place in range(automaton.final) if interference.overriders >> place & 1}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        for guard in guards:
            more: set[str] = set()
            if guard.target == name:
                more = {atom.tool for group in guard.needs for atom in group if isinstance(atom, CountedAtom)}
            # What a call forces counts as well, also where it was forced itself.
            if any(isinstance(atom, LastAtom) and atom.tool == name for atom in guard.forces):
                more.add(guard.target)
                # A force that lapses saves a call.
                more |= {atom.tool for atom in guard.bars if isinstance(atom, CountedAtom)}
            waiting.extend(more - names)
            names |= more
    return names


def fillers(automaton: Automaton, interference: Interference, names: set[str]) -> int:
    """Some tools as bits, and with them what may have to be called only so that time passes."""
    guards = [guard for _, guard in automaton.compiled.guards]
    bits = sum(1 << automaton.place(name) for name in names if name != FINAL_ANSWER)
    if any(isinstance(atom, LastAtom | RecentAtom) for guard in guards for atom in guard.bars if guard.target in names):
        return bits | (1 << interference.spacer) if interference.spacer is not None else (1 << automaton.final) - 1
    return bits

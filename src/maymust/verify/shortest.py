"""Shortest ways to what a sweep has found. Only calls that can do harm, or make harm possible, are looked at."""

from __future__ import annotations

from maymust.core.guard import CountedAtom, LastAtom
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.verify.actions import Way
from maymust.verify.automaton import Automaton
from maymust.verify.ending import OutOfBounds
from maymust.verify.explore import stand_ins
from maymust.verify.goal import fillers, realized
from maymust.verify.interference import Interference
from maymust.verify.situation import Note
from maymust.verify.sweep import NoteKey, Sweep, key_of
from maymust.verify.witness import Event


def harmful(automaton: Automaton, interference: Interference) -> int:
    """The tools that a shortest way to something bad may be made of, as bits."""
    guards = [guard for _, guard in automaton.compiled.guards]
    names: set[str] = set()
    forced = {guard.target for guard in guards if guard.forces}
    for guard in guards:
        for atom in guard.bars:
            if isinstance(atom, CountedAtom) and (atom.tool != guard.target or _own_limit_matters(automaton, interference, atom, forced)):
                names.add(atom.tool)
        names.update(atom.tool for atom in guard.forces if isinstance(atom, LastAtom))
        names.update(atom.tool for atom in guard.pending)
    names.update(automaton.tools[place] for place in automaton.remembered)
    names |= forced
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        for guard in guards:
            if guard.target == name:
                more = {atom.tool for group in guard.needs for atom in group if isinstance(atom, CountedAtom)} - names
                names |= more
                waiting.extend(more)
    return fillers(automaton, interference, names - {FINAL_ANSWER})


def _own_limit_matters(automaton: Automaton, interference: Interference, atom: CountedAtom, forced: set[str]) -> bool:
    """Whether it can do harm that a tool has used up its own limit."""
    answers = {name for _, guard in automaton.compiled.guards for owed in guard.pending for name in owed.then}
    if interference.spacer is None or atom.tool in forced or atom.tool in automaton.world.may_fail or atom.tool in answers:
        return True
    wanted = [
        other.times
        for _, guard in automaton.compiled.guards
        for other in (*([guard.owes] if guard.owes is not None else ()), *(one for group in guard.needs for one in group))
        if isinstance(other, CountedAtom) and other.tool == atom.tool
    ]
    return any(times > atom.times for times in wanted)


class Shortest:
    """Looks breadth first for everything a sweep has found, and takes the sweep's own way for what is too far away.

    looked  how many states were looked at
    """

    def __init__(self, sweep: Sweep, interference: Interference, limit: int) -> None:
        self.automaton: Automaton = sweep.automaton
        self.looked: int = 0
        self._sweep = sweep
        self._limit = limit
        self._tools = harmful(sweep.automaton, interference)
        self.notes: dict[NoteKey, tuple[Note, Way]] = {}
        self.doomed: Way | None = None
        self.dead_end: Way | None = None
        self._search()
        for key, (note, way) in sweep.notes.items():
            if key not in self.notes:
                self.notes[key] = (note, realized(self.automaton, interference.spacer, way))
        if sweep.doomed is not None and self.doomed is None:
            self.doomed = realized(self.automaton, interference.spacer, sweep.doomed)
        if sweep.dead_end is not None and self.dead_end is None:
            self.dead_end = realized(self.automaton, interference.spacer, sweep.dead_end)

    def _is_done(self) -> bool:
        sweep = self._sweep
        return (
            self.notes.keys() >= sweep.notes.keys()
            and (sweep.doomed is None or self.doomed is not None)
            and (sweep.dead_end is None or self.dead_end is not None)
        )

    def _search(self) -> None:
        try:
            self._look_around()
        except OutOfBounds:
            return

    def _look_around(self) -> None:
        automaton, sweep = self.automaton, self._sweep
        stand_in = stand_ins(automaton)
        parents: dict[int, tuple[int, Event]] = {}
        seen, waiting = {automaton.start}, [automaton.start]
        for state in waiting:
            if self._is_done() or self.looked >= self._limit:
                return
            self.looked += 1
            situation = automaton.situation(state)
            for note in situation.notes:
                key = key_of(note)
                if key not in self.notes:
                    self.notes[key] = (note, path_to(parents, state))
            if situation.fault == "dead_end" and self.dead_end is None:
                self.dead_end = path_to(parents, state)
            if sweep.doomed is not None and self.doomed is None and not sweep.can_end(state):
                self.doomed = path_to(parents, state)
            open_ = situation.forced is not None or not automaton.compiled.is_past(state)
            for tool in situation.tools:
                if stand_in[tool] != tool or not (open_ or self._tools >> tool & 1):
                    continue
                for event, after in automaton.targets(state, tool):
                    if after not in seen:
                        seen.add(after)
                        parents[after] = (state, event)
                        waiting.append(after)


def path_to(parents: dict[int, tuple[int, Event]], state: int) -> Way:
    """The way that led to a state."""
    events = []
    while state in parents:
        state, event = parents[state]
        events.append(event)
    return tuple(reversed(events))

"""A sweep over the reduced states of a policy: what can be reached at all, with some way there."""

from __future__ import annotations

from collections.abc import Iterable

from maymust.verify.actions import Actions, Way
from maymust.verify.automaton import Automaton
from maymust.verify.ending import Ending, OutOfBounds
from maymust.verify.explore import stand_ins
from maymust.verify.interference import Interference
from maymust.verify.situation import Note, Situation
from maymust.verify.stubborn import Stubborn

NoteKey = tuple[str, tuple[str, ...], tuple[str, ...]]


def key_of(note: Note) -> NoteKey:
    """What makes a note a finding of its own."""
    return note.kind, note.tools, note.rules


class Sweep:
    """Everything that can be reached, by one representative each.

    notes         what is remarkable, with a way there
    doomed        a way to a state from which no end can be reached, None when there is none
    dead_end      a way to a state in which nothing may be called, None when there is none
    circle        a way into a state that goes on for ever without an end, a dead end or a conflict, as far as one was met
    looked        how many states were looked at, those of the question whether a run can end among them
    callable      tools that can be called
    silent        places (in the automaton's clauses) of rules that never spoke

    complete      False when the limit was hit: what was found is there, and there may be more

    Raises OutOfBounds when the limit does not even do for the steps at which something is forced.
    """

    def __init__(self, automaton: Automaton, interference: Interference, limit: int) -> None:
        self.automaton = automaton
        self.looked: int = 0
        self._actions = Actions(automaton, interference, watch=self._look)
        self._stubborn = Stubborn(self._actions)
        # Questions are asked with actions of their own, so that what they come across is not noted with a wrong way.
        self._ending = Ending(Actions(automaton, interference), limit)
        self._noted: set[Situation] = set()
        self.notes: dict[NoteKey, tuple[Note, Way]] = {}
        self.doomed: Way | None = None
        self.dead_end: Way | None = None
        self.circle: Way | None = None
        self.callable: set[int] = set()
        self.silent: set[int] = set(range(len(automaton.clauses)))
        self.early: dict[int, Way] = {}
        """States before the last step that some rule asks for: all of them."""
        self._limit = limit
        self._guards = [guard for _, guard in automaton.compiled.guards]
        self._ways: dict[int, tuple[int, Way]] = {}
        self._triggers = interference.triggers
        self._unsettled = any(guard.pending for guard in self._guards) or bool(interference.overriders)
        self._unseen = (1 << automaton.final) - 1
        self.complete: bool = True
        roots = self._go_early()
        try:
            self._go(roots)
        except OutOfBounds:
            self.complete = False

    # --- looking ---
    def _look(self, state: int, start: int, way: Way) -> None:
        """Take note of what is remarkable about a state, which lies on a way from a settled one (-1: from the start)."""
        situation = self.automaton.situation(state)
        if situation in self._noted:
            return
        self._noted.add(situation)
        for note in situation.notes:
            key = key_of(note)
            if key not in self.notes:
                self.notes[key] = (note, (*self.way_to(start), *way))
        if situation.fault is None:
            for tool in situation.tools:
                if self._unseen >> tool & 1:
                    self._unseen &= ~(1 << tool)
                    self.callable.add(tool)
        if self.silent:
            flags = self.automaton.flags(state)
            self.silent = {number for number in self.silent if not self.automaton.clauses[number].speaks(flags)}

    @property
    def moves(self) -> int:
        """How many calls were looked at."""
        return self._actions.moves + self._ending.actions.moves

    def way_to(self, state: int) -> Way:
        """A way to a state that was met. Steps between forced chains may be missing, see `Shortest.realized`."""
        parts = []
        while state in self._ways:
            before, way = self._ways[state]
            parts.append(way)
            if before == -1:
                break
            state = before
        return tuple(event for part in reversed(parts) for event in part)

    # --- before the last step that some rule asks for ---
    def _go_early(self) -> list[int]:
        """Look at every state in which a step that some rule asks for is still to come; return the settled ones after."""
        automaton = self.automaton
        self.early = {automaton.start: ()}
        after: dict[int, tuple[int, Way]] = {}
        waiting = [automaton.start]
        if automaton.compiled.is_past(automaton.start):
            self.early = {}
            waiting, after = [], {automaton.start: (-1, ())}
        stand_in = stand_ins(automaton)
        for state in waiting:
            if len(waiting) > self._limit:
                raise OutOfBounds
            way = self.early[state]
            self._look(state, -1, way)
            situation = automaton.situation(state)
            if situation.fault == "dead_end":
                self.dead_end = self.dead_end if self.dead_end is not None else way
            if situation.fault is not None and self.doomed is None:
                self.doomed = way
            for tool in situation.tools:
                if stand_in[tool] != tool:
                    continue
                for event, target in automaton.targets(state, tool):
                    self._actions.moves += 1
                    here = (*way, event)
                    if automaton.compiled.is_past(target):
                        after.setdefault(target, (-1, here))
                    elif target not in self.early:
                        self.early[target] = here
                        waiting.append(target)
        self.looked += len(self.early)
        roots = self._settle(after)
        if self.doomed is None:
            self.doomed = next((way for state, way in self.early.items() if not self.can_end(state)), None)
        return roots

    def _settle(self, raw: dict[int, tuple[int, Way]]) -> list[int]:
        roots: dict[int, None] = {}
        for state, (_, way) in raw.items():
            self._look(state, -1, way)
            self._ways[state] = (-1, way)
            outcomes = self._actions.from_any(state)
            if outcomes.stuck is not None:
                self._found_stuck(state, (*way, *outcomes.stuck), outcomes.faulty)
            for settled, more in outcomes.states.items():
                self._ways.setdefault(settled, (-1, (*way, *more)))
                roots[settled] = None
        return list(roots)

    def _found_stuck(self, state: int, way: Way, faulty: bool) -> None:
        self.doomed = self.doomed if self.doomed is not None else way
        if not faulty and self.circle is None:
            self.circle = way
        if self.automaton.situation(state).fault == "dead_end" and self.dead_end is None:
            self.dead_end = way

    def can_end(self, state: int) -> bool:
        """Whether some way leads from any state of the automaton to one in which the run may end."""
        return self._ending.can_end_from(state)

    # --- after it ---
    def _go(self, roots: list[int]) -> None:
        seen, waiting = set(roots), list(roots)
        while waiting:
            state = waiting.pop()
            self.looked += 1
            if self.looked > self._limit:
                raise OutOfBounds
            self._look(state, state, ())
            self._look_at_forces(state)
            changes = False
            for outcomes in self._stubborn.successors(state, self._unseen):
                changes = changes or bool(outcomes.states)
                for after, way in outcomes.states.items():
                    if after not in seen:
                        seen.add(after)
                        self._ways[after] = (state, way)
                        waiting.append(after)
            if not changes:
                self._look_at_end(state)

    def _look_at_end(self, state: int) -> None:
        """Nothing that counts changes any more: can the run end, whatever happens from here?"""
        situation = self.automaton.situation(state)
        if situation.fault == "dead_end":
            way = self.way_to(state)
            self.dead_end = self.dead_end if self.dead_end is not None else way
            self.doomed = self.doomed if self.doomed is not None else way
        elif self.doomed is None or self.circle is None:
            if not self._unsettled and situation.may_stop:
                return
            around = dict(self._around(state))
            lost = next((raw for raw in around if not self.can_end(raw)), None)
            if lost is None:
                return
            here = (*self.way_to(state), *around[lost])
            self.doomed = self.doomed if self.doomed is not None else here
            if self.circle is None and all(self.automaton.situation(raw).fault is None for raw in around):
                self.circle = here

    def _look_at_forces(self, state: int) -> None:
        """See what is forced after each call that is possible, also where that changes nothing."""
        for action in self.automaton.situation(state).tools:
            if self._triggers >> action & 1:
                outcomes = self._actions.of(state, action)
                if outcomes.stuck is not None:
                    here = (*self.way_to(state), *outcomes.stuck)
                    self.doomed = self.doomed if self.doomed is not None else here
                    if not outcomes.faulty and self.circle is None:
                        self.circle = here

    def _around(self, state: int) -> Iterable[tuple[int, Way]]:
        """Every state that can be reached from one, which differ in what the last calls were and in what is pending."""
        seen: dict[int, Way] = {state: ()}
        waiting = [state]
        for here in waiting:
            self.looked += 1
            if self.looked > self._limit:
                raise OutOfBounds
            yield here, seen[here]
            for tool in self.automaton.situation(here).tools:
                for event, after in self.automaton.targets(here, tool):
                    if after not in seen:
                        seen[after] = (*seen[here], event)
                        waiting.append(after)

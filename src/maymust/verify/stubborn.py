"""Stubborn sets: of all actions that are possible in a state, enough that no end is lost (Valmari; Godefroid).

With a possible action, a set holds every action whose order with it matters; with one that is not possible, everything one of which
has to come before it can be. Then what lies outside of the set can wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from maymust.core.guard import CountedAtom
from maymust.verify.actions import Actions, Outcomes
from maymust.verify.automaton import Automaton
from maymust.verify.interference import Interference


class Stubborn:
    """Chooses actions. Actions are bits at the places of their tools; the final answer takes part where the goal is to end."""

    def __init__(self, actions: Actions) -> None:
        self.actions = actions
        self.automaton: Automaton = actions.automaton
        self.interference: Interference = actions.interference
        self._tools = range(self.automaton.final)
        self._needs = self._read_needs()
        self._debts = self._read_debts()

    def _read_needs(self) -> list[tuple[tuple[int, int], ...]]:
        """Per tool what has to have happened: (flags of which one is needed, the actions that may set one)."""
        bits, writers, place = self.automaton.compiled.flags.bits, self.interference.writers, self.automaton.place
        needs: list[list[tuple[int, int]]] = [[] for _ in range(self.automaton.final + 1)]
        for _, guard in self.automaton.compiled.guards:
            for group in guard.needs:
                flags = actions = 0
                for atom in group:
                    assert isinstance(atom, CountedAtom)
                    flags |= bits[atom]
                    actions |= writers[place(atom.tool)]
                needs[place(guard.target)].append((flags, actions))
        return [tuple(groups) for groups in needs]

    def _read_debts(self) -> tuple[tuple[int, int, int], ...]:
        """What may be owed: (flag, the value it has when it is owed, the actions that may settle it)."""
        bits, writers, place = self.automaton.compiled.flags.bits, self.interference.writers, self.automaton.place
        debts = []
        for _, guard in self.automaton.compiled.guards:
            if guard.owes is not None:
                target = place(guard.target)
                debts.append((bits[guard.owes], 0, writers[target] if target != self.automaton.final else 0))
            for atom in guard.pending:
                answers = 0
                for name in atom.then:
                    answers |= writers[place(name)]
                debts.append((bits[atom], bits[atom], answers))
        return tuple(debts)

    def successors(self, state: int, unseen: int = 0) -> list[Outcomes]:
        """What may come of enough actions that no final state is lost; nothing when nothing that counts changes any more.

        unseen  tools of which it is still to be found out whether they can be called
        """
        enabled, live, relevant = self._sort(state, goal=False)
        idle = 0
        for chosen in self._choices(state, enabled, live, relevant | unseen):
            found = []
            for action in self._tools:
                if chosen & live & ~idle & 1 << action:
                    outcomes = self.actions.of(state, action)
                    states = {after: way for after, way in outcomes.states.items() if self.actions.is_progress(state, after)}
                    if states:
                        found.append(Outcomes(states, outcomes.ends, outcomes.stuck, outcomes.faulty))
                    else:
                        idle |= 1 << action
            if found:
                return found
        return []

    def towards_end(self, state: int) -> list[Outcomes]:
        """What may come of enough actions that no shortest way to the end is lost. Nothing outside of them brings the end nearer."""
        enabled, live, relevant = self._sort(state, goal=True)
        chosen = self._closure(state, 1 << self.automaton.final, enabled, relevant, goal=True) & live
        return [self.actions.of(state, action) for action in self._tools if chosen >> action & 1]

    def _sort(self, state: int, *, goal: bool) -> tuple[int, int, int]:
        """Actions that are possible, those of them that may change something, and all that may do so at some time."""
        enabled = relevant = 0
        for tool in self.automaton.situation(state).tools:
            enabled |= 1 << tool
        for action in self._tools:
            if not self.actions.is_spent(state, action, goal=goal):
                relevant |= 1 << action
        if goal:
            relevant |= 1 << self.automaton.final | self.interference.overriders
        return enabled, enabled & relevant, relevant

    def _choices(self, state: int, enabled: int, live: int, relevant: int) -> Iterator[int]:
        """Sets to choose from, the smallest first, as far as that is seen at once."""
        sets = []
        for action in self._tools:
            if live >> action & 1:
                chosen = self._closure(state, 1 << action, enabled, relevant, goal=False)
                size = (chosen & live).bit_count()
                if size == 1:
                    yield chosen
                else:
                    sets.append((size, action, chosen))
        for _, _, chosen in sorted(sets):
            yield chosen

    def _closure(self, state: int, seed: int, enabled: int, relevant: int, *, goal: bool) -> int:
        """The actions that have to be looked at together with a seed."""
        disturbs, final = self.interference.disturbs, self.automaton.final
        chosen, waiting = 0, seed
        while waiting:
            low = waiting & -waiting
            waiting ^= low
            chosen |= low
            action = low.bit_length() - 1
            if action == final:
                more = self._helpful_to_end(state, chosen)
            elif enabled & low:
                more = disturbs[action]
                if goal and self.interference.spoilers & low:
                    more |= 1 << final
            else:
                more = self._helpful_to(state, action, chosen)
            waiting |= more & relevant & ~chosen
        return chosen

    def _helpful_to(self, state: int, tool: int, chosen: int) -> int:
        """Actions one of which has to come before a closed tool can open; none when it never can."""
        if self.automaton.is_barred(state, tool):
            return 0
        missing = [actions for flags, actions in self._needs[tool] if not state & flags]
        return min(missing, key=lambda actions: (actions & ~chosen).bit_count(), default=0)

    def _helpful_to_end(self, state: int, chosen: int) -> int:
        """Actions one of which has to come before the run may end, and those that may take the end away."""
        automaton, interference = self.automaton, self.interference
        if automaton.situation(state).may_stop:
            return interference.spoilers
        if automaton.is_barred(state, automaton.final):
            return interference.overriders
        missing = [actions for flags, actions in self._needs[automaton.final] if not state & flags]
        missing += [actions for flag, owed, actions in self._debts if state & flag == owed]
        best = min(missing, key=lambda actions: (actions & ~chosen).bit_count(), default=0)
        return best | interference.overriders

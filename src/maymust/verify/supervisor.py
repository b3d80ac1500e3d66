"""Which calls to hold back so that a run can still end: the largest set of calls that never gets stuck (Ramadge and Wonham).

Tools are the model's choice and can be held back; outcomes are the world's and cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from maymust.core.history import History
from maymust.core.tool_set import Shelf
from maymust.requirements.wording import listed
from maymust.verify.automaton import Automaton
from maymust.verify.explore import stand_ins
from maymust.verify.ground import LOST, SAFE, SURE, Ground, OutOfBounds, debts_of, ground_of
from maymust.verify.interference import Interference
from maymust.verify.witness import Event

LIMIT = 20_000
"""How many states a supervisor looks at from where a run stands. Beyond it, it holds nothing back."""

_SMALL = 2_000
_KEPT = 65536


class Held(NamedTuple):
    """A tool that is held back, and why."""

    tool: str
    reason: str


class Supervisor:
    """Decides for any state of an automaton. What was found out is kept.

    max_turns  turns that a run has, None for no limit
    """

    def __init__(self, automaton: Automaton, *, max_turns: int | None = None, limit: int = LIMIT) -> None:
        self.automaton = automaton
        self.max_turns = max_turns
        self._reach = limit
        self._interference = Interference(automaton)
        self._stand_in = stand_ins(automaton)
        self._grounds: dict[int, Ground | None] = {}
        self._asked: Ground | None = None
        self._answers = Shelf(_KEPT)

    def held_back(self, history: History) -> tuple[Held, ...]:
        """The tools that may be called by the rules after a history, and had better not be."""
        left = None if self.max_turns is None else max(self.max_turns - len(history), 0)
        key = (self.automaton.state_of(history), left)
        known: tuple[Held, ...] | None = self._answers.get(key)
        if known is None:
            known = self._answers.put(key, self._decide(*key))
        return known

    def never_holds(self, tool: str, left: int | None) -> bool:
        """True when the tool is held back in no state, with at least so many turns left. False proves nothing."""
        ground = self._ground(self.automaton.start)
        return ground is not None and ground.is_harmless(self._stand_in[self.automaton.place(tool)], left)

    def _ground(self, state: int) -> Ground | None:
        """What is known around a state, None when there is too much to look at."""
        if self._asked is not None:
            return self._asked
        if state not in self._grounds:
            found = ground_of(self.automaton, self._interference, state, small=_SMALL, limit=self._reach)
            if found is None:
                # Further on there is less to look at, but not at once so much less that it were worth as long a search each turn.
                self._reach = min(self._reach, _SMALL)
                self._grounds[state] = None
                return None
            ground, states = found
            if not states:
                self._asked = ground
                return ground
            for reached in states:
                self._grounds.setdefault(reached, ground)
        return self._grounds[state]

    def _decide(self, state: int, left: int | None) -> tuple[Held, ...]:
        situation = self.automaton.situation(state)
        if situation.fault is not None or not situation.tools:
            return ()
        ground = self._ground(state)
        if ground is None:
            return ()
        try:
            return tuple(self._explained(ground, state, self._held(ground, state, left), left))
        except OutOfBounds:
            return ()

    def _held(self, ground: Ground, state: int, left: int | None) -> list[int]:
        """The tools to hold back in a state."""
        situation = self.automaton.situation(state)
        after = None if left is None else left - 1
        grades = {
            tool: [ground.grade(target, after) for _, target in self.automaton.targets(state, tool)]
            for tool in dict.fromkeys(self._stand_in[tool] for tool in situation.tools)
        }
        stopping = (SAFE if left is None else SURE) if situation.may_stop and left != 0 else LOST
        aim = max(stopping, *(min(of) for of in grades.values()))
        measure = min
        if aim == LOST:
            # Whatever is called, the world may spoil it: then at least leave it the chance not to.
            measure = max
            aim = max(max(of) for of in grades.values())
        return [tool for tool in situation.tools if measure(grades[self._stand_in[tool]]) < aim]

    def _explained(self, ground: Ground, state: int, held: list[int], left: int | None) -> Iterator[Held]:
        names, forced = self.automaton.tools, self.automaton.situation(state).forced
        after = None if left is None else left - 1
        for tool in held:
            events = self.automaton.targets(state, self._stand_in[tool])
            event, target = min(events, key=lambda one: ground.grade(one[1], after))
            yield Held(names[tool], f"{names[tool]} waits: {self._why(ground, event, target, after)}")
        if forced in held:
            # Without the force the other tools would be open, which by the rules they are not.
            yield from (Held(name, f"{name} waits together with {names[forced]}") for name in names[:-1] if name != names[forced])

    def _why(self, ground: Ground, event: Event, target: int, after: int | None) -> str:
        """What would be wrong after a call."""
        if_ = "" if event.outcome.value == "ok" else f"if it {'fails' if event.outcome.value == 'failed' else 'is denied'}, "
        owed = debts_of(self.automaton, target)
        distance = ground.distance(target)
        if distance is not None and after is not None and distance > after:
            need = f"{listed(owed)} {'is' if len(owed) == 1 else 'are'} still owed" if owed else "the end takes more"
            return f"{if_}{need}, and there would be {after} turn{'' if after == 1 else 's'} left, where {distance} are needed"
        if distance is not None:
            return f"{if_}whether the run can end would depend on luck"
        lost = [name for name in owed if not ground.may_be_met(target, name)]
        if len(lost) == 1:
            return f"{if_}{lost[0]} is still owed and would become impossible"
        if lost or owed:
            return f"{if_}{listed(lost or owed)} are still owed and would become impossible{'' if lost else ' together'}"
        return f"{if_}the end would become impossible"

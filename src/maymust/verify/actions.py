"""Actions: a call in a settled state together with the forced calls that follow it.

A state is settled when only counts, pending answers and remembered decisions are left of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from maymust.core.step import Outcome
from maymust.verify.automaton import Automaton
from maymust.verify.interference import Interference, counted_flags
from maymust.verify.witness import Event

Way = tuple[Event, ...]
Watch = Callable[[int, int, Way], None]


@dataclass
class Outcomes:
    """What may come of an action.

    states   the settled states after it, other than the one it started from, each with a shortest way there
    ends     a shortest way after which the run may end before anything is settled; None when there is none
    stuck    a way into a circle of forces that has no end, or into a conflict; None when there is none
    faulty   on some way the run gets into a conflict
    """

    states: dict[int, Way] = field(default_factory=dict)
    ends: Way | None = None
    stuck: Way | None = None
    faulty: bool = False


class Actions:
    """Plays actions, and remembers what came of them.

    closed   tools whose calls are taken never to succeed
    avoid    tools that are taken not to be called at all
    watch    is told every state on the way, settled or not, with the settled state and the way to it from there
    """

    def __init__(
        self,
        automaton: Automaton,
        interference: Interference,
        *,
        closed: frozenset[int] = frozenset(),
        avoid: frozenset[int] = frozenset(),
        watch: Watch | None = None,
    ) -> None:
        self.automaton = automaton
        self.interference = interference
        self.moves: int = 0
        self._closed = closed
        self._avoid = avoid
        self._watch = watch
        self._known: dict[tuple[int, int], Outcomes] = {}
        tools = range(automaton.final)
        guards = [guard for _, guard in automaton.compiled.guards]
        # An action whose flags are all set counts for nothing any more.
        self._spent = [counted_flags(automaton, guards, interference.matters[action]) for action in tools]
        pending = {atom: automaton.compiled.flags.bits[atom] for guard in guards for atom in guard.pending}
        self._all_pending = sum(pending.values())
        self._answers = [
            sum(bit for atom, bit in pending.items() if any(interference.calls(action, name) for name in atom.then)) for action in tools
        ]
        self._memories = [
            tuple(bits for tool in tools if interference.chain[action] >> tool & 1 and (bits := automaton.memory_bits(tool)))
            for action in tools
        ]

    @property
    def out_of_use(self) -> frozenset[int]:
        """Tools that never succeed here, where failures change nothing."""
        return frozenset() if self.automaton.world_has_a_say else self._closed | self._avoid

    def of(self, state: int, action: int) -> Outcomes:
        """What may come of an action that is possible in a settled state."""
        known = self._known.get((state, action))
        if known is None:
            known = self._known[state, action] = self._play(state, action)
        return known

    def from_any(self, state: int) -> Outcomes:
        """What may come of a state in which something may be forced."""
        situation = self.automaton.situation(state)
        result = Outcomes(ends=() if situation.may_stop else None, faulty=situation.fault == "conflict")
        if situation.fault != "conflict" and situation.forced is None:
            result.states[self.automaton.settled(state)] = ()
        elif situation.fault is None:
            for tool in situation.tools:
                more = self._play(state, tool)
                result.ends = result.ends if result.ends is not None else more.ends
                result.stuck = result.stuck if result.stuck is not None else more.stuck
                result.faulty = result.faulty or more.faulty
                result.states |= more.states
        if not result.states and result.ends is None:
            result.stuck = ()
        return result

    def calls(self, state: int, tool: int) -> Iterator[int]:
        """The states that one call may lead to."""
        if tool not in self._avoid:
            for event, after in self.automaton.targets(state, tool):
                if tool not in self._closed or event.outcome is not Outcome.OK:
                    yield after

    def _play(self, start: int, action: int) -> Outcomes:
        """Call the tool, and then what is forced, until nothing is."""
        automaton, result = self.automaton, Outcomes()
        ways: dict[int, Way] = {}
        sources: dict[int, list[int]] = {}
        leaving: list[int] = []
        waiting: deque[tuple[int, int, Way]] = deque([(start, action, ())])
        while waiting:
            state, tool, way = waiting.popleft()
            for event, after in automaton.targets(state, tool) if tool not in self._avoid else ():
                if tool in self._closed and event.outcome is Outcome.OK:
                    continue
                self.moves += 1
                sources.setdefault(after, []).append(state)
                if after in ways:
                    continue
                here = ways[after] = (*way, event)
                if self._watch is not None:
                    self._watch(after, start, here)
                situation = automaton.situation(after) if self.interference.triggers else None
                if situation is None or (situation.forced is None and situation.fault != "conflict"):
                    settled = automaton.settled(after)
                    if settled != start:
                        result.states.setdefault(settled, here)
                    leaving.append(after)
                    continue
                if situation.may_stop:
                    result.ends = here if result.ends is None else result.ends
                    leaving.append(after)
                result.faulty = result.faulty or situation.fault is not None
                waiting.extend((after, forced, here) for forced in situation.tools)
        if len(leaving) < len(ways):
            result.stuck = _first_stuck(ways, sources, leaving)
        return result

    def is_spent(self, state: int, action: int, *, goal: bool) -> bool:
        """Whether an action changes nothing any more: all that it counts for is counted; and it answers nothing, if that matters."""
        flags = self._spent[action]
        if goal and state & self._answers[action]:
            return False
        return state & flags == flags and all(state & bits for bits in self._memories[action])

    def is_progress(self, state: int, after: int) -> bool:
        """Whether more was counted, or more is owed. What was owed and is answered does not count: who wants to get stuck owes."""
        kept = ~self._all_pending
        return state & kept != after & kept or bool(after & self._all_pending & ~state)


def _first_stuck(ways: Mapping[int, Way], sources: Mapping[int, Sequence[int]], leaving: Iterable[int]) -> Way | None:
    """A shortest way to a state from which a chain of forces is never left."""
    good, waiting = set(leaving), list(leaving)
    while waiting:
        for source in sources.get(waiting.pop(), ()):
            if source in ways and source not in good:
                good.add(source)
                waiting.append(source)
    return min((way for state, way in ways.items() if state not in good), key=len, default=None)

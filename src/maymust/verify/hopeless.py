"""A quick test for states from which the end is out of reach, whatever the order of calls."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable

from maymust.core.guard import CountedAtom, LastAtom
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.verify.automaton import Automaton
from maymust.verify.interference import Interference

Group = tuple[int, int]
"""Flags one of which has to be set, and the tools (bits) whose calls set one."""


class Hopeless:
    """Tells states without a way to the end, as far as that is seen when calls are taken to close nothing.

    Which tools can be called is then a matter of what they wait for. A tool after which another one is forced without fail waits
    for what that one waits for as well, since the run breaks off when a forced tool is closed.

    closed   tools whose calls are taken never to succeed
    """

    def __init__(self, automaton: Automaton, interference: Interference, closed: frozenset[int] = frozenset()) -> None:
        self._automaton = automaton
        self._may_be_overridden = bool(interference.overriders)
        self._tools = tuple(tool for tool in range(automaton.final) if tool not in closed)
        bits = automaton.compiled.flags.bits
        waits: list[list[Group]] = [[] for _ in range(automaton.final + 1)]
        forced: list[list[int]] = [[] for _ in range(automaton.final)]
        debts: list[tuple[int, int, int]] = []
        for _, guard in automaton.compiled.guards:
            target = automaton.place(guard.target)
            for group in guard.needs:
                atoms = [atom for atom in group if isinstance(atom, CountedAtom)]
                waits[target].append((sum({bits[atom] for atom in atoms}), self._bits(atom.tool for atom in atoms)))
            if guard.owes is not None:
                debts.append((bits[guard.owes], 0, self._bits((guard.target,))))
            debts.extend((bits[atom], bits[atom], self._bits(atom.then)) for atom in guard.pending)
            for force in guard.forces if not guard.bars and not guard.needs else ():
                if isinstance(force, LastAtom) and force.tool != FINAL_ANSWER:
                    forced[automaton.place(force.tool)].append(target)
        self._waits = [tuple(groups) for groups in waits]
        self._debts = tuple(debts)
        # A tool waits for all that the tools wait for which are forced after it. These may count on it, and it not on itself.
        self._groups = {
            tool: (
                *((flags, tools & ~(1 << tool)) for flags, tools in waits[tool]),
                *(group for after in forced[tool] for group in waits[after]),
            )
            for tool in self._tools
        }
        self._barred = {tool: (automaton.bars_of(tool), *map(automaton.bars_of, forced[tool])) for tool in self._tools}
        bars = [bits for several in self._barred.values() for bits in several if bits is not None]
        read = [*bars, *(flags for groups in self._groups.values() for flags, _ in groups)]
        self._read = functools.reduce(operator.or_, read, 0)
        self._known: dict[int, int] = {}

    def _bits(self, names: Iterable[str]) -> int:
        bits = 0
        for name in names:
            if name != FINAL_ANSWER:
                bits |= 1 << self._automaton.place(name)
        return bits

    def is_hopeless(self, state: int) -> bool:
        """True when a settled state has no way to the end. False proves nothing."""
        automaton = self._automaton
        if self._may_be_overridden or automaton.situation(state).may_stop:
            return False
        if automaton.is_barred(state, automaton.final):
            return True
        possible = self.possible(state)
        if not self._is_served(state, automaton.final, possible):
            return True
        return any(state & flag == owed and not tools & possible for flag, owed, tools in self._debts)

    def possible(self, state: int) -> int:
        """The tools that can be called, as far as that is a matter of what they wait for."""
        read = state & self._read
        known = self._known.get(read)
        if known is None:
            known = self._known[read] = self._possible(read)
        return known

    def _possible(self, state: int) -> int:
        possible = 0
        waiting: list[tuple[int, tuple[int, ...]]] = []
        for tool, several in self._barred.items():
            for bars in several:
                if bars is None or state & bars:
                    break
            else:
                missing = tuple(tools for flags, tools in self._groups[tool] if not state & flags)
                if missing:
                    waiting.append((1 << tool, missing))
                else:
                    possible |= 1 << tool
        before = -1
        while possible != before:
            before, closed = possible, []
            for one in waiting:
                for tools in one[1]:
                    if not tools & possible and not tools & one[0]:
                        closed.append(one)
                        break
                else:
                    possible |= one[0]
            waiting = closed
        return possible

    def _is_served(self, state: int, tool: int, possible: int) -> bool:
        return all(state & flags or tools & possible for flags, tools in self._waits[tool])

"""A quick test for states from which the end is out of reach, whatever the order of calls."""

from __future__ import annotations

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
        self._forced = [tuple(tools) for tools in forced]
        self._debts = tuple(debts)

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
        barred = self._automaton.is_barred
        waiting = [
            tool for tool in self._tools if not barred(state, tool) and not any(barred(state, after) for after in self._forced[tool])
        ]
        possible, before = 0, -1
        while possible != before:
            before, closed = possible, []
            for tool in waiting:
                own = possible | 1 << tool
                if self._is_served(state, tool, possible) and all(self._is_served(state, after, own) for after in self._forced[tool]):
                    possible = own
                else:
                    closed.append(tool)
            waiting = closed
        return possible

    def _is_served(self, state: int, tool: int, possible: int) -> bool:
        return all(state & flags or tools & possible for flags, tools in self._waits[tool])

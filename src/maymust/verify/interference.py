"""Which calls get in each other's way. Calls that do not may be looked at in any one order: all ends stay in sight.

An *action* is a call of a tool with the forced calls that follow it. Actions are bits, at the places of their tools.
"""

from __future__ import annotations

from collections.abc import Iterable

from maymust.core.guard import CountedAtom, Guard, LastAtom, PendingAtom, RecentAtom, StepAtom
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.verify.automaton import Automaton
from maymust.verify.explore import named_by


class Interference:
    """What the rules say about which calls can disturb which.

    why_not     why orders cannot be left out for this policy; None when they can
    spacers     tools that may always be called and do no harm
    spacer      the first of them, None when there is none
    looks_back  some tool is closed for what the last calls were
    chain       per action the tools that it calls, as bits: itself, and what may be forced after
    matters     per action the tools whose counts it changes, or by which its forced calls are judged
    triggers    bits of the tools after which something is forced
    writers     per tool the actions that call it
    disturbs    per action those that it gets in the way of, or that get in its way
    spoilers    actions that may take the end away
    overriders  actions after which the final answer may be forced
    """

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self._place = automaton.place
        self._count = automaton.final
        guards = [guard for _, guard in automaton.compiled.guards]
        self._of = {place: [guard for guard in guards if automaton.place(guard.target) == place] for place in range(self._count + 1)}
        self._guards = guards
        self._read_forces()
        self._read_bars()
        self.spacers: tuple[int, ...] = self._find_spacers()
        self.spacer: int | None = self.spacers[0] if self.spacers else None
        self.looks_back: bool = any(isinstance(atom, LastAtom | RecentAtom) for guard in guards for atom in guard.bars)
        self.why_not: str | None = self._find_obstacle()
        self.disturbs: tuple[int, ...] = self._pairs()
        self.matters: tuple[int, ...] = tuple(self.chain[action] | self._judged_by[action] for action in range(self._count))
        self.writers: tuple[int, ...] = tuple(
            sum(1 << action for action in range(self._count) if self.chain[action] >> tool & 1) for tool in range(self._count)
        )
        final_bars = self._bits(atom.tool for guard in self._of[self._count] for atom in guard.bars if isinstance(atom, CountedAtom))
        self.spoilers: int = self._actions_of(final_bars | self._bits(atom.tool for guard in guards for atom in guard.pending))

    def calls(self, action: int, name: str) -> bool:
        """Whether an action may call a tool."""
        return name != FINAL_ANSWER and bool(self.chain[action] >> self._place(name) & 1)

    def _bits(self, names: Iterable[str]) -> int:
        bits = 0
        for name in names:
            if name != FINAL_ANSWER:
                bits |= 1 << self._place(name)
        return bits

    def _actions_of(self, tools: int) -> int:
        return sum(1 << action for action in range(self._count) if self.chain[action] & tools)

    def _read_forces(self) -> None:
        forced: list[set[int]] = [set() for _ in range(self._count)]
        for guard in self._guards:
            for atom in guard.forces:
                if isinstance(atom, LastAtom) and atom.tool != FINAL_ANSWER:
                    forced[self._place(atom.tool)].add(self._place(guard.target))
        self.forced_after: tuple[frozenset[int], ...] = tuple(frozenset(tools) for tools in forced)
        self.triggers: int = sum(1 << place for place, tools in enumerate(forced) if tools)
        chains = []
        for action in range(self._count):
            chain, waiting = {action}, [action]
            while waiting:
                fresh = {tool for tool in forced[waiting.pop()] if tool != self._count} - chain
                chain |= fresh
                waiting.extend(fresh)
            chains.append(sum(1 << tool for tool in chain))
        self.chain: tuple[int, ...] = tuple(chains)
        self.overriders: int = sum(
            1 << action
            for action in range(self._count)
            if any(self._count in forced[tool] for tool in range(self._count) if chains[action] >> tool & 1)
        )

    def _read_bars(self) -> None:
        """Per tool the tools whose calls may close it; per action what its forced calls are judged by."""
        self._bars = [
            self._bits(atom.tool for guard in self._of[place] for atom in guard.bars if isinstance(atom, CountedAtom))
            for place in range(self._count)
        ]
        for place in self.automaton.remembered:
            self._bars[place] |= 1 << place
        reads = [self._bits(name for guard in self._of[place] for name in named_by(guard)) for place in range(self._count + 1)]
        for guard in self._guards:
            if guard.owes is not None:
                reads[self._count] |= self._bits((guard.owes.tool,))
            for atom in guard.pending:
                reads[self._count] |= self._bits((atom.tool, *atom.then))
        self._judged_by = [0] * self._count
        for action in range(self._count):
            for tool in range(self._count):
                if self.chain[action] >> tool & 1:
                    for forced in self.forced_after[tool]:
                        self._judged_by[action] |= reads[forced]

    def _find_spacers(self) -> tuple[int, ...]:
        """The tools that no rule closes, and whose calls are nowhere held against anybody."""
        automaton = self.automaton
        held = 0
        for guard in self._guards:
            held |= self._bits(atom.tool for atom in guard.bars if not isinstance(atom, StepAtom))
            held |= self._bits(atom.tool for atom in guard.forces if isinstance(atom, LastAtom))
            held |= self._bits(name for atom in guard.pending for name in (atom.tool, *atom.then))
            if guard.bars or guard.needs or guard.forces:
                held |= self._bits((guard.target,))
        for judged in self._judged_by:
            held |= judged
        for one in automaton.opaque:
            held |= sum(1 << place for place in one.targets if place != self._count)
        return tuple(
            place
            for place, name in enumerate(automaton.tools[:-1])
            if len(automaton.events(place)) == 1
            and name in automaton.world.present
            and not held >> place & 1
            and place not in automaton.asked
        )

    def _find_obstacle(self) -> str | None:
        world = self.automaton.world
        if self.looks_back and self.spacer is None:
            return "no tool is always open, and some rules look at the last calls"
        if world.loads:
            return "tools are loaded"
        if any(clause.partial and clause.bits.forces for clause in self.automaton.clauses):
            return "a force has a custom check"
        forced = {guard.target for guard in self._guards if any(isinstance(atom, LastAtom) for atom in guard.forces)}
        if any(guard.target in forced and any(isinstance(atom, RecentAtom) for atom in guard.bars) for guard in self._guards):
            return "a forced tool has a cooldown"
        pending = {atom for guard in self._guards for atom in guard.pending}
        for action in range(self._count):
            owing = {atom for atom in pending if self.calls(action, atom.tool)}
            if any(other != atom and any(self.calls(action, name) for name in other.then) for atom in owing for other in pending):
                return "an answer to one call makes another one owed"
        if any(name not in world.present for name in forced - {FINAL_ANSWER}):
            return "a forced tool is absent"
        if any(guard.forces and self.automaton.place(guard.target) in self.automaton.remembered for guard in self._guards):
            return "a person may close a forced tool for good"
        if self.automaton.opaque and self.spacer is None:
            return "no tool is always open, and some are closed by checks"
        if any(atom.failures for guard in self._guards for atom in guard.atoms()) and world.may_fail and self.triggers:
            return "failures count, and some tools are forced"
        return None

    def _pairs(self) -> tuple[int, ...]:
        """Per action the others whose order with it matters."""
        watched = [self._bars[action] | self._judged_by[action] for action in range(self._count)]
        for guard in self._guards:
            for atom in guard.pending:
                # Whether the answer is still owed depends on which of the two comes last.
                for action in range(self._count):
                    if self.chain[action] & self._bits((atom.tool,)):
                        watched[action] |= self._bits(atom.then)
        pairs = []
        for one in range(self._count):
            disturbed = 0
            for other in range(self._count):
                if one != other and (self.chain[one] & watched[other] or self.chain[other] & watched[one]):
                    disturbed |= 1 << other
            pairs.append(disturbed)
        return tuple(pairs)


def counted_flags(automaton: Automaton, guards: Iterable[Guard], tools: int) -> int:
    """The flags that say how often some tools (bits) were counted, and that something is owed since they were called."""
    flags = 0
    for guard in guards:
        for atom in guard.atoms():
            if isinstance(atom, CountedAtom | PendingAtom) and atom.tool != FINAL_ANSWER and tools >> automaton.place(atom.tool) & 1:
                flags |= automaton.compiled.flags.bits[atom]
    return flags

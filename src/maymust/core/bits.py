"""Guards and counters over the bits of one integer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from maymust.core.guard import Atom, CountedAtom, Guard, LastAtom, PendingAtom, RecentAtom, StepAtom
from maymust.core.history import History


class BitGuard:
    """A guard whose atoms are masks.

    A tool is closed when a bar holds, when a needed bit is missing, or when of a group of needed bits all are missing.
    """

    __slots__ = ("bars", "force_prevents", "forces", "groups", "needs", "owes", "pending", "rank", "tool", "unmet")

    def __init__(self, guard: Guard, bits: Mapping[Atom, int], places: Mapping[str, int], ranks: Mapping[str, int]) -> None:
        self.tool: int = 1 << places[guard.target]
        self.rank: int = 1 << ranks[guard.target]
        self.bars: int = _union(bits, guard.bars)
        self.needs: int = _union(bits, (group[0] for group in guard.needs if len(group) == 1))
        self.groups: tuple[int, ...] = tuple(_union(bits, group) for group in guard.needs if len(group) != 1)
        self.forces: int = _union(bits, guard.forces)
        self.unmet: int = 0 if guard.unmet is None else bits[guard.unmet]
        self.owes: int = 0 if guard.owes is None else bits[guard.owes]
        self.pending: int = _union(bits, guard.pending)
        self.force_prevents: bool = guard.force_prevents

    @property
    def row(self) -> tuple[int, int, tuple[int, ...], int, bool, int, int, int, int, int]:
        """All masks at once, for a loop over many guards: looking up attributes would cost more than the two ANDs."""
        return (
            self.bars,
            self.needs,
            self.groups,
            self.forces,
            self.force_prevents,
            self.owes,
            self.pending,
            self.unmet,
            self.tool,
            self.rank,
        )

    def is_closed(self, flags: int) -> bool:
        """True when the guard closes its tool."""
        if flags & self.bars or flags & self.needs != self.needs:
            return True
        return bool(self.groups) and not all(flags & group for group in self.groups)


def _union(bits: Mapping[Atom, int], atoms: Iterable[Atom]) -> int:
    mask = 0
    for atom in atoms:
        mask |= bits[atom]
    return mask


@dataclass(frozen=True, slots=True)
class Dial:
    """Where a state holds a number, and at which numbers a flag changes.

    kind      "count": how often the tool was counted; "rest": how many steps it is still among the last few; "step": how many count
    tool      None for "step"
    failures  failed invocations count as well
    shift     how far to shift the state, and `mask` then
    stops     the numbers, ascending; the last one is the end of the dial
    """

    kind: Literal["count", "rest", "step"]
    tool: str | None
    failures: bool
    shift: int
    mask: int
    stops: tuple[int, ...]


class _Counter:
    """A saturating counter in some bits of the state, with the flag that each of some counts sets."""

    __slots__ = ("cap", "field", "flags", "shift", "unit")

    def __init__(self, shift: int, flags: Mapping[int, int]) -> None:
        self.shift = shift
        self.cap = max(flags)
        self.field = (1 << self.cap.bit_length()) - 1
        self.unit = 1 << shift
        self.flags = flags

    def advance(self, state: int) -> int:
        count = (state >> self.shift) & self.field
        if count >= self.cap:
            return state
        return state + self.unit | self.flags.get(count + 1, 0)

    def of(self, count: int) -> int:
        return min(count, self.cap) << self.shift

    def filled(self, state: int) -> int:
        return state & ~(self.field << self.shift) | self.cap << self.shift


class _Timer:
    """How many steps a tool is still among the last few, with the flag that says that it is."""

    __slots__ = ("field", "flag", "shift", "start", "tool", "unit")

    def __init__(self, atom: RecentAtom, shift: int, flag: int) -> None:
        self.tool = atom.tool
        self.shift = shift
        self.unit = 1 << shift
        self.field = ((1 << atom.steps.bit_length()) - 1) << shift
        self.start = atom.steps << shift
        self.flag = flag

    def advance(self, state: int, tool: str) -> int:
        if tool == self.tool:
            return state & ~self.field | self.start | self.flag
        if not state & self.field:
            return state
        state -= self.unit
        return state if state & self.field else state & ~self.flag

    def of(self, since: int | None) -> int:
        left = 0 if since is None else (self.start >> self.shift) - since
        return max(left, 0) << self.shift


class Track:
    """How the state follows one way of counting: ok steps, or ok and failed ones.

    end   the first bit above its counters
    """

    __slots__ = ("_clear", "_counters", "_keep", "_last", "_ones", "_recent", "_seen", "_step", "end", "failures", "is_idle")

    def __init__(self, bits: Mapping[Atom, int], failures: bool, first_bit: int) -> None:
        self.failures: bool = failures
        mine = {atom: bit for atom, bit in bits.items() if atom.failures is failures}
        self.is_idle: bool = not mine
        self._last = {atom.tool: bit for atom, bit in mine.items() if isinstance(atom, LastAtom)}
        steps = {atom.step - 1: bit for atom, bit in mine.items() if isinstance(atom, StepAtom)}
        # The flags of the last tool and of the step hold for one step only.
        self._keep = ~(_union(bits, (atom for atom in mine if isinstance(atom, LastAtom | StepAtom))))
        counts: dict[str, dict[int, int]] = {}
        for atom, bit in mine.items():
            if isinstance(atom, CountedAtom):
                counts.setdefault(atom.tool, {})[atom.times] = bit
        # A tool of which only "at least once" is asked needs no counter: its flag is one.
        self._ones = {tool: flags[1] for tool, flags in counts.items() if max(flags) == 1}
        self._seen = dict(self._ones)
        self._counters: dict[str, _Counter] = {}
        self.end: int = first_bit
        for tool, flags in counts.items():
            if max(flags) > 1:
                self._counters[tool] = self._counter(flags)
        # One more than the last step asked for, so that the counter can leave it.
        self._step = self._counter({**steps, max(steps) + 1: 0}) if steps else None
        self._recent = tuple(self._timer(atom, bit) for atom, bit in mine.items() if isinstance(atom, RecentAtom))
        self._clear: dict[str, int] = {}
        for atom, bit in mine.items():
            if isinstance(atom, PendingAtom):
                for tool in atom.then:
                    self._clear[tool] = self._clear.get(tool, 0) | bit
                # Set after it was cleared: no call answers itself.
                self._seen[atom.tool] = self._seen.get(atom.tool, 0) | bit

    def _counter(self, flags: Mapping[int, int]) -> _Counter:
        counter = _Counter(self.end, flags)
        self.end += counter.field.bit_length()
        return counter

    def _timer(self, atom: RecentAtom, bit: int) -> _Timer:
        timer = _Timer(atom, self.end, bit)
        self.end += atom.steps.bit_length()
        return timer

    def advance(self, state: int, tool: str) -> int:
        """The state after one more step that counts here."""
        if self._clear:
            state &= ~self._clear.get(tool, 0)
        for timer in self._recent:
            state = timer.advance(state, tool)
        state = state & self._keep | self._last.get(tool, 0) | self._seen.get(tool, 0)
        counter = self._counters.get(tool)
        if counter is not None:
            state = counter.advance(state)
        return state if self._step is None else self._step.advance(state)

    def dials(self) -> Iterator[Dial]:
        """Every number that this part of the state holds; that a tool was counted at all is one as well."""
        for tool, flag in self._ones.items():
            yield Dial("count", tool, self.failures, flag.bit_length() - 1, 1, (1,))
        for tool, counter in self._counters.items():
            yield Dial("count", tool, self.failures, counter.shift, counter.field, tuple(sorted(counter.flags)))
        for timer in self._recent:
            yield Dial("rest", timer.tool, self.failures, timer.shift, timer.field >> timer.shift, (0,))
        if self._step is not None:
            # The flag of a step holds for that step only.
            stops = {near for count, flag in self._step.flags.items() for near in ((count, count + 1) if flag else (count,))}
            yield Dial("step", None, self.failures, self._step.shift, self._step.field, tuple(sorted(stops - {0})))

    def field_of(self, tool: str) -> tuple[int, int]:
        """Where the state says how often a tool was counted, as far as that is asked for: how far to shift it, and the mask then."""
        counter = self._counters.get(tool)
        if counter is not None:
            return counter.shift, counter.field
        flag = self._ones.get(tool, 0)
        return max(flag.bit_length() - 1, 0), int(flag > 0)

    def is_past(self, state: int) -> bool:
        """Whether no step that some flag asks for is still to come."""
        return self._step is None or (state >> self._step.shift) & self._step.field >= self._step.cap

    def settled(self, state: int) -> int:
        """The state after so many further steps of tools nobody speaks of that only counts, and what is pending, are left."""
        for timer in self._recent:
            state &= ~(timer.field | timer.flag)
        state &= self._keep
        return state if self._step is None else self._step.filled(state)

    def fields_of(self, history: History) -> int:
        """The counters after a history; the flags are left out."""
        fields = 0
        for tool, counter in self._counters.items():
            fields |= counter.of(history.count(tool, self.failures))
        for timer in self._recent:
            fields |= timer.of(history.since(timer.tool, self.failures))
        return fields if self._step is None else fields | self._step.of(history.total(self.failures))

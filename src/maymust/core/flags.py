"""A history as one integer: a bit for each fact that some guard asks for."""

from __future__ import annotations

from collections.abc import Iterable

from maymust.core.guard import Atom, CountedAtom, Guard, LastAtom, PendingAtom, RecentAtom, StepAtom
from maymust.core.history import History, Tally, last_below


class Flags:
    """Gives each atom of some guards a bit, and reads the bits off a history in time that does not depend on its length.

    bits    the bit of each atom
    width   number of bits
    """

    __slots__ = (
        "_counted",
        "_counted_with_failures",
        "_last",
        "_last_with_failures",
        "_step",
        "_step_with_failures",
        "_trailing",
        "bits",
        "width",
    )

    def __init__(self, guards: Iterable[Guard]) -> None:
        atoms = dict.fromkeys(atom for guard in guards for atom in guard.atoms())
        self.bits: dict[Atom, int] = {atom: 1 << place for place, atom in enumerate(atoms)}
        self.width: int = len(self.bits)
        self._counted, self._last, self._step = self._tables(False)
        self._counted_with_failures, self._last_with_failures, self._step_with_failures = self._tables(True)
        self._trailing = tuple((atom, bit) for atom, bit in self.bits.items() if isinstance(atom, RecentAtom | PendingAtom))

    def _tables(self, failures: bool) -> tuple[tuple[tuple[str, int, int], ...], dict[str | None, int], dict[int, int]]:
        """The bits of one way of counting: (tool, place of the decisive occurrence, bit), by last tool, by step."""
        mine = [(atom, bit) for atom, bit in self.bits.items() if atom.failures is failures]
        counted = tuple((atom.tool, atom.times - 1, bit) for atom, bit in mine if isinstance(atom, CountedAtom))
        last: dict[str | None, int] = {atom.tool: bit for atom, bit in mine if isinstance(atom, LastAtom)}
        step = {atom.step - 1: bit for atom, bit in mine if isinstance(atom, StepAtom)}
        return counted, last, step

    def of(self, history: History) -> int:
        """The bits that hold in a history."""
        flags = 0
        length = len(history)
        tally = history.tally(False)
        places_of = tally.places.get
        for tool, place, bit in self._counted:
            places = places_of(tool)
            # The n-th occurrence lies before this version's end exactly when the tool was counted n times.
            if places is not None and len(places) > place and places[place] < length:
                flags |= bit
        if self._last:
            flags |= self._last.get(tally.last[length], 0)
        if self._step:
            flags |= self._step.get(tally.total[length], 0)
        if self._counted_with_failures or self._last_with_failures or self._step_with_failures:
            flags |= self._of_failures(history, length)
        for atom, bit in self._trailing:
            if _trails(atom, history.tally(atom.failures), length):
                flags |= bit
        return flags

    def _of_failures(self, history: History, length: int) -> int:
        flags = 0
        tally = history.tally(True)
        for tool, place, bit in self._counted_with_failures:
            places = tally.places.get(tool)
            if places is not None and len(places) > place and places[place] < length:
                flags |= bit
        return flags | self._last_with_failures.get(tally.last[length], 0) | self._step_with_failures.get(tally.total[length], 0)


def _trails(atom: RecentAtom | PendingAtom, tally: Tally, length: int) -> bool:
    """Whether an atom that looks back from the end of a history holds after its first `length` steps."""
    place = last_below(tally.places.get(atom.tool), length)
    if place is None:
        return False
    if isinstance(atom, RecentAtom):
        return tally.total[length] - tally.total[place + 1] < atom.steps
    later = (last_below(tally.places.get(name), length) for name in atom.then if name != atom.tool)
    return all(other is None or other < place for other in later)

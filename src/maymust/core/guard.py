"""What a built-in requirement asks of the history, as data: the atoms that compiled policies are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class CountedAtom:
    """The tool has been counted at least `times` times."""

    tool: str
    times: int
    failures: bool


@dataclass(frozen=True, slots=True)
class LastAtom:
    """The tool is the last one that counts."""

    tool: str
    failures: bool


@dataclass(frozen=True, slots=True)
class StepAtom:
    """The current step, one more than all that count, is `step`."""

    step: int
    failures: bool


@dataclass(frozen=True, slots=True)
class RecentAtom:
    """The tool is among the last `steps` that count."""

    tool: str
    steps: int
    failures: bool


@dataclass(frozen=True, slots=True)
class PendingAtom:
    """The tool has been counted, and none of `then` has been counted since."""

    tool: str
    then: tuple[str, ...]
    failures: bool


Atom: TypeAlias = CountedAtom | LastAtom | StepAtom | RecentAtom | PendingAtom
"""One fact about a history. `failures`: failed invocations count as well as successful ones."""


@dataclass(frozen=True, slots=True)
class Guard:
    """When a requirement closes and forces its one tool, and when it prevents the end. Its rules are a function of its atoms.

    target          the tool
    bars            closed when any of these holds
    needs           closed unless of each group some atom holds
    forces          forced when open and any of these holds
    unmet           a force that is an error where the tool is closed (`force_at_step`)
    owes            the end is prevented until this holds
    pending         the end is prevented while any of these holds
    force_prevents  the end is prevented while the tool is forced
    is_partial      the tool may be closed for other reasons as well (custom checks)
    """

    target: str
    bars: tuple[Atom, ...] = ()
    needs: tuple[tuple[Atom, ...], ...] = ()
    forces: tuple[Atom, ...] = ()
    unmet: StepAtom | None = None
    owes: CountedAtom | None = None
    pending: tuple[PendingAtom, ...] = ()
    force_prevents: bool = True
    is_partial: bool = False

    def atoms(self) -> Iterator[Atom]:
        """Every atom, some of them perhaps twice."""
        yield from self.bars
        for group in self.needs:
            yield from group
        yield from self.forces
        if self.unmet is not None:
            yield self.unmet
        if self.owes is not None:
            yield self.owes
        yield from self.pending

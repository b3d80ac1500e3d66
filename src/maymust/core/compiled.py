"""The compiled policy: all that conditional requirements know of a run in one integer, and verdicts from two ANDs a guard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from maymust.core.bits import BitGuard, Dial, Track
from maymust.core.flags import Flags
from maymust.core.guard import Atom, Guard
from maymust.core.history import History
from maymust.core.requirement import BoundRequirement
from maymust.core.speakers import guard_of
from maymust.core.step import Outcome
from maymust.core.tool_set import Shelf
from maymust.core.tool_spec import FINAL_ANSWER, did_you_mean
from maymust.core.verdict import Verdict
from maymust.errors import PolicyError

Fault = Literal["force_unmet", "conflict", "dead_end"]
"""Why there is no lawful next step: the first that applies, in this order."""

_KEPT = 65536


class Source(Protocol):
    """What is compiled: a `Policy`."""

    @property
    def tools(self) -> tuple[str, ...]: ...
    @property
    def requirements(self) -> tuple[BoundRequirement, ...]: ...
    @property
    def final_answer_as_tool(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a compiled policy says of a state: the lists of a permit, without reasons.

    fault   set when the plain policy would raise; for all but a dead end there are no lists then
    owed    names of the requirements that prevent the end
    """

    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    forced: str | None = None
    tool_choice: str = "required"
    may_stop: bool = False
    fault: Fault | None = None
    owed: tuple[str, ...] = ()

    def verdict(self, name: str) -> Verdict:
        """The verdict on one tool. Raises PolicyError for an unknown name."""
        if name == self.forced:
            return Verdict.FORCED
        if name in self.asks:
            return Verdict.ASK
        for names, verdict in ((self.allowed, Verdict.ALLOWED), (self.denied, Verdict.DENIED), (self.withheld, Verdict.WITHHELD)):
            if name in names:
                return verdict
        names = (*self.allowed, *self.denied, *self.withheld)
        raise PolicyError(f"there is no tool called {name} here{did_you_mean(name, names)}")


class CompiledPolicy:
    """A policy as an automaton. States are integers: `start`, `step` and `state_of` give them, everything else reads them.

    policy   the policy; disabled requirements are left out
    opaque   what to do with requirements that are known by their rules only, with custom checks, and with a person's remembered
             choices: "refuse" raises PolicyError, "open" takes them to close nothing

    A state holds saturating counters, the last tool, and a capped step counter, as far as some guard asks for them. Two histories
    with the same state get the same verdicts, now and after the same further steps.
    """

    def __init__(self, policy: Source, *, opaque: Literal["refuse", "open"] = "refuse") -> None:
        if opaque not in ("refuse", "open"):
            raise PolicyError(f"opaque has to be 'refuse' or 'open', got {opaque!r}")
        self.tools: tuple[str, ...] = (*policy.tools, FINAL_ANSWER)
        self.left_open: tuple[str, ...] = ()
        """Names of the requirements, or parts of them, that are taken to close nothing."""
        self._as_tool = policy.final_answer_as_tool
        self._place = {name: place for place, name in enumerate(self.tools)}
        levels: dict[str, int] = {}
        guards: list[tuple[str, Guard]] = []
        asked: set[str] = set()
        enabled = [seat for seat in policy.requirements if seat.enabled]
        for seat in sorted(enabled, key=lambda seat: -seat.priority):
            guard = guard_of(seat)
            if guard is None or guard.is_partial:
                self._leave_open(seat, opaque)
            spoken = (guard.target,) if guard is not None else self._asked_by(seat)
            if guard is not None:
                guards.append((seat.name, guard))
            asked.update(() if guard is not None else spoken)
            for tool in spoken:
                levels[tool] = max(levels.get(tool, 0), seat.priority)
        self.flags: Flags = Flags(guard for _, guard in guards)
        self.guards: tuple[tuple[str, Guard], ...] = tuple(guards)
        self._asks = sum(1 << self._place[tool] for tool in asked)
        # Which of several forced tools wins never depends on the history: every guard always speaks.
        self._ranking = sorted(levels, key=lambda tool: (-levels[tool], self._place[tool]))
        rank = {tool: place for place, tool in enumerate(self._ranking)}
        self._rows = tuple((name, *BitGuard(guard, self.flags.bits, self._place, rank).row) for name, guard in guards)
        self._mask = (1 << self.flags.width) - 1
        self._all = (1 << len(self.tools)) - 1
        self._final = 1 << (len(self.tools) - 1)
        self._seen = Shelf(_KEPT)
        self._named = Shelf(_KEPT)
        first = Track(self.flags.bits, False, self.flags.width)
        second = Track(self.flags.bits, True, first.end)
        self.width: int = second.end
        """Number of bits of a state."""
        self._tracks = (first, second)
        self._advancing: dict[str, tuple[Track, ...]] = {
            Outcome.OK: tuple(track for track in self._tracks if not track.is_idle),
            Outcome.FAILED: () if second.is_idle else (second,),
        }

    def _leave_open(self, seat: BoundRequirement, opaque: str) -> None:
        if getattr(seat, "never_closes", False):
            return
        if opaque == "refuse":
            raise PolicyError(
                f"{seat.name} cannot be compiled: what it decides is not a matter of counts, last tool and step. "
                "Leave it out, or pass opaque='open' to take it as closing nothing"
            )
        self.left_open = (*self.left_open, seat.name)

    def _asked_by(self, seat: BoundRequirement) -> tuple[str, ...]:
        asks_about = getattr(seat, "asks_about", None)
        return tuple(tool for tool in self.tools if asks_about(tool)) if callable(asks_about) else ()

    def start(self) -> int:
        """The state before any step."""
        return self.state_of(History())

    def state_of(self, history: History) -> int:
        """The state after a history, read off its counts."""
        return self.flags.of(history) | sum(track.fields_of(history) for track in self._tracks)

    def heeds(self, outcome: Outcome) -> bool:
        """Whether a call that comes back so can change a state."""
        return bool(self._advancing.get(outcome))

    def step(self, state: int, tool: str, outcome: Outcome | str = Outcome.OK) -> int:
        """The state after one more step. O(1)."""
        for track in self._advancing.get(outcome, ()):
            state = track.advance(state, tool)
        return state

    def field_of(self, tool: str, failures: bool = False) -> tuple[int, int]:
        """Where a state says how often a tool was counted: how far to shift it, and the mask then.

        Counts that no guard asks for are 0, and those above what guards ask for are cut off.
        """
        return self._tracks[failures].field_of(tool)

    def flags_of(self, state: int) -> int:
        """The facts that hold in a state, as bits."""
        return state & self._mask

    def dials(self) -> tuple[Dial, ...]:
        """Every number that a state holds."""
        return tuple(dial for track in self._tracks for dial in track.dials())

    def is_past(self, state: int) -> bool:
        """Whether no step that some guard asks for is still to come."""
        return all(track.is_past(state) for track in self._tracks)

    def settled(self, state: int) -> int:
        """The state after so many further steps of tools nobody speaks of that only counts, and what is pending, are left."""
        for track in self._tracks:
            state = track.settled(state)
        return state

    def permit(self, state: int) -> Verdicts:
        """The verdicts in a state. States that differ in nothing a guard asks for share one object."""
        flags = state & self._mask
        known: Verdicts | None = self._seen.get(flags)
        if known is None:
            known = self._seen.put(flags, self._judge(flags))
        return known

    def moves(self, state: int) -> tuple[str, ...]:
        """The tools that may be called, `final_answer` among them."""
        return self.permit(state).allowed

    def may_stop(self, state: int) -> bool:
        """True when the run may end here."""
        return self.permit(state).may_stop

    def forced(self, state: int) -> str | None:
        """The tool that must be called, None when there is none."""
        return self.permit(state).forced

    def fault(self, state: int) -> Fault | None:
        """Why there is no lawful next step; None when there is one."""
        return self.permit(state).fault

    def holding(self, state: int) -> Iterator[Atom]:
        """The facts that hold in a state, of those that some guard asks for."""
        return (atom for atom, bit in self.flags.bits.items() if state & bit)

    def _judge(self, flags: int) -> Verdicts:
        closed = forcing = unmet = 0
        owed: list[str] = []
        for name, bars, needs, groups, forces, force_prevents, owes, pending, unmet_at, tool, rank in self._rows:
            prevents = flags & owes != owes or flags & pending
            # The two ANDs; groups are rare.
            if flags & bars or flags & needs != needs or (groups and not all(flags & group for group in groups)):
                closed |= tool
                unmet |= flags & unmet_at
            elif flags & forces:
                forcing |= rank
                prevents = prevents or force_prevents
            if prevents:
                owed.append(name)
        if unmet:
            return Verdicts(fault="force_unmet", owed=tuple(owed))
        winners = [tool for place, tool in enumerate(self._ranking) if forcing >> place & 1] if forcing else []
        if any(closed >> self._place[tool] & 1 for tool in winners):
            return Verdicts(fault="conflict", owed=tuple(owed))
        return self._sort_out(closed, winners[0] if winners else None, tuple(owed))

    def _sort_out(self, closed: int, forced: str | None, owed: tuple[str, ...]) -> Verdicts:
        if owed and forced != FINAL_ANSWER:
            closed |= self._final
        allowed = self._all & ~closed
        if forced is not None:
            allowed &= 1 << self._place[forced] | self._final
        names = self._names(allowed)
        may_stop = bool(allowed & self._final)
        choice = "auto" if may_stop and not self._as_tool else "required"
        if forced is not None:
            choice = forced
        elif len(names) == 1:
            choice = names[0]
        return Verdicts(
            allowed=names,
            denied=self._names(closed),
            withheld=self._names(self._all & ~closed & ~allowed),
            asks=self._names(allowed & self._asks),
            forced=forced,
            tool_choice=choice,
            may_stop=may_stop,
            fault=None if allowed else "dead_end",
            owed=owed,
        )

    def _names(self, bits: int) -> tuple[str, ...]:
        names: tuple[str, ...] | None = self._named.get(bits)
        if names is None:
            names = self._named.put(bits, tuple(name for place, name in enumerate(self.tools) if bits >> place & 1))
        return names

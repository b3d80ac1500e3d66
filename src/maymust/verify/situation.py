"""What a state of the automaton means: which calls are possible, whether the run may end, and what is remarkable about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from maymust.core.bits import BitGuard
from maymust.core.guard import Atom, Guard, LastAtom
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.verify.opaque import Opaque

Fault: TypeAlias = Literal["conflict", "dead_end"]
"""Why there is no next step."""


class Note(NamedTuple):
    """Something remarkable about a state.

    kind    the name of a kind of finding
    tools   the tools it is about
    rules   the rules behind it: for forces the forcing ones
    others  the rules on the other side: closing, overridden
    """

    kind: str
    tools: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


class Situation:
    """What holds in a state.

    tools     places of the tools that may be called, without the final answer
    may_stop  whether the final answer may be given
    fault     why there is no next step, None when there is one
    forced    place of the tool that must be called
    """

    __slots__ = ("fault", "forced", "may_stop", "notes", "tools")

    def __init__(
        self,
        tools: tuple[int, ...] = (),
        may_stop: bool = False,
        *,
        fault: Fault | None = None,
        forced: int | None = None,
        notes: tuple[Note, ...] = (),
    ) -> None:
        self.tools: tuple[int, ...] = tools
        self.may_stop: bool = may_stop
        self.fault: Fault | None = fault
        self.forced: int | None = forced
        self.notes: tuple[Note, ...] = notes


class Clause:
    """A rule over the bits of a state, with what verification asks beside its verdict."""

    __slots__ = ("bits", "lapse", "name", "partial", "place", "priority")

    def __init__(self, name: str, priority: int, guard: Guard, bits: BitGuard, flags: Mapping[Atom, int], place: int) -> None:
        self.name: str = name
        self.priority: int = priority
        self.bits: BitGuard = bits
        self.place: int = place
        self.partial: bool = guard.is_partial
        # After a call of the tool itself a force is given up on purpose: no lapse to speak of.
        self.lapse: int = sum(flags[atom] for atom in guard.forces if isinstance(atom, LastAtom) and atom.tool != guard.target)

    def speaks(self, flags: int) -> bool:
        """Whether the rule says anything in a state: closes, forces or prevents the end."""
        bits = self.bits
        owes = bool(bits.owes and not flags & bits.owes)
        return owes or bool(flags & (bits.pending | bits.forces)) or bits.is_closed(flags)


class Judge:
    """Judges states in which something is forced, in which a force cannot be met, or in which a person said no."""

    def __init__(self, tools: Sequence[str], clauses: Sequence[Clause], levels: dict[int, int]) -> None:
        self._tools = tools
        self._final = len(tools) - 1
        # All masks at once: looking up attributes would cost more than what is done with them.
        self._rows = tuple(
            (one, one.place, one.bits.bars, one.bits.needs, one.bits.groups, one.bits.forces, one.bits.owes, one.bits.pending)
            for one in clauses
        )
        self._levels = levels

    def judge(self, flags: int, present: int, said_no: dict[int, tuple[str, ...]], undecided: Sequence[Opaque]) -> Situation:
        """Return the situation.

        present  a bit per tool that is there now
        said_no  per tool a person closed, the rules that remember it
        undecided  the opaque conditions that may say no
        """
        closing: dict[int, list[str]] = {place: list(rules) for place, rules in said_no.items()}
        forcing: dict[int, list[Clause]] = {}
        preventing: dict[str, Clause] = {}
        unmet: list[Note] = []
        notes: list[Note] = []
        for clause, place, bars, needs, groups, forces, owes, pending in self._rows:
            if (owes and not flags & owes) or flags & pending:
                preventing[clause.name] = clause
            closed = flags & bars or flags & needs != needs or (groups and not all(flags & group for group in groups))
            if not closed and not flags & forces:
                continue
            bits = clause.bits
            if not present >> place & 1:
                # Of a rule on an absent tool its prevent_stop is left, also that of a force.
                if flags & bits.forces and bits.force_prevents and not closed:
                    preventing[clause.name] = clause
                continue
            if closed:
                closing.setdefault(place, []).append(clause.name)
                if flags & bits.unmet:
                    unmet.append(Note("force_unmet", (self._tools[place],), (clause.name,)))
                elif flags & clause.lapse:
                    notes.append(Note("force_lapses", (self._tools[place],), (clause.name,), (clause.name,)))
            elif flags & bits.forces:
                if flags & bits.unmet and any(one.name == clause.name for one in undecided):
                    notes.append(Note("check_conflict", (self._tools[place],), (clause.name,), (clause.name,)))
                forcing.setdefault(place, []).append(clause)
                if bits.force_prevents:
                    preventing[clause.name] = clause
        if unmet:
            return Situation(fault="conflict", notes=tuple(unmet))
        conflicts = []
        for place in sorted(forcing.keys() & closing.keys()):
            names = tuple(clause.name for clause in forcing[place])
            if place not in said_no:
                conflicts.append(Note("force_closed", (self._tools[place],), names, tuple(closing[place])))
                continue
            notes.extend(Note("force_lapses", (self._tools[place],), (name,), said_no[place]) for name in names)
            for clause in forcing.pop(place):
                preventing.pop(clause.name, None)
        if conflicts:
            return Situation(fault="conflict", notes=tuple(conflicts))
        return self._sort_out(present, closing, forcing, preventing, notes, undecided)

    def _sort_out(
        self,
        present: int,
        closing: dict[int, list[str]],
        forcing: dict[int, list[Clause]],
        preventing: dict[str, Clause],
        notes: list[Note],
        undecided: Sequence[Opaque],
    ) -> Situation:
        final, forced, may_lapse = self._final, None, False
        if forcing:
            forced = min(forcing, key=lambda place: (-self._levels[place], place))
            notes.extend(self._rivals(forced, forcing))
            names = {clause.name for clause in forcing[forced]}
            notes.extend(
                Note("check_conflict", (self._tools[forced],), tuple(sorted(names - {one.name})), (one.name,))
                for one in undecided
                if forced in one.targets and names - {one.name}
            )
            # A force whose own check says no is not given, and then the other tools are open.
            may_lapse = any(forced in one.targets and names == {one.name} for one in undecided)
        if forced == final:
            own = {clause.name for clause in forcing[final]}
            overridden = tuple(name for name in preventing if name not in own)
            if overridden:
                notes.append(Note("obligation_overridden", (FINAL_ANSWER,), tuple(own), overridden))
        may_stop = final not in closing and (not preventing or forced == final)
        if forced is not None and not may_lapse:
            tools: tuple[int, ...] = (forced,) if forced != final else ()
        else:
            tools = tuple(place for place in range(final) if place not in closing and present >> place & 1)
        fault: Fault | None = None if tools or may_stop else "dead_end"
        return Situation(tools, may_stop, fault=fault, forced=forced, notes=tuple(notes))

    def _rivals(self, forced: int, forcing: dict[int, list[Clause]]) -> Iterator[Note]:
        """What is to be said when more than one tool is forced."""
        if len(forcing) == 1:
            return
        level = self._levels[forced]
        tied = [place for place in sorted(forcing) if self._levels[place] == level]
        if len(tied) > 1:
            rules = tuple(clause.name for place in tied for clause in forcing[place])
            yield Note("equal_forces", tuple(self._tools[place] for place in tied), rules)
        own = max(clause.priority for clause in forcing[forced])
        for place in sorted(forcing):
            if place not in tied and max(clause.priority for clause in forcing[place]) >= own:
                winners = tuple(clause.name for clause in forcing[forced])
                losers = tuple(clause.name for clause in forcing[place])
                yield Note("foreign_priority", (self._tools[forced], self._tools[place]), winners, losers)

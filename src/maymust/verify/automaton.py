"""A policy as an automaton: states are integers, tools are the model's choice, outcomes the world's."""

from __future__ import annotations

from collections.abc import Sequence

from maymust.core.bits import BitGuard
from maymust.core.compiled import CompiledPolicy, Source
from maymust.core.history import History
from maymust.core.requirement import BoundRequirement
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER, ToolLike
from maymust.verify.opaque import Opaque, opaque_of
from maymust.verify.situation import Clause, Judge, Situation
from maymust.verify.witness import Event
from maymust.verify.world import World


class Automaton:
    """The states of a policy in a world, and the ways between them.

    A state is an integer: that of the compiled policy, and above it a few bits for what a person remembered and what was loaded.

    tools    names of the policy's tools in order, `final_answer` last; everywhere else tools are places in this list
    start    the state before any step
    clauses  the rules
    opaque   the conditions that are taken to hold here, since only a run can tell
    """

    def __init__(self, policy: Source, world: World) -> None:
        self.world = world
        self.compiled: CompiledPolicy = CompiledPolicy(policy, opaque="open")
        self.tools: tuple[str, ...] = self.compiled.tools
        self.final: int = len(self.tools) - 1
        self._place = {name: place for place, name in enumerate(self.tools)}
        self.requirements: tuple[BoundRequirement, ...] = tuple(one for one in policy.requirements if one.enabled)
        self._flags = (1 << self.compiled.flags.width) - 1
        self._extra = self.compiled.width
        self._read_persons()
        self._read_loads()
        self._read_opaque(getattr(policy, "specs", ()))
        self._read_clauses()
        self._events = tuple(self._events_of(place) for place in range(self.final))
        self._no_failures_count = not any(atom.failures for _, guard in self.compiled.guards for atom in guard.atoms())
        self._known: dict[int, Situation] = {}
        self._bars: dict[int, int | None] = {}
        self.start: int = self.compiled.start()

    # --- construction ---
    def _bit(self) -> int:
        bit = 1 << self._extra
        self._extra += 1
        return bit

    def _read_persons(self) -> None:
        """Give a bit for yes and one for no to each tool whose question may be answered for good."""
        self._remembered: dict[int, tuple[int, int, bool]] = {}
        self._rememberers: dict[int, tuple[str, ...]] = {}
        self.asked: dict[int, tuple[str, ...]] = {}
        """Per tool the requirements that ask a person about it."""
        for place, name in enumerate(self.tools[:-1]):
            asking = [one for one in self.requirements if _asks(one, name)]
            if not asking:
                continue
            self.asked[place] = tuple(one.name for one in asking)
            remembering = [one for one in asking if getattr(one, "remember_choices", False)]
            if remembering and name in self.world.may_be_denied:
                # A yes is not kept for a call that was perhaps not asked about.
                keeps_yes = not any(getattr(one, "when", None) for one in remembering)
                self._rememberers[place] = tuple(one.name for one in remembering)
                yes, no = self._bit(), self._bit()
                self._remembered[place] = (yes if keeps_yes else 0, no, len(remembering) < len(asking))
        self._any_no = sum(no for _, no, _ in self._remembered.values())

    def _read_loads(self) -> None:
        self._present = sum(1 << self._place[name] for name in {*self.world.present, FINAL_ANSWER})
        self._loaders = {
            self._place[loader]: (self._bit(), sum(1 << self._place[name] for name in loaded))
            for loader, loaded in self.world.loads.items()
        }
        self._any_load = sum(bit for bit, _ in self._loaders.values())

    def _read_opaque(self, specs: Sequence[ToolLike]) -> None:
        """Give a bit to each condition that stays true once it has passed: set by the first call of a tool that it may close."""
        self.opaque: tuple[Opaque, ...] = opaque_of(self.requirements, self.tools, specs)
        self._passed = {one: self._bit() for one in self.opaque if one.stable_once_true}
        self._passing = {
            place: sum(bit for one, bit in self._passed.items() if place in one.targets)
            for place in {place for one in self._passed for place in one.targets}
        }
        self._any_passed = sum(self._passed.values())

    def _read_clauses(self) -> None:
        """The rules as masks, and what all rules on a tool say together as long as nothing is forced."""
        bits = self.compiled.flags.bits
        priorities = {one.name: one.priority for one in self.requirements}
        self.levels: dict[int, int] = {}
        for place, names in self.asked.items():
            self.levels[place] = max(priorities[name] for name in names)
        clauses = []
        for name, guard in self.compiled.guards:
            place = self._place[guard.target]
            self.levels[place] = max(self.levels.get(place, 0), priorities[name])
            masks = BitGuard(guard, self.compiled.flags.bits, self._place, self._place)
            clauses.append(Clause(name, priorities[name], guard, masks, bits, place))
        self.clauses: tuple[Clause, ...] = tuple(clauses)
        self._judge = Judge(self.tools, self.clauses, self.levels)
        self._attention = self._owes = self._pending = 0
        closers: dict[int, tuple[int, int, tuple[int, ...]]] = {}
        for clause in self.clauses:
            masks = clause.bits
            self._attention |= masks.forces | masks.unmet
            self._owes |= masks.owes
            self._pending |= masks.pending
            bars, needs, groups = closers.get(clause.place, (0, 0, ()))
            closers[clause.place] = (bars | masks.bars, needs | masks.needs, groups + masks.groups)
        self._closers = tuple((place, *closers.get(place, (0, 0, ()))) for place in range(len(self.tools)))

    def _events_of(self, place: int) -> tuple[Event, ...]:
        name = self.tools[place]
        failed = (Event(name, Outcome.FAILED),) if name in self.world.may_fail else ()
        denied = (Event(name, Outcome.DENIED),) if name in self.world.may_be_denied else ()
        return (Event(name), *failed, *denied)

    # --- reading ---
    def place(self, name: str) -> int:
        """The place of a tool."""
        return self._place[name]

    def present(self, state: int) -> int:
        """A bit per tool that is there."""
        here = self._present
        if state & self._any_load:
            for bit, loaded in self._loaders.values():
                if state & bit:
                    here |= loaded
        return here

    def flags(self, state: int) -> int:
        """What the rules see of a state."""
        return state & self._flags

    def situation(self, state: int) -> Situation:
        """What a state means. States that no rule tells apart share one object."""
        key = state & (self._flags | self._any_no | self._any_load | self._any_passed)
        known = self._known.get(key)
        if known is None:
            flags = state & self._flags
            if flags & self._attention or state & self._any_no:
                known = self._judge.judge(flags, self.present(state), self.said_no(state), self.undecided(state))
            else:
                known = self._calm(flags, self.present(state))
            self._known[key] = known
        return known

    @property
    def remembered(self) -> frozenset[int]:
        """The tools whose question may be answered for good."""
        return frozenset(self._remembered)

    def memory_bits(self, place: int) -> int:
        """The bits that say how the question about a tool was answered for good."""
        yes, no, _ = self._remembered.get(place, (0, 0, False))
        return yes | no

    @property
    def world_has_a_say(self) -> bool:
        """Whether some outcome other than success changes anything."""
        failures = any(atom.failures for _, guard in self.compiled.guards for atom in guard.atoms())
        return bool((failures and self.world.may_fail) or self._remembered)

    def settled(self, state: int) -> int:
        """The state after many steps that change nothing but what the last calls were."""
        return self.compiled.settled(state)

    def said_no(self, state: int) -> dict[int, tuple[str, ...]]:
        """Per tool that a person closed for good, the rules that remember it."""
        return {place: self._rememberers[place] for place, (_, no, _) in self._remembered.items() if state & no}

    def is_barred(self, state: int, place: int) -> bool:
        """Whether a tool is closed by something that no call undoes, in a settled state."""
        bars = self.bars_of(place)
        return bars is None or bool(state & bars)

    def bars_of(self, place: int) -> int | None:
        """The bits any of which closes a tool for good in a settled state; None when it is closed in any state."""
        if place not in self._bars:
            _, bars, _, groups = self._closers[place]
            self._bars[place] = None if 0 in groups else bars | self._remembered.get(place, (0, 0, False))[1]
        return self._bars[place]

    def undecided(self, state: int) -> tuple[Opaque, ...]:
        """The opaque conditions that may say no in a state."""
        if not self._any_passed & state:
            return self.opaque
        return tuple(one for one in self.opaque if not state & self._passed.get(one, 0))

    def _calm(self, flags: int, present: int) -> Situation:
        """The situation where nothing is forced and no person has closed anything."""
        tools = [
            place
            for place, bars, needs, groups in self._closers
            if not flags & bars and flags & needs == needs and all(flags & group for group in groups) and present >> place & 1
        ]
        may_stop = False
        if tools and tools[-1] == self.final:
            tools.pop()
            may_stop = flags & self._owes == self._owes and not flags & self._pending
        return Situation(tuple(tools), may_stop, fault=None if tools or may_stop else "dead_end")

    # --- moving ---
    def events(self, place: int) -> tuple[Event, ...]:
        """How a call of a tool may come back; success first."""
        return self._events[place]

    def step(self, state: int, place: int, outcome: Outcome = Outcome.OK) -> int:
        """The state after a call."""
        name = self.tools[place]
        after = self.compiled.step(state, name, outcome)
        if place in self._remembered:
            yes, no, _ = self._remembered[place]
            if not state & (yes | no):
                after |= no if outcome is Outcome.DENIED else yes
        if outcome is Outcome.OK and place in self._loaders:
            after |= self._loaders[place][0]
        if outcome is not Outcome.DENIED and place in self._passing:
            after |= self._passing[place]
        return after

    def targets(self, state: int, place: int) -> tuple[tuple[Event, int], ...]:
        """Where a call may lead: each outcome with its state, success first."""
        events = self._events[place]
        if len(events) == 1:
            return ((events[0], self.step(state, place)),)
        return tuple(
            (event, state if event.outcome is Outcome.FAILED and self._ignores_failures(place) else self.step(state, place, event.outcome))
            for event in events
            if event.outcome is not Outcome.DENIED or self._may_be_denied(state, place)
        )

    def _ignores_failures(self, place: int) -> bool:
        """Whether a failed call of a tool changes nothing."""
        return self._no_failures_count and place not in self._remembered and place not in self._passing

    def _may_be_denied(self, state: int, place: int) -> bool:
        if place not in self._remembered:
            return True
        yes, _, asked_again = self._remembered[place]
        return asked_again or not state & yes

    def state_of(self, history: History) -> int:
        """The state after a history."""
        state = self.compiled.state_of(history)
        if self._remembered or self._loaders or self._passing:
            extra = self.start
            for step in history:
                place = self._place.get(step.tool)
                if place is not None:
                    extra = self.step(extra, place, step.outcome)
            width = self.compiled.width
            state |= extra >> width << width
        return state


def _asks(requirement: BoundRequirement, tool: str) -> bool:
    asks_about = getattr(requirement, "asks_about", None)
    return bool(callable(asks_about) and asks_about(tool))

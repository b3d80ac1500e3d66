"""A slow second opinion on verification. It shares no code with the library and knows no compiled form.

A policy is a row of `acceptance.yaml`: plain dicts. Every rule becomes a small machine of its own; states are tuples of the machines'
states; everything is computed by naive fixpoints over the whole product. Small policies only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

FINAL = "final_answer"
OTHER = "·"
Event = tuple[str, str]
State = tuple[Any, ...]


@dataclass
class Voice:
    """What one rule says about one tool in a state."""

    rule: str
    priority: int
    target: str
    closed: bool = False
    forced: bool = False
    prevents: bool = False
    raises: bool = False
    lapses: bool = False
    yields: bool = False

    @property
    def is_silent(self) -> bool:
        return not (self.closed or self.forced or self.prevents or self.raises)


class Conditional:
    """A conditional rule as a machine."""

    def __init__(self, name: str, params: Mapping[str, Any]) -> None:
        self.name = name
        self.target: str = params["conditional"]
        self.p = params
        self.counted = ("ok",) if params.get("only_success_invocations", True) else ("ok", "failed")
        self.after = [(one,) for one in params.get("only_after", ())]
        if params.get("only_after_any"):
            self.after.append(tuple(params["only_after_any"]))
        self.before = tuple(params.get("only_before", ()))
        self.force_after = tuple(params.get("force_after", ()))
        self.step = params.get("force_at_step")
        self.least = params.get("min_invocations") or 0
        self.most = params.get("max_invocations")
        self.attempts = params.get("max_attempts")
        self.consecutive = params.get("consecutive_allowed", True)
        self.follows = tuple(params.get("followed_by", ()))
        self.cooldown = params.get("cooldown") or 0
        self.watched = frozenset(one for group in self.after for one in group) | frozenset(self.before)
        self.lasts = frozenset(self.force_after) | (frozenset() if self.consecutive else {self.target})

    def start(self) -> State:
        # count, seen, last, steps, attempts, others since the target, owed by followed_by
        return (0, frozenset(), None, 0, 0, self.cooldown, frozenset())

    def after_event(self, state: State, event: Event) -> State:
        count, seen, last, steps, attempts, since, owed = state
        tool, outcome = event
        if tool == self.target and outcome in ("ok", "failed") and self.attempts is not None:
            attempts = min(attempts + 1, self.attempts)
        if outcome in self.counted:
            if tool == self.target:
                count = min(count + 1, max(self.least, self.most or 0))
            if tool in self.watched:
                seen = seen | {tool}
            last = tool if tool in self.lasts else OTHER
            if self.step is not None:
                steps = min(steps + 1, self.step)
            since = 0 if tool == self.target else min(since + 1, self.cooldown)
            owed = owed - {tool}
            if tool == self.target:
                owed = owed | frozenset(self.follows)
        return (count, seen, last, steps, attempts, since, owed)

    def speaks(self, state: State) -> Iterator[Voice]:
        count, seen, last, steps, attempts, since, owed = state
        closed = (
            (not self.consecutive and last == self.target)
            or (self.most is not None and count >= self.most)
            or (self.attempts is not None and attempts >= self.attempts)
            or since < self.cooldown
            or any(one in seen for one in self.before)
            or any(not any(one in seen for one in group) for group in self.after)
        )
        at_step = self.step is not None and steps + 1 == self.step
        triggered = last is not None and last in self.force_after
        forced = not closed and (at_step or triggered)
        yield Voice(
            self.name,
            self.p.get("priority", 10),
            self.target,
            closed=closed,
            forced=forced,
            prevents=count < self.least or (forced and self.p.get("force_prevent_stop", True)) or bool(owed),
            raises=closed and at_step,
            lapses=closed and triggered and last != self.target,
        )


class Ask:
    """A rule that asks a person, perhaps once and for all."""

    def __init__(self, name: str, params: Mapping[str, Any]) -> None:
        self.name = name
        self.tools = tuple(params["ask"])
        self.remembers = params.get("remember_choices", False)
        self.priority = params.get("priority", 10)

    def start(self) -> State:
        return tuple(None for _ in self.tools)

    def after_event(self, state: State, event: Event) -> State:
        tool, outcome = event
        if not self.remembers:
            return state
        answer = outcome != "denied"
        return tuple(answer if name == tool and was is None else was for name, was in zip(self.tools, state, strict=True))

    def speaks(self, state: State) -> Iterator[Voice]:
        for name, answer in zip(self.tools, state, strict=True):
            yield Voice(self.name, self.priority, name, closed=answer is False, yields=True)

    def may_deny(self, tool: str, state: State) -> bool | None:
        """None when it has nothing to do with the tool."""
        return state[self.tools.index(tool)] is not True if tool in self.tools else None


@dataclass
class Permit:
    """The verdicts of a state, and what is to be said about them."""

    allowed: tuple[str, ...] = ()
    forced: str | None = None
    fault: str | None = None
    notes: set[tuple[Any, ...]] = field(default_factory=set)
    spoke: frozenset[str] = frozenset()


class Brute:
    """Everything about one small policy."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.tools: list[str] = list(row["tools"])
        self.all = [*self.tools, FINAL]
        self.rules: list[Any] = [
            Conditional(name, params) if "conditional" in params else Ask(name, params) for name, params in row["rules"].items()
        ]
        self.may_fail = frozenset(row.get("may_fail", ()))
        self.may_be_denied = frozenset(row.get("may_be_denied", ()))
        self.max_turns: int | None = row.get("max_turns")
        self._permits: dict[State, Permit] = {}

    # --- the product ---
    @cached_property
    def start(self) -> State:
        return tuple(rule.start() for rule in self.rules)

    def after(self, state: State, event: Event) -> State:
        return tuple(rule.after_event(own, event) for rule, own in zip(self.rules, state, strict=True))

    def outcomes(self, state: State, tool: str) -> list[str]:
        outcomes = ["ok"]
        if tool in self.may_fail:
            outcomes.append("failed")
        if tool in self.may_be_denied:
            said = [rule.may_deny(tool, own) for rule, own in zip(self.rules, state, strict=True) if isinstance(rule, Ask)]
            asked = [one for one in said if one is not None]
            if not asked or any(asked):
                outcomes.append("denied")
        return outcomes

    def permit(self, state: State) -> Permit:
        if state not in self._permits:
            self._permits[state] = self._permit(state)
        return self._permits[state]

    def _permit(self, state: State) -> Permit:
        voices = [voice for rule, own in zip(self.rules, state, strict=True) for voice in rule.speaks(own)]
        result = Permit(spoke=frozenset(voice.rule for voice in voices if not voice.is_silent))
        result.notes = {("force_lapses", voice.rule) for voice in voices if voice.lapses}
        unmet = {("force_unmet", voice.rule) for voice in voices if voice.raises}
        if unmet:
            result.fault = "conflict"
            result.notes = unmet
            return result
        of = {name: [voice for voice in voices if voice.target == name] for name in self.all}
        closing = {name: [voice for voice in of[name] if voice.closed] for name in self.all}
        forcing = {name: [voice for voice in of[name] if voice.forced] for name in self.all}
        preventing = [voice for voice in voices if voice.prevents]
        conflicts: set[tuple[Any, ...]] = set()
        for name in self.all:
            if closing[name] and forcing[name]:
                if not any(voice.yields for voice in closing[name]):
                    conflicts.add(("force_closed", name, frozenset(voice.rule for voice in forcing[name])))
                    continue
                result.notes |= {("force_lapses", voice.rule) for voice in forcing[name]}
                preventing = [voice for voice in preventing if voice not in forcing[name]]
                forcing[name] = []
        if conflicts:
            result.fault, result.notes = "conflict", conflicts
            return result
        self._fold(result, of, closing, forcing, preventing)
        return result

    def _fold(
        self,
        result: Permit,
        of: Mapping[str, list[Voice]],
        closing: Mapping[str, list[Voice]],
        forcing: Mapping[str, list[Voice]],
        preventing: list[Voice],
    ) -> None:
        level = {name: max(voice.priority for voice in of[name]) for name in self.all if of[name]}
        candidates = [name for name in self.all if forcing[name]]
        if candidates:
            top = max(level[name] for name in candidates)
            tied = [name for name in candidates if level[name] == top]
            result.forced = tied[0]
            own = {name: max(voice.priority for voice in forcing[name]) for name in candidates}
            if len(tied) > 1:
                result.notes.add(("equal_forces", frozenset(tied)))
            for name in candidates:
                if name not in tied and own[name] >= own[result.forced]:
                    result.notes.add(("foreign_priority", result.forced, name))
        if result.forced == FINAL:
            overridden = [voice for voice in preventing if voice not in forcing[FINAL]]
            if overridden:
                result.notes.add(("overridden", frozenset(voice.rule for voice in overridden)))
        open_ = [name for name in self.all if not closing[name]]
        if preventing and result.forced != FINAL:
            open_ = [name for name in open_ if name != FINAL]
        if result.forced is not None:
            open_ = [name for name in open_ if name in (result.forced, FINAL)]
        result.allowed = tuple(open_)
        if not open_:
            result.fault = "dead_end"

    # --- what is reachable ---
    @cached_property
    def paths(self) -> dict[State, tuple[Event, ...]]:
        """Every reachable state with a shortest way to it, nearest first."""
        paths: dict[State, tuple[Event, ...]] = {self.start: ()}
        frontier = [self.start]
        while frontier:
            found: list[State] = []
            for state in frontier:
                for event in self.events(state):
                    target = self.after(state, event)
                    if target not in paths:
                        paths[target] = (*paths[state], event)
                        found.append(target)
            frontier = found
        return paths

    def moves(self, state: State) -> Iterator[tuple[str, list[State]]]:
        """Per callable tool the states it may lead to; the first is that of success."""
        if self.permit(state).fault is None:
            for tool in self.permit(state).allowed:
                if tool != FINAL:
                    yield tool, [self.after(state, (tool, outcome)) for outcome in self.outcomes(state, tool)]

    def events(self, state: State) -> Iterator[Event]:
        if self.permit(state).fault is None:
            for tool in self.permit(state).allowed:
                if tool != FINAL:
                    yield from ((tool, outcome) for outcome in self.outcomes(state, tool))

    def may_stop(self, state: State) -> bool:
        permit = self.permit(state)
        return permit.fault is None and FINAL in permit.allowed

    @cached_property
    def distance(self) -> dict[State, int]:
        """Fewest steps to the end, the final answer counted, when the world is kind."""
        return self._distances(set(self.paths))

    def _distances(self, inside: set[State], *, careful: bool = False) -> dict[State, int]:
        """`careful`: only calls all of whose outcomes stay inside."""
        known = {state: 1 for state in inside if self.may_stop(state)}
        changed = True
        while changed:
            changed = False
            for state in inside:
                for _, targets in self.moves(state):
                    if careful and not all(target in inside for target in targets):
                        continue
                    best = min((known[target] + 1 for target in targets if target in known), default=None)
                    if best is not None and best < known.get(state, best + 1):
                        known[state], changed = best, True
        return known

    @cached_property
    def safe(self) -> set[State]:
        """The states from which a supervisor can keep the end reachable, whatever the outcomes."""
        inside = set(self.paths)
        while True:
            good = set(self._distances(inside, careful=True))
            if good == inside:
                return inside
            inside = good

    @cached_property
    def careful_distance(self) -> dict[State, int]:
        return self._distances(self.safe, careful=True)

    @cached_property
    def guaranteed(self) -> dict[State, int]:
        """Steps within which the end can be forced whatever the outcomes; absent where it cannot."""
        known = {state: 1 for state in self.paths if self.may_stop(state)}
        changed = True
        while changed:
            changed = False
            for state in self.paths:
                for _, targets in self.moves(state):
                    if all(target in known for target in targets):
                        worst = max(known[target] for target in targets) + 1
                        if worst < known.get(state, worst + 1):
                            known[state], changed = worst, True
        return known

    # --- what the report has to say ---
    @cached_property
    def notes(self) -> dict[tuple[Any, ...], int]:
        """Every note with the length of the shortest way to it."""
        found: dict[tuple[Any, ...], int] = {}
        for state, path in self.paths.items():
            for note in self.permit(state).notes:
                found[note] = min(found.get(note, len(path)), len(path))
        return found

    @property
    def min_steps(self) -> int | None:
        return self.distance.get(self.start)

    @property
    def is_unreachable(self) -> bool:
        return self.min_steps is None or (self.max_turns is not None and self.min_steps > self.max_turns)

    def nearest(self, states: Iterable[State]) -> int | None:
        return min((len(self.paths[state]) for state in states), default=None)

    @cached_property
    def dead_ends(self) -> list[State]:
        return [state for state in self.paths if self.permit(state).fault == "dead_end"]

    @cached_property
    def doomed(self) -> list[State]:
        return [state for state in self.paths if state not in self.distance]

    @cached_property
    def livelocks(self) -> list[State]:
        """Doomed states from which no dead end and no conflict is reachable either."""
        leading = {state for state in self.paths if self.permit(state).fault is not None}
        changed = True
        while changed:
            changed = False
            for state in self.paths:
                if state not in leading and any(target in leading for _, targets in self.moves(state) for target in targets):
                    leading.add(state)
                    changed = True
        return [state for state in self.doomed if state not in leading]

    @property
    def conflict(self) -> int | None:
        kinds = ("force_unmet", "force_closed", "equal_forces", "overridden")
        return min((length for note, length in self.notes.items() if note[0] in kinds), default=None)

    @property
    def verdict(self) -> tuple[str, int | None]:
        """The verdict, and the length of its witness."""
        if self.conflict is not None:
            return "conflict", self.conflict
        if self.is_unreachable:
            return "unreachable", 0
        if self.dead_ends:
            return "dead_end", self.nearest(self.dead_ends)
        if self.doomed:
            return "livelock", self.nearest(self.doomed)
        return "ok", None

    @property
    def supervisor_exists(self) -> bool:
        steps = self.careful_distance.get(self.start)
        return steps is not None and (self.max_turns is None or steps <= self.max_turns)

    @property
    def dead_tools(self) -> tuple[str, ...]:
        callable_ = {tool for state in self.paths if self.permit(state).fault is None for tool in self.permit(state).allowed}
        return tuple(tool for tool in self.tools if tool not in callable_)

    @property
    def silent_rules(self) -> set[str]:
        spoke = {name for state in self.paths for name in self.permit(state).spoke}
        return {rule.name for rule in self.rules if isinstance(rule, Conditional)} - spoke

    # --- supervision ---
    def grade(self, state: State, left: int | None) -> int:
        """3: the end can be forced in time; 2: it stays reachable whatever the outcomes; 1: it is reachable; 0: it is not."""
        if left is None:
            return 2 if state in self.safe else int(state in self.distance)
        if self.guaranteed.get(state, left + 1) <= left:
            return 3
        if self.careful_distance.get(state, left + 1) <= left:
            return 2
        return int(self.distance.get(state, left + 1) <= left)

    def supervised(self, state: State, left: int | None = None) -> tuple[str, ...]:
        """The tools that a supervised permit allows, with `left` turns to go."""
        permit = self.permit(state)
        after = None if left is None else left - 1
        worst = {tool: min(self.grade(target, after) for target in targets) for tool, targets in self.moves(state)}
        best = {tool: max(self.grade(target, after) for target in targets) for tool, targets in self.moves(state)}
        ways = list(worst.values())
        if FINAL in permit.allowed and (left is None or left > 0):
            ways.append(2 if left is None else 3)
        aim, measure = max(ways, default=0), worst
        if aim == 0:
            aim, measure = max(best.values(), default=0), best
        return tuple(tool for tool in permit.allowed if tool == FINAL or measure[tool] >= aim)

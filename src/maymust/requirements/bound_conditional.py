"""A conditional requirement over known tools: which rule it gives in which situation."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from maymust.core.bounds import Bounds
from maymust.core.guard import Atom, CountedAtom, Guard, LastAtom, PendingAtom, RecentAtom, StepAtom
from maymust.core.history import History
from maymust.core.requirement import RunView
from maymust.core.rule import Rule
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import ForceUnmetError
from maymust.requirements.predicate import Check
from maymust.requirements.situation import Closed, Owed, situation_text
from maymust.requirements.wording import times

_REMEMBERED = 1024


class BoundConditional:
    """The bound form of `ConditionalRequirement`. Its rules are made once per situation, so equal situations give the same object.

    after        groups of names, each of which has to have occurred
    before       names, none of which may have occurred
    least, most  bounds on the number of invocations (`most` None: no limit)
    attempts     limit of ok and failed invocations together
    cooldown     so many other steps have to come between two invocations
    follows      groups of names; after an invocation, one of each group has to occur before the end
    failures     failed invocations count as well
    """

    lapses_force: ClassVar[bool] = False

    def __init__(
        self,
        *,
        name: str,
        priority: int,
        enabled: bool,
        target: str,
        after: tuple[tuple[str, ...], ...],
        before: tuple[str, ...],
        force_after: frozenset[str],
        force_at_step: int | None,
        force_prevent_stop: bool,
        least: int,
        most: int | None,
        attempts: int | None,
        cooldown: int,
        follows: tuple[tuple[str, ...], ...],
        failures: bool,
        consecutive: bool,
        checks: tuple[Check, ...],
        reason: str | None,
    ) -> None:
        self.name = name
        self.priority = priority
        self.enabled = enabled
        self.target: str | None = target
        self.tool = target
        self.after = after
        self.before = before
        self.force_after = force_after
        self.force_at_step = force_at_step
        self.force_prevent_stop = force_prevent_stop
        self.least = least
        self.most = most
        self.attempts = attempts
        self.cooldown = cooldown
        self.follows = follows
        self.failures = failures
        self.consecutive = consecutive
        self.checks = checks
        self.reason = reason
        self.uses_memory: bool = bool(checks)
        self._counts = least > 0 or most is not None
        self._made: dict[Any, tuple[Rule, ...]] = {}

    def rules(self, history: History, run: RunView, /) -> tuple[Rule, ...]:
        """The one rule on the target in this history. Raises ForceUnmetError, and PolicyError for a broken check."""
        closed, owed, forced = self._situation(history, run)
        rules = self._made.get((closed, owed, forced))
        if rules is None:
            rules = self._make(closed, owed, forced)
        if closed is not None and self.force_at_step is not None and history.total(self.failures) + 1 == self.force_at_step:
            raise self._unmet(closed, rules[0])
        return rules

    def _situation(self, history: History, run: RunView) -> tuple[Closed | None, Owed, bool]:
        """What closes the tool, which calls are owed, and whether it is forced."""
        failures = self.failures
        count = history.count(self.tool, failures) if self._counts else 0
        owed: Owed = (("min_invocations", ()),) if count < self.least else ()
        if self.follows:
            owed += tuple(("followed_by", group) for group in self.follows if self._is_unanswered(history, group))
        closed: Closed | None = None
        if not self.consecutive and (history.last_invocation if failures else history.last) == self.tool:
            closed = ("consecutive_allowed", None)
        elif self.cooldown and self._rest(history):
            # Not how much of it is left: rules have to be the same wherever the guard's atoms are.
            closed = ("cooldown", self.cooldown)
        elif self.most is not None and count >= self.most:
            closed = ("max_invocations", self.most)
        elif self.attempts is not None and history.count(self.tool, True) >= self.attempts:
            closed = ("max_attempts", self.attempts)
        elif self.before or self.after:
            closed = self._out_of_order(history)
        if closed is None and self.checks:
            closed = self._failing_check(history, run)
        forced = closed is None and (
            (self.force_at_step is not None and history.total(failures) + 1 == self.force_at_step)
            or (bool(self.force_after) and (history.last_invocation if failures else history.last) in self.force_after)
        )
        return closed, owed, forced

    def _rest(self, history: History) -> int:
        """How many other steps are missing until the tool may be called again."""
        since = history.since(self.tool, self.failures)
        return 0 if since is None else max(self.cooldown - since, 0)

    def _is_unanswered(self, history: History, group: tuple[str, ...]) -> bool:
        """True when the tool has occurred, and none of the group since."""
        place = history.last_place(self.tool, self.failures)
        if place is None:
            return False
        later = (history.last_place(name, self.failures) for name in group if name != self.tool)
        return all(other is None or other < place for other in later)

    def _out_of_order(self, history: History) -> Closed | None:
        seen, failures = history.seen, self.failures
        for name in self.before:
            if seen(name, failures):
                return ("only_before", tuple(name for name in self.before if seen(name, failures)))
        for group in self.after:
            if not any(seen(name, failures) for name in group):
                return ("only_after", tuple(group for group in self.after if not any(seen(name, failures) for name in group)))
        return None

    def _failing_check(self, history: History, run: RunView) -> Closed | None:
        for check in self.checks:
            if not check(history, run):
                return ("custom_checks", check)
        return None

    def _make(self, closed: Closed | None, owed: Owed, forced: bool) -> tuple[Rule, ...]:
        rule = Rule(
            self.tool,
            allowed=closed is None,
            reason=self.reason if self.reason is not None else self._words(closed, owed, forced),
            prevent_stop=bool(owed) or (forced and self.force_prevent_stop),
            forced=forced,
        )
        if len(self._made) >= _REMEMBERED:
            self._made.clear()
        return self._made.setdefault((closed, owed, forced), (rule,))

    def _words(self, closed: Closed | None, owed: Owed, forced: bool) -> str | None:
        return situation_text(self.tool, self.name, self.least, self.failures, closed, owed, forced)

    def _unmet(self, closed: Closed, rule: Rule) -> ForceUnmetError:
        check, step = closed[0], self.force_at_step or 0
        return ForceUnmetError(
            f"{self.name} forces {self.tool} at step {step}, and its own {check} forbids it there: {self._words(closed, (), False)}. "
            f"Change force_at_step or {check}",
            tool=self.tool,
            step=step,
            check=check,
            requirement=self.name,
            rule=rule,
        )

    def guard(self) -> Guard:
        """The same conditions as data. Custom checks are left out, which `is_partial` tells."""
        failures, tool = self.failures, self.tool
        bars: list[Atom] = [CountedAtom(name, 1, failures) for name in self.before]
        if not self.consecutive:
            bars.append(LastAtom(tool, failures))
        if self.cooldown:
            bars.append(RecentAtom(tool, self.cooldown, failures))
        if self.most is not None and self.most > 0:
            bars.append(CountedAtom(tool, self.most, failures))
        if self.attempts:
            bars.append(CountedAtom(tool, self.attempts, True))
        step = None if self.force_at_step is None else StepAtom(self.force_at_step, failures)
        forces: list[Atom] = [LastAtom(name, failures) for name in sorted(self.force_after)]
        needs = [tuple(CountedAtom(name, 1, failures) for name in group) for group in self.after]
        return Guard(
            tool,
            bars=tuple(bars),
            # A limit of 0 closes the tool whatever has happened: a group that nothing can satisfy.
            needs=((), *needs) if 0 in (self.most, self.attempts) else tuple(needs),
            forces=(*forces, *(() if step is None else (step,))),
            unmet=step,
            owes=CountedAtom(tool, self.least, failures) if self.least else None,
            pending=tuple(PendingAtom(tool, group, failures) for group in self.follows),
            force_prevents=self.force_prevent_stop,
            is_partial=bool(self.checks),
        )

    def surely_admits(self, tool: str, bounds: Bounds, run: RunView) -> bool:
        """True when this requirement cannot stand in the way of `tool`, however the open calls end."""
        if self.checks:
            return False
        failures = self.failures
        least, most = bounds.count(self.tool, failures) if self._counts else (0, 0)
        if tool == FINAL_ANSWER and (least < self.least or self._may_be_unanswered(bounds)):
            return False
        if tool == self.tool:
            return self._surely_open(bounds, most)
        if self.force_after and not self.force_after.isdisjoint(bounds.last(failures)):
            return False
        if self.force_at_step is not None:
            first, final = bounds.step(failures)
            return not first <= self.force_at_step <= final
        return True

    def _may_be_unanswered(self, bounds: Bounds) -> bool:
        if not self.follows:
            return False
        return bounds.count(self.tool, self.failures)[1] > bounds.history.count(self.tool, self.failures) or any(
            self._is_unanswered(bounds.history, group) for group in self.follows
        )

    def _surely_open(self, bounds: Bounds, most: int) -> bool:
        failures = self.failures
        if self.cooldown and (
            self._rest(bounds.history) or bounds.count(self.tool, failures)[1] > bounds.history.count(self.tool, failures)
        ):
            return False
        if self.attempts is not None and bounds.count(self.tool, True)[1] >= self.attempts:
            return False
        if not self.consecutive and self.tool in bounds.last(failures):
            return False
        if self.most is not None and most >= self.most:
            return False
        if any(bounds.count(name, failures)[1] for name in self.before):
            return False
        return all(any(bounds.count(name, failures)[0] for name in group) for group in self.after)

    def evidence(self, history: History, run: RunView) -> str:
        """The facts the rule rests on: counts of the tools concerned, the last call, the step."""
        kind = "ok or failed" if self.failures else "ok"
        names = [name for group in self.after for name in group] + list(self.before) + ([self.tool] if self._counts else [])
        facts = [f"{name}: {times(history.count(name, self.failures), kind)}" for name in dict.fromkeys(names)]
        if self.attempts is not None:
            facts.append(f"{self.tool}: {times(history.count(self.tool, True), 'ok or failed')}")
        since = history.since(self.tool, self.failures) if self.cooldown or self.follows else None
        if since is not None:
            facts.append(f"last {self.tool}: {since} step{'' if since == 1 else 's'} ago")
        if self.force_after or not self.consecutive:
            last = history.last_invocation if self.failures else history.last
            facts.append(f"last {kind}: {last or 'nothing yet'}")
        if self.force_at_step is not None:
            facts.append(f"step {history.total(self.failures) + 1}")
        return "; ".join(facts)

    def default_reason(self, history: History, run: RunView) -> str | None:
        """What the requirement says by itself here; None when it neither closes its tool nor prevents the end."""
        closed, owed, forced = self._situation(history, run)
        if closed is None and not owed and not (forced and self.force_prevent_stop):
            return None
        return self._words(closed, owed, forced)

    def describe(self) -> dict[str, Any]:
        """Kind and parameters, those at their default left out."""
        said: dict[str, Any] = {
            "only_after": [list(group) if len(group) > 1 else group[0] for group in self.after],
            "only_before": list(self.before),
            "force_after": sorted(self.force_after),
            "force_at_step": self.force_at_step,
            "min_invocations": self.least or None,
            "max_invocations": self.most,
            "max_attempts": self.attempts,
            "cooldown": self.cooldown or None,
            "followed_by": [list(group) if len(group) > 1 else group[0] for group in self.follows],
            "custom_checks": [check.text for check in self.checks],
            "reason": self.reason,
        }
        kept = {key: value for key, value in said.items() if value is not None and value != []}
        switches = {
            "force_prevent_stop": (self.force_prevent_stop, True),
            "only_success_invocations": (not self.failures, True),
            "consecutive_allowed": (self.consecutive, True),
        }
        kept |= {key: value for key, (value, default) in switches.items() if value != default}
        return {"kind": "conditional", "target": self.tool, **kept}

    def named(self, name: str) -> BoundConditional:
        """The same requirement under another name."""
        other = copy.copy(self)
        other.name = name
        other._made = {}
        return other

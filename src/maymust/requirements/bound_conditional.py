"""A conditional requirement over known tools: which rule it gives in which situation."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from maymust.core.bounds import Bounds
from maymust.core.guard import Atom, CountedAtom, Guard, LastAtom, StepAtom
from maymust.core.history import History
from maymust.core.requirement import RunView
from maymust.core.rule import Rule
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import ForceUnmetError
from maymust.requirements.predicate import Check
from maymust.requirements.wording import after_text, before_text, limit_text, owed_text, times

_REMEMBERED = 1024
# What closes the tool: the failing parameter, and what its words need (a limit, names of tools, a check).
_Closed = tuple[str, Any]


class BoundConditional:
    """The bound form of `ConditionalRequirement`. Its rules are made once per situation, so equal situations give the same object.

    after        groups of names, each of which has to have occurred
    before       names, none of which may have occurred
    least, most  bounds on the number of invocations (`most` None: no limit)
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
        self.failures = failures
        self.consecutive = consecutive
        self.checks = checks
        self.reason = reason
        self.uses_memory = bool(checks)
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

    def _situation(self, history: History, run: RunView) -> tuple[_Closed | None, bool, bool]:
        """What closes the tool, whether calls are owed, and whether it is forced."""
        failures = self.failures
        count = history.count(self.tool, failures) if self._counts else 0
        owed = count < self.least
        closed: _Closed | None = None
        if not self.consecutive and (history.last_invocation if failures else history.last) == self.tool:
            closed = ("consecutive_allowed", None)
        elif self.most is not None and count >= self.most:
            closed = ("max_invocations", self.most)
        elif self.before or self.after:
            closed = self._out_of_order(history)
        if closed is None and self.checks:
            closed = self._failing_check(history, run)
        forced = closed is None and (
            (self.force_at_step is not None and history.total(failures) + 1 == self.force_at_step)
            or (bool(self.force_after) and (history.last_invocation if failures else history.last) in self.force_after)
        )
        return closed, owed, forced

    def _out_of_order(self, history: History) -> _Closed | None:
        seen, failures = history.seen, self.failures
        for name in self.before:
            if seen(name, failures):
                return ("only_before", tuple(name for name in self.before if seen(name, failures)))
        for group in self.after:
            if not any(seen(name, failures) for name in group):
                return ("only_after", tuple(group for group in self.after if not any(seen(name, failures) for name in group)))
        return None

    def _failing_check(self, history: History, run: RunView) -> _Closed | None:
        for check in self.checks:
            if not check(history, run):
                return ("custom_checks", check)
        return None

    def _make(self, closed: _Closed | None, owed: bool, forced: bool) -> tuple[Rule, ...]:
        rule = Rule(
            self.tool,
            allowed=closed is None,
            reason=self.reason if self.reason is not None else self._words(closed, owed, forced),
            prevent_stop=owed or (forced and self.force_prevent_stop),
            forced=forced,
        )
        if len(self._made) >= _REMEMBERED:
            self._made.clear()
        return self._made.setdefault((closed, owed, forced), (rule,))

    def _words(self, closed: _Closed | None, owed: bool, forced: bool) -> str | None:
        """The reason in the requirement's own words: what closes the tool, and what is still owed."""
        if closed is None:
            return self._open_words(owed, forced)
        check, detail = closed
        if check == "consecutive_allowed":
            text = (
                f"{self.tool} may not be called twice in a row, so another tool has to {'be called' if self.failures else 'succeed'} first"
            )
        elif check == "max_invocations":
            text = limit_text(self.tool, detail)
        elif check == "only_before":
            text = before_text(self.tool, detail)
        elif check == "only_after":
            text = after_text(detail, self.failures)
        else:
            text = f"the check {detail.text} does not hold" if detail.is_named else f"a condition of {self.name} does not hold"
        return f"{text}; {owed_text(self.tool, self.least, self.failures)} before the end" if owed else text

    def _open_words(self, owed: bool, forced: bool) -> str | None:
        if forced:
            return f"{self.tool} has to be called now"
        return f"{owed_text(self.tool, self.least, self.failures)} before the end" if owed else None

    def _unmet(self, closed: _Closed, rule: Rule) -> ForceUnmetError:
        check, step = closed[0], self.force_at_step or 0
        return ForceUnmetError(
            f"{self.name} forces {self.tool} at step {step}, and its own {check} forbids it there: {self._words(closed, False, False)}. "
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
        if self.most is not None and self.most > 0:
            bars.append(CountedAtom(tool, self.most, failures))
        step = None if self.force_at_step is None else StepAtom(self.force_at_step, failures)
        forces: list[Atom] = [LastAtom(name, failures) for name in sorted(self.force_after)]
        needs = [tuple(CountedAtom(name, 1, failures) for name in group) for group in self.after]
        return Guard(
            tool,
            bars=tuple(bars),
            # A limit of 0 closes the tool whatever has happened: a group that nothing can satisfy.
            needs=((), *needs) if self.most == 0 else tuple(needs),
            forces=(*forces, *(() if step is None else (step,))),
            unmet=step,
            owes=CountedAtom(tool, self.least, failures) if self.least else None,
            force_prevents=self.force_prevent_stop,
            is_partial=bool(self.checks),
        )

    def surely_admits(self, tool: str, bounds: Bounds, run: RunView) -> bool:
        """True when this requirement cannot stand in the way of `tool`, however the open calls end."""
        if self.checks:
            return False
        failures = self.failures
        least, most = bounds.count(self.tool, failures) if self._counts else (0, 0)
        if tool == FINAL_ANSWER and least < self.least:
            return False
        if tool == self.tool:
            return self._surely_open(bounds, most)
        if self.force_after and not self.force_after.isdisjoint(bounds.last(failures)):
            return False
        if self.force_at_step is not None:
            first, final = bounds.step(failures)
            return not first <= self.force_at_step <= final
        return True

    def _surely_open(self, bounds: Bounds, most: int) -> bool:
        failures = self.failures
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

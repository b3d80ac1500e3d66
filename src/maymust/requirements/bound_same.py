"""A conditional requirement over known tools whose conditions hold for each value of a parameter by itself."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from maymust.core.bounds import Bounds
from maymust.core.fragment import Fragment, has_value
from maymust.core.guard import CountedAtom, Guard, PendingAtom
from maymust.core.history import History
from maymust.core.requirement import RunView
from maymust.core.rule import Rule
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.requirements.keyed_calls import Conditions, KeyedCalls, Places, Standing
from maymust.requirements.same import Same
from maymust.requirements.wording import after_text, followed_with_text, limit_text, listed, never_closed_text, times

_REMEMBERED = 256
_FEW = 32
_SHOWN = 5


class BoundSame:
    """The bound form of `ConditionalRequirement(..., same=...)`. Its one rule leaves the target the values whose conditions hold.

    Equal values give the very same rule, in whatever run, as long as they are few.
    """

    lapses_force: ClassVar[bool] = False
    uses_memory: ClassVar[bool] = False

    def __init__(
        self,
        conditions: Conditions,
        same: Same,
        places: Places,
        schema: Mapping[str, Any],
        *,
        name: str,
        priority: int,
        enabled: bool,
        reason: str | None,
    ) -> None:
        self.name = name
        self.priority = priority
        self.enabled = enabled
        self.target: str | None = conditions.target
        self.tool: str = conditions.target
        self.same = same
        self.conditions = conditions
        self.reason = reason
        self.narrows: tuple[str, str] = (self.tool, same.own)
        self.is_steady: bool = not conditions.follows
        """Its rules differ in nothing but their values, as long as they allow."""
        self._places = places
        self._schema = schema
        self._watched = frozenset((self.tool, *conditions.others))
        self._origin = f"{same.own} has to be a value that {listed(self._clauses())}" if conditions.after or conditions.closes else None
        self._made: dict[Any, tuple[Rule, ...]] = {}

    def _clauses(self) -> Iterator[str]:
        """`read took as path`, `write was not called with yet`."""
        conditions, theirs = self.conditions, self.same.theirs
        for group in conditions.after:
            yield f"{listed(group, 'or')} took as {theirs}"
        if conditions.before:
            yield f"{listed(conditions.before, 'or')} did not take as {theirs}"
        for limit, failed in ((conditions.most, ""), (conditions.attempts, ", failed calls included")):
            if limit is not None:
                yield never_closed_text(self.tool, limit) + failed

    # --- rules ---
    def rules(self, history: History, run: RunView, /) -> tuple[Rule, ...]:
        """The one rule on the target: the values it may have, or a denial while there are none."""
        calls = history.derived(self, self._new_log)
        number = calls.calls(history)
        kept = calls.kept.get(self)
        if kept is not None and kept[0] == number:
            known: tuple[Rule, ...] = kept[1]
            return known
        made = self._make(calls.after(number))
        calls.kept[self] = (number, made)
        return made

    def _new_log(self) -> KeyedCalls:
        return KeyedCalls(self.conditions, self._places)

    def _standing(self, history: History) -> Standing:
        calls = history.derived(self, self._new_log)
        return calls.after(calls.calls(history))

    def _make(self, standing: Standing) -> tuple[Rule, ...]:
        made = self._made.get(standing.key)
        if made is None:
            made = (self._rule(standing),)
            if sum(map(len, (standing.left or (), standing.closed, *standing.owed))) <= _FEW:
                if len(self._made) >= _REMEMBERED:
                    self._made.clear()
                made = self._made.setdefault(standing.key, made)
        return made

    def _rule(self, standing: Standing) -> Rule:
        fragment = self._fragment(standing)
        owes = any(standing.owed)
        if fragment is None:
            return Rule(self.tool, allowed=False, reason=self.reason or self._denial(standing), prevent_stop=owes)
        arguments = {self.same.own: fragment} if fragment else None
        reason = self.reason or "; ".join(filter(None, (self._origin if arguments else None, self._debt(standing))))
        rule = Rule(self.tool, reason=reason or None, prevent_stop=owes)
        # The values come from calls, so there is nothing to check about the fragment.
        return rule.narrowed(arguments) if arguments else rule

    def _fragment(self, standing: Standing) -> Fragment | None:
        """What is left of the parameter: {} for everything, None for nothing."""
        if 0 in (self.conditions.most, self.conditions.attempts):
            return None
        if standing.left is not None:
            return {"enum": list(standing.left)} if standing.left else None
        if not standing.closed:
            return {}
        fragment = {"not": {"enum": list(standing.closed)}}
        return fragment if has_value([self._schema, fragment]) else None

    # --- words ---
    def _denial(self, standing: Standing) -> str:
        conditions, own = self.conditions, self.same.own
        if 0 in (conditions.most, conditions.attempts):
            said = limit_text(self.tool, 0)
        elif standing.missing:
            said = f"{after_text([conditions.after[place] for place in standing.missing], conditions.failures)}, with the same {own}"
        else:
            said = f"no {own} is left: it {(self._origin or '').removeprefix(f'{own} ')}"
        debt = self._debt(standing)
        return f"{said}; {debt}" if debt else said

    def _debt(self, standing: Standing) -> str | None:
        """What has to be called before the end, and with which values."""
        conditions = self.conditions
        owing = [
            followed_with_text(self.tool, group, conditions.failures, self.same.theirs, _shown(values))
            for group, values in zip(conditions.follows, standing.owed, strict=True)
            if values
        ]
        return f"{' and '.join(owing)} before the end" if owing else None

    def evidence(self, history: History, run: RunView) -> str:
        """The calls the rule rests on, and the values that are left, closed, or owed."""
        conditions, standing = self.conditions, self._standing(history)
        kind = "ok or failed" if conditions.failures else "ok"
        names = dict.fromkeys((*conditions.others, *((self.tool,) if conditions.closes or conditions.follows else ())))
        facts = [f"{name}: {times(history.count(name, conditions.failures), kind)}" for name in names]
        if standing.left is not None:
            facts.append(f"{self.same.own} left: {_shown(standing.left) or 'none'}")
        if standing.closed:
            facts.append(f"{self.same.own} used up: {_shown(standing.closed)}")
        return "; ".join(facts)

    def waits_for(self, history: History) -> Iterator[str]:
        """What is missing that counts do not tell: a value with which everything has occurred, and calls with each value that is owed."""
        standing, theirs = self._standing(history), self.same.theirs
        after, failures = self.conditions.after, self.conditions.failures
        counted = all(any(history.seen(name, failures) for name in group) for group in after)
        if self._fragment(standing) is None and counted and not self.is_closed_for_good(history):
            yield f"a call of {listed(dict.fromkeys(name for group in after for name in group), 'or')} with another {theirs}"
        for group, values in zip(self.conditions.follows, standing.owed, strict=True):
            if len(values) > 1 or (values and self._was_answered(history, group)):
                yield f"a call of {listed(group, 'or')} with {theirs} {_shown(values)}"

    def _was_answered(self, history: History, group: tuple[str, ...]) -> bool:
        """Whether one of a group came after the last call of the target, with whatever value."""
        last = [history.last_place(name, self.conditions.failures) for name in (self.tool, *group)]
        return any(place is not None and place > (last[0] or 0) for place in last[1:])

    def is_closed_for_good(self, history: History) -> bool:
        """Whether no value is left, and no call can bring one."""
        standing = self._standing(history)
        return self._fragment(standing) is None and (standing.left is None or 0 in (self.conditions.most, self.conditions.attempts))

    def default_reason(self, history: History, run: RunView) -> str | None:
        """What has to be called first while the tool is closed, and what is owed."""
        standing = self._standing(history)
        return self._denial(standing) if self._fragment(standing) is None else self._debt(standing)

    # --- the batch ---
    def surely_admits(self, tool: str, bounds: Bounds, run: RunView) -> bool:
        """True when no open call can change what this requirement says of the tool, and it is open."""
        if tool not in (self.tool, FINAL_ANSWER) or (tool == FINAL_ANSWER and not self.conditions.follows):
            return True
        # Values are known only of calls that are recorded.
        if any(name in self._watched for name, _ in bounds.tail):
            return False
        rule = self.rules(bounds.history, run)[0]
        return not rule.prevent_stop if tool == FINAL_ANSWER else rule.allowed

    # --- verification ---
    def guard(self) -> Guard:
        """The part that is a matter of counts: what has to have occurred with some value at least, and what is owed in any case."""
        conditions = self.conditions
        needs = [tuple(CountedAtom(name, 1, conditions.failures) for name in group) for group in conditions.after]
        return Guard(
            self.tool,
            needs=((), *needs) if 0 in (conditions.most, conditions.attempts) else tuple(needs),
            pending=tuple(PendingAtom(self.tool, group, conditions.failures) for group in conditions.follows),
            is_partial=True,
        )

    def doubts(self, *, alone: bool) -> Iterator[tuple[str, str]]:
        """What counts do not tell, as (what it is called, the tool that it may close).

        alone  nobody else narrows the parameter
        """
        conditions = self.conditions
        # One group, or only values to keep away from: then some value is left exactly when the counts say so.
        told = not conditions.closes if len(conditions.after) == 1 else not conditions.after and not (conditions.closes and self._is_finite)
        if not (told and alone) and 0 not in (conditions.most, conditions.attempts):
            yield self.name, self.tool
        if conditions.follows:
            yield self.name, FINAL_ANSWER

    @property
    def _is_finite(self) -> bool:
        return not _is_endless(self._schema)

    @property
    def assumption(self) -> str | None:
        """What verification takes for granted."""
        conditions, own, theirs = self.conditions, self.same.own, self.same.theirs
        if len(conditions.after) == 1 and not conditions.closes:
            return f"{self.name}: a call of {listed(conditions.after[0], 'or')} has a {theirs} that {self.tool} takes"
        if not conditions.after and conditions.closes and not self._is_finite and 0 not in (conditions.most, conditions.attempts):
            return f"{self.name}: there is always a further {own}"
        return None

    def describe(self) -> dict[str, Any]:
        """Kind and parameters, those at their default left out."""
        conditions = self.conditions
        said: dict[str, Any] = {
            "only_after": _described(conditions.after),
            "only_before": list(conditions.before),
            "max_invocations": conditions.most,
            "max_attempts": conditions.attempts,
            "followed_by": _described(conditions.follows),
            "same": self.same.described(),
            "reason": self.reason,
        }
        kept = {key: value for key, value in said.items() if value is not None and value != []}
        if conditions.failures:
            kept["only_success_invocations"] = False
        return {"kind": "conditional", "target": self.tool, **kept}

    def named(self, name: str) -> BoundSame:
        """The same requirement under another name."""
        other = copy.copy(self)
        other.name = name
        other._made = {}
        return other


def _described(groups: Sequence[tuple[str, ...]]) -> list[Any]:
    return [list(group) if len(group) > 1 else group[0] for group in groups]


def _shown(values: Sequence[Any]) -> str:
    """The first of some values as JSON."""
    texts = [json.dumps(value, ensure_ascii=False, default=repr) for value in values[:_SHOWN]]
    shown = [text if len(text) <= 80 else f"{text[:77]}..." for text in texts]
    more = [f"{len(values) - _SHOWN} more"] if len(values) > _SHOWN else []
    return listed([*shown, *more]) if shown else ""


def _is_endless(schema: Mapping[str, Any]) -> bool:
    """Whether a parameter takes ever more values, as far as its schema tells."""
    if "enum" in schema or "const" in schema or schema.get("type") in ("boolean", "null"):
        return False
    parts = [part for word in ("anyOf", "oneOf") for part in schema.get(word, ()) if isinstance(part, Mapping)]
    if parts:
        return any(map(_is_endless, parts))
    low, high = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
    return not (schema.get("type") == "integer" and any(word in schema for word in low) and any(word in schema for word in high))

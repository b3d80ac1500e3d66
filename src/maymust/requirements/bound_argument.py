"""A requirement on an argument over known tools: which rule it gives, by the values seen so far."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from maymust.core.bounds import Bounds
from maymust.core.guard import CountedAtom, Guard
from maymust.core.history import History
from maymust.core.narrowing import fragment_words
from maymust.core.requirement import RunView
from maymust.core.rule import Rule
from maymust.requirements.argument_values import ValuesCheck, ValuesOf
from maymust.requirements.gathered import Snapshot
from maymust.requirements.predicate import function_text
from maymust.requirements.wording import listed, times

_REMEMBERED = 256
_FEW = 32
_SHOWN = 5


class BoundArgument:
    """The bound form of `ArgumentRequirement`. The same values give the very same rule, in whatever run (as long as they are few)."""

    lapses_force: ClassVar[bool] = False

    def __init__(
        self,
        *,
        name: str,
        priority: int,
        enabled: bool,
        target: str,
        param: str,
        bounds: Mapping[str, Any],
        values: ValuesOf,
        each: bool,
        optional: bool,
        reason: str | None,
    ) -> None:
        self.name = name
        self.priority = priority
        self.enabled = enabled
        self.target: str | None = target
        self.tool = target
        self.param = param
        self.narrows: tuple[str, str] = (target, param)
        self.bounds: dict[str, Any] = dict(bounds)
        self.values = values
        self.each = each
        self.optional = optional
        self.reason = reason
        self.uses_memory: bool = values.function is not None
        text = function_text(values.function) if values.function is not None else ""
        self.checks: tuple[ValuesCheck, ...] = (
            (ValuesCheck(text, text.isidentifier()),) if text and not (values.fixed or values.sources or optional) else ()
        )
        # Checked once; the rules of the run differ from it in their values only.
        self._open = Rule(target, arguments={param: self._fragment(list(values.fixed) or ["a value"])}, reason=reason or self._origin())
        self._closed = (Rule(target, allowed=False, reason=reason or self._missing()),)
        self._made: dict[Any, tuple[Rule, ...]] = {}
        self._still = None if values.sources or values.function is not None else self._make(Snapshot(values.fixed))

    @property
    def fixed_fragment(self) -> Mapping[str, Any]:
        """A fragment of the kind its rules have, to be compiled early."""
        return (self._open.arguments or {})[self.param]

    def rules(self, history: History, run: RunView, /) -> tuple[Rule, ...]:
        """One rule on the target: the values it may have, or a denial while there are none."""
        if self._still is not None:
            return self._still
        values = self.values
        if values.function is not None:
            return self._make(values.all(history, run))
        gathered = history.derived(values.key, values.gather)
        calls = gathered.calls(history)
        kept = gathered.kept.get(self)
        if kept is not None and kept[0] == calls:
            known: tuple[Rule, ...] = kept[1]
            return known
        made = self._make(values.all(history, run) if values.fixed else gathered.after(calls))
        gathered.kept[self] = (calls, made)
        return made

    def _make(self, found: Snapshot) -> tuple[Rule, ...]:
        """The rules for these values; for a few of them from the shelf where they were made before."""
        if self.values.limits and not found.values and not self.optional:
            return self._closed
        if len(found.key) > _FEW:
            return (self._open.narrowed({self.param: self._fragment(found.values)}),)
        made = self._made.get(found.key)
        if made is None:
            if len(self._made) >= _REMEMBERED:
                self._made.clear()
            made = self._made.setdefault(found.key, (self._open.narrowed({self.param: self._fragment(found.values)}),))
        return made

    def _fragment(self, values: list[Any]) -> dict[str, Any]:
        item: dict[str, Any] = {"enum": values, **self.bounds} if self.values.limits else dict(self.bounds)
        if self.each:
            item = {"type": "array", "items": item} if values or not self.values.limits else {"type": "array", "maxItems": 0}
        elif not values and self.values.limits:
            item = {"type": "null"}
        return {"anyOf": [{"type": "null"}, item]} if self.optional else item

    def _missing(self) -> str:
        """What has to be called first."""
        sources = self.values.sources
        if not sources:
            return f"there is no value that {self.param} may have yet"
        tools = list(dict.fromkeys(source.tool for source in sources))
        places = list(dict.fromkeys(source.text for source in sources if source.side == "output"))
        of = f" ({', '.join(places)})" if places else ""
        return f"call {listed(tools, 'or')} first: {self.param} has to be a value that {self._verb()}{of}, and there is none yet"

    def _verb(self) -> str:
        """`get_record returned`, `read_file took as path or list_files returned`."""
        said = (
            f"{source.tool} returned" if source.side == "output" else f"{source.tool} took as {source.text}"
            for source in self.values.sources
        )
        return listed(dict.fromkeys(said), "or")

    def _origin(self) -> str | None:
        if not self.values.sources:
            return None
        only = "the last call of " if self.values.last_only else ""
        known = " or is always allowed" if self.values.fixed or self.values.function is not None else ""
        return f"{self.param} has to be a value that {only}{self._verb()}{known}"

    def guard(self) -> Guard:
        """The part that is a matter of counts: without a call of a source there is no value. The values themselves are left out."""
        values = self.values
        if not values.sources and values.function is None:
            return Guard(self.tool)
        control = bool(values.sources) and not values.fixed and values.function is None and not self.optional
        tools = dict.fromkeys(source.tool for source in values.sources)
        return Guard(self.tool, needs=(tuple(CountedAtom(tool, 1, False) for tool in tools),) if control else (), is_partial=True)

    @property
    def assumption(self) -> str | None:
        """What verification takes for granted."""
        return f"{self.name}: a call that is to give a value for {self.param} gives one" if self.values.sources else None

    def surely_admits(self, tool: str, bounds: Bounds, run: RunView) -> bool:
        """True when no open call can change the values, and there are some."""
        if tool != self.tool or self._still is not None:
            return True
        if self.values.function is not None:
            return False
        tools = {source.tool for source in self.values.sources}
        if any(name in tools for name, _ in bounds.tail):
            return False
        return self.rules(bounds.history, run)[0].allowed

    def evidence(self, history: History, run: RunView) -> str:
        """The calls the values come from, and the values."""
        tools = dict.fromkeys(source.tool for source in self.values.sources)
        facts = [f"{tool}: {times(history.count(tool), 'ok')}" for tool in tools]
        if self.bounds:
            facts.append(f"{self.param}: {fragment_words(self.bounds)}")
        if self.values.limits:
            values = self.values.all(history, run).values
            shown = ", ".join(json.dumps(value, ensure_ascii=False) for value in values[:_SHOWN])
            more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
            facts.append(f"values of {self.param}: {shown or 'none'}{more}")
        return "; ".join(facts)

    def waits_for(self, history: History) -> Iterator[str]:
        """What is missing that no further call is sure to bring: a value, where the calls it comes from have been made."""
        tools = dict.fromkeys(source.tool for source in self.values.sources)
        if any(history.seen(tool) for tool in tools):
            yield f"the output of {listed(tools, 'or')}"
        elif not tools:
            yield f"the values of {self.name}"

    def default_reason(self, history: History, run: RunView) -> str | None:
        """What has to be called first, while the tool is closed."""
        return None if self.rules(history, run)[0].allowed else self._missing()

    def describe(self) -> dict[str, Any]:
        """Kind and parameters, those at their default left out."""
        values = self.values
        one_of: Any = f"function:{function_text(values.function)}" if values.function is not None else list(values.fixed)
        said: dict[str, Any] = {
            "one_of": one_of or None,
            **{word: value for word, value in self.bounds.items() if word != "type"},
            "from_output": [[source.tool, source.text] for source in values.sources if source.side == "output"] or None,
            "from_argument": [[source.tool, source.text] for source in values.sources if source.side == "arguments"] or None,
            "last_only": values.last_only or None,
            "each": self.each or None,
            "optional": self.optional or None,
            "reason": self.reason,
        }
        kept = {key: value for key, value in said.items() if value is not None}
        return {"kind": "argument", "target": self.tool, "param": self.param, **kept}

    def named(self, name: str) -> BoundArgument:
        """The same requirement under another name."""
        other = copy.copy(self)
        other.name = name
        other._made = {}
        return other

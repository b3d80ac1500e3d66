"""A requirement on what may be done once a stranger's words are in the run."""

from __future__ import annotations

import copy
import json
import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from maymust.core.bounds import Bounds
from maymust.core.history import History
from maymust.core.requirement import DEFAULT_PRIORITY, RunView, check_enabled, check_priority
from maymust.core.rule import Rule
from maymust.core.step import Step
from maymust.core.tool_spec import FINAL_ANSWER, ToolLike, target_text, tool_name
from maymust.errors import PolicyError
from maymust.requirements.named import Part, is_named, parts_of, wanted
from maymust.requirements.targets import as_targets, resolve
from maymust.requirements.wording import listed, times

_EXCERPT = 300
_REMEMBERED = 256


@dataclass(frozen=True, slots=True, eq=False)
class AfterUntrustedRequirement:
    """Once output from outside is in the run, a person has to agree before these tools run, and is shown the step it came with.

    Output is from outside when its tool says so (`@tool(untrusted=True)`), whether the call came back ok or failed. It stays in the
    run, and in the conversations that go on from it.

    side_effects  the tools to ask about then
    untrusted     further tools whose output counts as from outside
    unless_named  per tool what decides where a call goes: nobody is asked about a call whose values there were all named by the
                  user, or by a tool that only looks something up and is not from outside. A list of parameters, or
                  `{parameter: part}`: "all" of its values, "said" for those that only the user may name, "links" for the addresses
                  in a text
    handler       a function of the pending call, sync or async, that gives a bool or a `Decision`; None: the run pauses
    reason        shown to the person before the step
    name          default `after_untrusted`

    Raises PolicyError for unknown tools and parameters, and for `final_answer`, which is never asked for.
    """

    side_effects: Any
    _: KW_ONLY
    untrusted: Any = None
    unless_named: Mapping[Any, Any] | None = None
    handler: Callable[..., Any] | None = None
    reason: str | None = None
    name: str | None = None
    priority: int = DEFAULT_PRIORITY
    enabled: bool = True

    def __post_init__(self) -> None:
        label = self.name or "after_untrusted"
        object.__setattr__(self, "side_effects", as_targets(self.side_effects))
        object.__setattr__(self, "untrusted", as_targets(self.untrusted))
        if not self.side_effects:
            raise PolicyError(f"{label}: side_effects is empty, so it would ask about nothing")
        if any(target_text(target) == FINAL_ANSWER for target in self.side_effects):
            raise PolicyError(f"{label}: {FINAL_ANSWER} is never asked for; leave it out")
        if self.handler is not None and not callable(self.handler):
            raise PolicyError(f"{label}: handler has to be a function of the pending call, got {self.handler!r}")
        if self.reason is not None and not isinstance(self.reason, str):
            raise PolicyError(f"{label}: reason has to be a text, got {self.reason!r}")
        if self.unless_named is not None and not isinstance(self.unless_named, Mapping):
            raise PolicyError(f"{label}: unless_named has to map tools to parameters, got {self.unless_named!r}")
        check_priority(self.priority, label)
        check_enabled(self.enabled, label)

    def bind(self, tools: Sequence[ToolLike]) -> BoundAfterUntrusted:
        """Return the requirement over these tools."""
        label = self.name or "after_untrusted"
        effects = [name for one in self.side_effects for name in resolve(one, tools, where=f"{label}: side_effects")]
        outside = {name for one in self.untrusted for name in resolve(one, tools, where=f"{label}: untrusted")}
        outside.update(tool_name(tool) for tool in tools if getattr(tool, "untrusted", False) is True)
        unless: dict[str, dict[str, Part]] = {}
        for one, given in (self.unless_named or {}).items():
            where = f"{label}: unless_named"
            for name in resolve(one, tools, where=where):
                if name not in effects:
                    raise PolicyError(f"{where}: {name} is not among side_effects, so nobody is asked about it anyway")
                unless[name] = parts_of(given, f"{where}[{name}]")
                _check_parameters(name, unless[name], tools, where)
        return BoundAfterUntrusted(self, tuple(dict.fromkeys(effects)), frozenset(outside), tools, unless)

    def rules(self, history: History, run: RunView, /) -> tuple[Rule, ...]:
        """The rules over the tools of `run`, for a requirement used by itself. A policy binds it once and asks the bound form."""
        return self.bind(run.tools).rules(history, run)


def _check_parameters(tool: str, parameters: Mapping[str, Any], tools: Sequence[ToolLike], where: str) -> None:
    schema = getattr(next(one for one in tools if tool_name(one) == tool), "parameters", None)
    if isinstance(schema, Mapping) and schema.get("additionalProperties", True) is False:
        for parameter in parameters:
            if parameter not in schema.get("properties", {}):
                raise PolicyError(f"{where}: {tool} has no parameter called {parameter}")


class Outside:
    """The steps of one run that brought output from outside. Every version reads those of its own length."""

    __slots__ = ("_lock", "_names", "_read", "kept", "places")

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._lock = threading.Lock()
        self._read = 0
        self.places: list[int] = []
        self.kept: dict[object, tuple[int, Any]] = {}
        """Per reader what it made of them last, with their number."""

    def count(self, history: History) -> int:
        """How many such steps there are in this version."""
        length = len(history)
        if self._read < length:
            with self._lock:
                for place in range(self._read, length):
                    if brings_outside(history[place], self._names):
                        self.places.append(place)
                self._read = max(self._read, length)
        places = self.places
        return len(places) if not places or places[-1] < length else bisect_left(places, length)


def brings_outside(step: Step, names: frozenset[str]) -> bool:
    """Whether a step put output from outside before the model: its tool says so, or is one of `names`."""
    return step.outcome.is_invocation and (step.untrusted or step.tool in names)


class BoundAfterUntrusted:
    """The bound form of `AfterUntrustedRequirement`. The same steps give the very same rules."""

    lapses_force: ClassVar[bool] = False
    uses_memory: ClassVar[bool] = False
    never_closes: ClassVar[bool] = True
    target: str | None = None

    def __init__(
        self,
        source: AfterUntrustedRequirement,
        effects: tuple[str, ...],
        outside: frozenset[str],
        tools: Sequence[ToolLike],
        unless: Mapping[str, Mapping[str, Part]],
    ) -> None:
        self.source = source
        self.name: str = source.name or "after_untrusted"
        self.priority: int = source.priority
        self.enabled: bool = source.enabled
        self.handler: Callable[..., Any] | None = source.handler
        self.effects = effects
        self.outside = outside
        self.unless = unless
        self._key = f"outside:{','.join(sorted(outside))}"
        # What came of a call of these is known only when it is over: tools of other agents, and those that come later.
        self._harmless = frozenset(
            tool_name(tool) for tool in tools if tool_name(tool) not in outside and not getattr(tool, "runs_an_agent", False)
        )
        self._made: dict[str, tuple[Rule, ...]] = {}

    def rules(self, history: History, run: RunView, /) -> tuple[Rule, ...]:
        """A question for each tool with side effects once there is output from outside; nothing before."""
        outside = self._steps(history)
        count = outside.count(history)
        if not count:
            before = self._before(run)
            return self._asking(before[-1], 0) if before else ()
        kept = outside.kept.get(self)
        if kept is None or kept[0] != count:
            kept = outside.kept[self] = (count, self._asking(history[outside.places[count - 1]], count - 1))
        made: tuple[Rule, ...] = kept[1]
        return made

    def _steps(self, history: History) -> Outside:
        return history.derived(self._key, lambda: Outside(self.outside))

    def _before(self, run: RunView) -> list[Step]:
        return [step for step in run.before if brings_outside(step, self.outside)]

    def _asking(self, shown: Step, others: int) -> tuple[Rule, ...]:
        text = _shown_step(shown, others)
        reason = f"{self.source.reason}; {text}" if self.source.reason else text
        made = self._made.get(reason)
        if made is None:
            if len(self._made) >= _REMEMBERED:
                self._made.clear()
            made = self._made.setdefault(reason, tuple(Rule(tool, ask=True, reason=reason) for tool in self.effects))
        return made

    def asks_about(self, tool: str) -> bool:
        """True for the tools with side effects: a person may be asked about them."""
        return tool in self.effects

    def excuses(self, tool: str, arguments: Mapping[str, Any] | None, history: History, run: RunView) -> bool:
        """True when all that decides where this call goes was named by the user, or by tools whose output is not from outside."""
        parts = self.unless.get(tool)
        if parts is None or arguments is None:
            return False
        return all(
            is_named(value, run.said) or (not by_user and value is not None and self._looked_up(value, history))
            for value, by_user in wanted(arguments, parts)
        )

    def _looked_up(self, value: str, history: History) -> bool:
        """Whether a trusted tool gave this value. One that only says again what it was given does not count."""
        for step in history:
            if not step.outcome.is_invocation or step.untrusted or step.tool not in self._harmless or step.tool in self.effects:
                continue
            text = step.text if step.text is not None else json.dumps(step.output, ensure_ascii=False, default=str)
            if is_named(value, (text,)) and value.casefold() not in json.dumps(step.arguments, ensure_ascii=False, default=str).casefold():
                return True
        return False

    def surely_admits(self, tool: str, bounds: Bounds, run: RunView) -> bool:
        """True when no open call can bring output from outside, or when it does not matter for this tool."""
        if tool not in self.effects:
            return True
        return all(name in self._harmless or (outcome is not None and not outcome.is_invocation) for name, outcome in bounds.tail)

    def evidence(self, history: History, run: RunView) -> str:
        """The step with output from outside, and how many there are."""
        count = self._steps(history).count(history)
        if count:
            place = self._steps(history).places[count - 1]
            return f"step {place + 1} ({history[place].tool}) brought output from outside; {times(count, 'such')}"
        before = self._before(run)
        return f"{listed(dict.fromkeys(step.tool for step in before))} brought output from outside before this run" if before else ""

    def default_reason(self, history: History, run: RunView) -> str | None:
        """None: it closes nothing."""
        return None

    def describe(self) -> dict[str, Any]:
        """Kind and parameters, those at their default left out."""
        said: dict[str, Any] = {
            "side_effects": list(self.effects),
            "untrusted": sorted(self.outside) or None,
            "unless_named": {tool: dict(parts) for tool, parts in self.unless.items()} or None,
            "handler": True if self.handler is not None else None,
            "reason": self.source.reason,
        }
        return {"kind": "after_untrusted", **{key: value for key, value in said.items() if value is not None}}

    def named(self, name: str) -> BoundAfterUntrusted:
        """The same requirement under another name."""
        other = copy.copy(self)
        other.name = name
        other._made = {}
        return other


def _shown_step(step: Step, others: int) -> str:
    text = " ".join((step.text or "").split())
    excerpt = f": {text[:_EXCERPT]}{'…' if len(text) > _EXCERPT else ''}" if text else ""
    more = f", after {others} more such step{'' if others == 1 else 's'}" if others else ""
    call = f" (call {step.call_id})" if step.call_id else ""
    return f"output from outside is in the run: {step.tool}{call}{more}{excerpt}"

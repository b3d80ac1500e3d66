"""The requirement that most policies are made of: when one tool may, must or must not be called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from maymust.core.history import History
from maymust.core.requirement import DEFAULT_PRIORITY, RunView, check_enabled, check_priority
from maymust.core.rule import Rule
from maymust.core.tool_spec import FINAL_ANSWER, ToolLike, target_text
from maymust.errors import PolicyError
from maymust.requirements.bound_conditional import BoundConditional
from maymust.requirements.bound_same import BoundSame
from maymust.requirements.fit import Fit
from maymust.requirements.keyed_calls import Conditions, Places
from maymust.requirements.parameter import parameter_schema
from maymust.requirements.predicate import Check, as_check
from maymust.requirements.same import as_same
from maymust.requirements.targets import as_targets, resolve, resolve_one

_NUMBERS = (("force_at_step", 1), ("min_invocations", 0), ("max_invocations", 0), ("max_attempts", 0), ("cooldown", 1))
"""Parameters that are numbers, each with its least value."""

_OF_ITSELF = (
    ("only_after", "it could never be called"),
    ("only_after_any", "it could never be called"),
    ("only_before", "it could be called only once; write max_invocations=1"),
    ("followed_by", "each call would owe another one for ever"),
)
"""Parameters in which the target itself makes no sense."""


@dataclass(frozen=True, slots=True, eq=False)
class ConditionalRequirement:
    """Conditions on one tool over the history. Every parameter stands by itself; the first that fails, in the order below, denies.

    target                    the tool: a name, its class, the Tool object or the decorated function; it has to stand for one tool
    name                      for errors and reports; default `conditional:<target>`
    force_at_step             the tool must be called at this step, counted from 1
    only_before               closed as soon as any of these has been called
    only_after                closed until all of these have been called (of a class that stands for several tools, any one)
    only_after_any            closed until any of these has been called
    force_after               the tool must be called right after any of these
    force_prevent_stop        while the tool is forced, the run may not end
    min_invocations           the run may not end before so many calls
    max_invocations           closed after so many calls
    max_attempts              closed after so many calls, failed ones included whatever the next parameter says
    cooldown                  closed after a call of itself until so many other steps have come
    followed_by               after a call, each of these is owed: the run may not end before it was called
    only_success_invocations  only successful calls count; False: failed ones count as well
    consecutive_allowed       False: closed right after a call of itself
    custom_checks             predicates of (history) or (history, run); closed unless each gives True. They have no clock: `run.now`
                              is None there, and what depends on the time is a function with `@requirement`
    priority                  whole number above 0; decides between forced tools
    enabled                   False: checked, but without effect
    same                      each condition holds for each value of this parameter by itself: `only_after=["read"], same="path"` is
                              "only a path that was read". Where the other tools call it otherwise: `same={"path": "file"}`, the
                              target's name first. It goes with only_after, only_after_any, only_before, max_invocations,
                              max_attempts and followed_by
    reason                    shown instead of the requirement's own words

    With `same` the rule leaves the target the values whose conditions hold, and only values of calls of this run are known: a
    call that leaves the parameter out has its default for a value, or null. Values are compared as the parameter of the target
    takes them.
    Denied first by `consecutive_allowed` and `cooldown`, then `max_invocations` and `max_attempts`, then `only_before`, `only_after` and
    `only_after_any`, then `custom_checks`.
    It always gives exactly one rule. `force_at_step` at a step at which a check denies raises ForceUnmetError.

    Raises PolicyError here for numbers and checks that cannot be meant, and in a policy for tools that contradict each other.
    """

    target: Any
    _: KW_ONLY
    name: str | None = None
    force_at_step: int | None = None
    only_before: Any = None
    only_after: Any = None
    only_after_any: Any = None
    force_after: Any = None
    force_prevent_stop: bool = True
    min_invocations: int | None = None
    max_invocations: int | None = None
    max_attempts: int | None = None
    cooldown: int | None = None
    followed_by: Any = None
    only_success_invocations: bool = True
    consecutive_allowed: bool = True
    custom_checks: Sequence[Callable[..., bool]] = ()
    priority: int = DEFAULT_PRIORITY
    enabled: bool = True
    same: str | Mapping[str, str] | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        label = self.name or f"conditional:{target_text(self.target)}"
        if self.target is None or isinstance(self.target, list | tuple | set | frozenset):
            raise PolicyError(f"{label}: target has to be one tool, got {self.target!r}")
        for parameter, least in _NUMBERS:
            value = getattr(self, parameter)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise PolicyError(f"{label}: {parameter} has to be a whole number of at least {least}, got {value!r}")
        for parameter in ("max_invocations", "max_attempts"):
            limit = getattr(self, parameter)
            if self.min_invocations is not None and limit is not None and self.min_invocations > limit:
                raise PolicyError(
                    f"{label}: min_invocations ({self.min_invocations}) is above {parameter} ({limit}), so the run could never end"
                )
        for parameter in ("force_prevent_stop", "only_success_invocations", "consecutive_allowed"):
            if not isinstance(getattr(self, parameter), bool):
                raise PolicyError(f"{label}: {parameter} has to be True or False, got {getattr(self, parameter)!r}")
        if self.reason is not None and not isinstance(self.reason, str):
            raise PolicyError(f"{label}: reason has to be a text, got {self.reason!r}")
        check_priority(self.priority, label)
        check_enabled(self.enabled, label)
        for parameter in ("only_before", "only_after", "only_after_any", "force_after", "followed_by"):
            object.__setattr__(self, parameter, as_targets(getattr(self, parameter)))
        checks = (self.custom_checks,) if callable(self.custom_checks) else tuple(self.custom_checks or ())
        for check in checks:
            as_check(check, label)
        object.__setattr__(self, "custom_checks", checks)
        if self.same is not None:
            as_same(self.same, self, label)

    def bind(self, tools: Sequence[ToolLike]) -> BoundConditional | BoundSame:
        """Return the requirement over these tools. Raises PolicyError for unknown tools and for contradictions between resolved ones."""
        label = self.name or f"conditional:{target_text(self.target)}"
        target = resolve_one(self.target, tools, where=f"{label}: target")
        groups = {
            parameter: tuple(resolve(one, tools, where=f"{label}: {parameter}") for one in getattr(self, parameter))
            for parameter in ("only_after", "only_before", "force_after", "followed_by")
        }
        either = [name for one in self.only_after_any for name in resolve(one, tools, where=f"{label}: only_after_any")]
        groups["only_after_any"] = (tuple(dict.fromkeys(either)),) if either else ()
        self._check_groups(label, target, groups)
        if self.same is not None:
            return self._bind_same(label, target, groups, tools)
        checks: tuple[Check, ...] = tuple(as_check(check, label) for check in self.custom_checks)
        return BoundConditional(
            name=self.name or f"conditional:{target}",
            priority=self.priority,
            enabled=self.enabled,
            target=target,
            after=(*groups["only_after"], *groups["only_after_any"]),
            before=tuple(dict.fromkeys(name for group in groups["only_before"] for name in group)),
            force_after=frozenset(name for group in groups["force_after"] for name in group),
            force_at_step=self.force_at_step,
            force_prevent_stop=self.force_prevent_stop,
            least=self.min_invocations or 0,
            most=self.max_invocations,
            attempts=self.max_attempts,
            cooldown=self.cooldown or 0,
            follows=groups["followed_by"],
            failures=not self.only_success_invocations,
            consecutive=self.consecutive_allowed,
            checks=checks,
            reason=self.reason,
        )

    def _bind_same(self, label: str, target: str, groups: dict[str, tuple[tuple[str, ...], ...]], tools: Sequence[ToolLike]) -> BoundSame:
        same = as_same(self.same, self, label)
        conditions = Conditions(
            target=target,
            after=(*groups["only_after"], *groups["only_after_any"]),
            before=tuple(dict.fromkeys(name for group in groups["only_before"] for name in group)),
            most=self.max_invocations,
            attempts=self.max_attempts,
            follows=groups["followed_by"],
            failures=not self.only_success_invocations,
        )
        parameters = {**dict.fromkeys(conditions.others, same.theirs), target: same.own}
        if FINAL_ANSWER in parameters:
            raise PolicyError(f"{label}: same speaks of parameters, and the fields of {FINAL_ANSWER} are a matter of output_type")
        schemas = {name: parameter_schema(name, parameter, tools, f"{label}: same") for name, parameter in parameters.items()}
        defaults = {name: schema["default"] for name, schema in schemas.items() if "default" in schema}
        return BoundSame(
            conditions,
            same,
            Places(parameters, defaults, Fit(schemas[target], {})),
            schemas[target],
            name=self.name or f"conditional:{target}",
            priority=self.priority,
            enabled=self.enabled,
            reason=self.reason,
        )

    def rules(self, history: History, run: RunView, /) -> tuple[Rule, ...]:
        """The rule over the tools of `run`, for a requirement used by itself. A policy binds it once and asks the bound form."""
        return self.bind(run.tools).rules(history, run)

    def _check_groups(self, label: str, target: str, groups: dict[str, tuple[tuple[str, ...], ...]]) -> None:
        """Refuse sets of tools under which the requirement could never be met, or never let the run end."""
        for parameter, effect in _OF_ITSELF:
            if (target,) in groups[parameter]:
                raise PolicyError(f"{label}: {target} is in its own {parameter}, so {effect}")
        if self.consecutive_allowed and not self.cooldown and any(target in group for group in groups["force_after"]):
            raise PolicyError(
                f"{label}: {target} is in its own force_after, so once called it would be forced for ever; "
                "leave it out, or set consecutive_allowed=False"
            )
        closing = {name for group in groups["only_before"] for name in group}
        never = "could never be called"
        for parameter, effect in (("only_after", never), ("only_after_any", never), ("force_after", "would never be forced")):
            for group in groups[parameter]:
                if closing.issuperset(group):
                    names = f"{' and '.join(group)} {'is' if len(group) == 1 else 'are'}"
                    raise PolicyError(f"{label}: {names} in both {parameter} and only_before, so {target} {effect}")

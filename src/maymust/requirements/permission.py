"""Asking a person before a tool runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from maymust.core.bounds import Bounds
from maymust.core.fragment import Fragment, check_fragments
from maymust.core.history import History
from maymust.core.requirement import DEFAULT_PRIORITY, RunView, check_enabled, check_priority
from maymust.core.rule import Rule
from maymust.core.tool_spec import FINAL_ANSWER, ToolLike, target_text
from maymust.errors import PolicyError
from maymust.requirements.approval_memory import ApprovalMemory, Decision
from maymust.requirements.targets import as_targets, resolve

__all__ = ["ApprovalMemory", "AskPermissionRequirement", "BoundAskPermission", "Decision"]

_REMEMBERED = 256


@dataclass(frozen=True, slots=True, eq=False)
class AskPermissionRequirement:
    """A person has to agree before these tools run.

    include           the tools to ask about; None: every tool but `final_answer`, also those that arrive during the run
    exclude           tools not to ask about
    handler           a function of the pending call, sync or async, that gives a bool or a `Decision`; None: the run pauses
    when              `{parameter: fragment of JSON Schema}`: ask only about calls whose arguments match
    remember_choices  one question per tool and run: a yes holds for later calls, a no closes the tool
    remember_in       an `ApprovalMemory` that shares remembered choices between runs; it turns `remember_choices` on
    hide_disallowed   a tool that was said no to is hidden instead of denied
    always_allow      nobody is asked
    name              default `ask`, with the included tools

    Raises PolicyError for unknown tools, for an empty `include`, and for `final_answer`, which is never asked for.
    """

    include: Any = None
    _: KW_ONLY
    exclude: Any = None
    handler: Callable[..., Any] | None = None
    when: Mapping[str, Fragment] | None = None
    remember_choices: bool = False
    remember_in: ApprovalMemory | None = None
    hide_disallowed: bool = False
    always_allow: bool = False
    name: str | None = None
    priority: int = DEFAULT_PRIORITY
    enabled: bool = True

    def __post_init__(self) -> None:
        label = self.name or "ask"
        if self.handler is not None and not callable(self.handler):
            raise PolicyError(f"{label}: handler has to be a function of the pending call, got {self.handler!r}")
        for parameter in ("remember_choices", "hide_disallowed", "always_allow"):
            if not isinstance(getattr(self, parameter), bool):
                raise PolicyError(f"{label}: {parameter} has to be True or False, got {getattr(self, parameter)!r}")
        if self.remember_in is not None:
            if not isinstance(self.remember_in, ApprovalMemory):
                raise PolicyError(f"{label}: remember_in has to be an ApprovalMemory, got {self.remember_in!r}")
            object.__setattr__(self, "remember_choices", True)
        if self.when is not None:
            object.__setattr__(self, "when", check_fragments(self.when, f"{label}: when"))
        check_priority(self.priority, label)
        check_enabled(self.enabled, label)
        object.__setattr__(self, "include", None if self.include is None else as_targets(self.include))
        if self.include == ():
            raise PolicyError(f"{label}: include names no tool, so nobody would be asked; name some, or leave it out for every tool")
        object.__setattr__(self, "exclude", as_targets(self.exclude))

    def bind(self, tools: Sequence[ToolLike]) -> BoundAskPermission:
        """Return the requirement over these tools."""
        label = self.name or "ask"
        include = None if self.include is None else self._names(tools, self.include, f"{label}: include")
        exclude = frozenset(self._names(tools, self.exclude, f"{label}: exclude"))
        if include and exclude.issuperset(include):
            raise PolicyError(f"{label}: exclude takes out all that include names ({', '.join(include)}), so nobody would be asked")
        return BoundAskPermission(self, None if include is None else tuple(name for name in include if name not in exclude), exclude)

    def rules(self, history: History, run: RunView, /) -> tuple[Rule, ...]:
        """The rules over the tools of `run`, for a requirement used by itself. A policy binds it once and asks the bound form."""
        return self.bind(run.tools).rules(history, run)

    def _names(self, tools: Sequence[ToolLike], targets: Sequence[Any], where: str) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for target in targets:
            if target_text(target) == FINAL_ANSWER:
                raise PolicyError(f"{where}: {FINAL_ANSWER} is never asked for; leave it out")
            names.update(dict.fromkeys(resolve(target, tools, where=where)))
        return tuple(names)


class BoundAskPermission:
    """The bound form of `AskPermissionRequirement`.

    Its memory in a run is `{"choices": {tool: {"allow": bool, "reason": str | None, "by": str | None}}}`; choices of the run
    go before those of the shared memory.
    """

    lapses_force: ClassVar[bool] = True
    uses_memory: ClassVar[bool] = True
    target: str | None = None

    def __init__(self, source: AskPermissionRequirement, include: tuple[str, ...] | None, exclude: frozenset[str]) -> None:
        self.source = source
        self.name: str = source.name or ("ask" if include is None else f"ask:{','.join(include)}")
        self.priority: int = source.priority
        self.enabled: bool = source.enabled
        self.include = include
        self.exclude = exclude
        self.handler: Callable[..., Any] | None = source.handler
        self.when: Mapping[str, Fragment] | None = source.when
        self.remember_choices: bool = source.remember_choices
        self.remember_in: ApprovalMemory | None = source.remember_in
        self.hide_disallowed: bool = source.hide_disallowed
        self.always_allow: bool = source.always_allow
        self.never_closes: bool = source.always_allow or not source.remember_choices
        """Its rules ask and close nothing, unless a decision asks to be remembered."""
        self._made: dict[Any, tuple[Rule, ...]] = {}
        self._rules: dict[Any, Rule] = {}

    def rules(self, history: History, run: RunView, /) -> tuple[Rule, ...]:
        """A question for each tool, a denial for each tool that was said no to, and nothing for one that was said yes to."""
        if self.always_allow:
            return ()
        choices = self._choices(run)
        key = (
            None if self.include is not None else run.tools,
            tuple((tool, choice.get("allow"), choice.get("reason"), choice.get("by")) for tool, choice in choices.items()),
        )
        made = self._made.get(key)
        if made is None:
            made = tuple(self._rule(tool, choices.get(tool)) for tool in self._tools(run))
            if len(self._made) >= _REMEMBERED:
                self._made.clear()
            self._made[key] = made
        return made

    def asks_about(self, tool: str) -> bool:
        """True when the tool is one of those a person decides on."""
        if self.always_allow or tool == FINAL_ANSWER:
            return False
        return tool in self.include if self.include is not None else tool not in self.exclude

    def _tools(self, run: RunView) -> tuple[str, ...]:
        return self.include if self.include is not None else tuple(name for name in run.tools if name not in self.exclude)

    def _choices(self, run: RunView) -> Mapping[str, Mapping[str, Any]]:
        own: Mapping[str, Mapping[str, Any]] = run.memory.get("choices") or {}
        shared = self.remember_in.choices if self.remember_in is not None else {}
        return {**shared, **own} if shared else own

    def _rule(self, tool: str, choice: Mapping[str, Any] | None) -> Rule:
        allow = None if choice is None else choice.get("allow") is True
        reason = None
        if choice is not None and not allow:
            reason = choice.get("reason") or f"{choice.get('by') or 'a person'} said no to {tool}"
        key = (tool, allow, reason)
        rule = self._rules.get(key)
        if rule is None:
            if allow is None:
                rule = Rule(tool, ask=self.when or True)
            elif allow:
                rule = Rule(tool)
            else:
                rule = Rule(tool, allowed=False, hidden=self.hide_disallowed, reason=reason)
            if len(self._rules) >= _REMEMBERED * 16:
                self._rules.clear()
            self._rules[key] = rule
        return rule

    def surely_admits(self, tool: str, bounds: Bounds, run: RunView) -> bool:
        """True unless the tool was said no to, or an open call of it may settle the question for this one."""
        if not self.asks_about(tool):
            return True
        if self.remember_choices and tool in bounds.open:
            return False
        choice = self._choices(run).get(tool)
        return choice is None or choice.get("allow") is True

    def evidence(self, history: History, run: RunView) -> str:
        """Which choices are remembered."""
        choices = self._choices(run)
        said = (f"{'yes' if choice.get('allow') is True else 'no'} to {tool}" for tool, choice in choices.items() if self.asks_about(tool))
        return "; ".join(said)

    def default_reason(self, history: History, run: RunView) -> str | None:
        """None: what a person said is said in the rule's reason."""
        return None

    def describe(self) -> dict[str, Any]:
        """Kind and parameters, those at their default left out."""
        said: dict[str, Any] = {
            "include": None if self.include is None else list(self.include),
            "exclude": sorted(self.exclude) or None,
            "when": self.when,
            "handler": True if self.handler is not None else None,
        }
        for switch in ("remember_choices", "hide_disallowed", "always_allow"):
            said[switch] = getattr(self, switch) or None
        return {"kind": "ask_permission", **{key: value for key, value in said.items() if value is not None}}

    def named(self, name: str) -> BoundAskPermission:
        """The same requirement under another name."""
        other = copy.copy(self)
        other.name = name
        return other

"""What a requirement is: the protocol, its bound form, and what it sees of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from maymust.core.bounds import Bounds
from maymust.core.history import History
from maymust.core.rule import Rule
from maymust.core.step import Step
from maymust.core.tool_spec import ToolLike
from maymust.errors import PolicyError

DEFAULT_PRIORITY = 10

GivenRules: TypeAlias = Iterable[Rule] | Rule | None
"""What a requirement may give back: rules, one rule, or None for no rule."""


@dataclass(frozen=True, slots=True)
class RunView:
    """What a requirement sees of the run beside its history.

    memory    a JSON dict of this requirement in this run
    tools     names of the tools present right now, `final_answer` left out
    metadata  the metadata given to the run
    deps      what was given as `deps`; never stored
    now       the time of this evaluation in seconds, as the run recorded it, for a requirement of one's own (`@requirement`);
              None outside a run, and for functions given to built-in requirements
    before    steps whose output the model may have read before this run: in the conversation it goes on from, or in the agent
              that calls it; one for each tool, with a shortened text
    said      what the user has said, in this run and before
    """

    memory: dict[str, Any] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    deps: Any = None
    now: float | None = None
    before: tuple[Step, ...] = ()
    said: tuple[str, ...] = ()

    def remembering(self, memory: dict[str, Any]) -> RunView:
        """The same view with the memory of one requirement."""
        return RunView(memory, self.tools, self.metadata, self.deps, self.now, self.before, self.said)


class Requirement(Protocol):
    """Anything that gives rules. Only `rules` is needed.

    Optional: `name` (default: the class's), `priority` (int > 0, default 10), `enabled` (default True), `bind(tools)`, called once a
    policy, which checks every referenced tool and returns the bound form, `on_start(run)`, called once a run, and `version`, which
    takes part in the policy's hash. One requirement may serve any number of policies and runs, so it holds no state of a run.
    """

    def rules(self, history: History, run: RunView, /) -> GivenRules | Awaitable[GivenRules]:
        """The rules in this history; None and nothing are no rules. A coroutine is awaited in the agent's loop only."""
        ...


class BoundRequirement(Protocol):
    """A requirement over a known set of tools, as a policy holds it.

    A built-in one also has `surely_admits`, `evidence`, `describe`, `default_reason` and `named` (see `BuiltIn`).
    One without `surely_admits` is *opaque*: the loop evaluates it as an action, and a batch under it runs in sequence unless
    `depends_on` says which tools matter. `lapses_force`: its denials make a force lapse instead of being a conflict.
    """

    @property
    def name(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def enabled(self) -> bool: ...
    def rules(self, history: History, run: RunView, /) -> Any:
        """The rules in this history."""
        ...


@runtime_checkable
class BuiltIn(Protocol):
    """What the built-in requirements can tell beside their rules.

    `rules` of a built-in requirement returns a tuple, and the very same tuple for the same situation: the fold is cached by identity.

    lapses_force   its denials make a force lapse instead of being a conflict
    uses_memory    its rules depend on `run.memory`
    target         the one tool its rules are about, None when they are about several
    """

    lapses_force: bool
    uses_memory: bool
    target: str | None

    @property
    def name(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def enabled(self) -> bool: ...

    def rules(self, history: History, run: RunView, /) -> tuple[Rule, ...]:
        """The rules in this history."""
        ...

    def surely_admits(self, tool: str, bounds: Bounds, run: RunView) -> bool:
        """True when, however the open calls end, this requirement lets `tool` run with the same narrowing and the same question,
        forces no other tool and raises no error. False only makes a call wait.
        """
        ...

    def evidence(self, history: History, run: RunView) -> str:
        """One line of facts, e.g. `think: 0 ok calls`."""
        ...

    def default_reason(self, history: History, run: RunView) -> str | None:
        """What the requirement would say here if its author had given no `reason`; None when it closes nothing."""
        ...

    def describe(self) -> dict[str, Any]:
        """Kind and parameters with resolved names, as JSON."""
        ...

    def named(self, name: str) -> BuiltIn:
        """The same requirement under another name."""
        ...


class Adapted:
    """The bound form of a user's own requirement: fills in the defaults, and keeps it opaque."""

    __slots__ = ("depends_on", "enabled", "lapses_force", "name", "on_start", "priority", "rules", "source", "version")

    def __init__(self, source: Any, bound: Any, name: str) -> None:
        self.source: Any = bound
        self.name: str = name
        self.priority: int = _attribute(bound, source, "priority", DEFAULT_PRIORITY)
        self.enabled: bool = _attribute(bound, source, "enabled", True)
        self.lapses_force: bool = _attribute(bound, source, "lapses_force", False)
        depends_on = _attribute(bound, source, "depends_on", None)
        self.depends_on: frozenset[str] | None = None if depends_on is None else frozenset(depends_on)
        self.on_start: Callable[[Any], Any] | None = _attribute(bound, source, "on_start", None)
        self.version: Any = _attribute(bound, source, "version", None)
        self.rules: Callable[[History, RunView], Any] = bound.rules

    def describe(self) -> dict[str, Any]:
        """Kind, version and what the requirement says of itself."""
        own = getattr(self.source, "describe", None)
        said = dict(own()) if callable(own) else {"kind": f"custom:{type(self.source).__qualname__}"}
        if self.version is not None:
            said["version"] = self.version
        if self.depends_on is not None:
            said["depends_on"] = sorted(self.depends_on)
        return said


def _attribute(bound: Any, source: Any, name: str, default: Any) -> Any:
    return getattr(bound, name, getattr(source, name, default))


def check_priority(priority: Any, name: str) -> int:
    """Return the priority. Raises PolicyError unless it is a whole number above 0."""
    if not isinstance(priority, int) or isinstance(priority, bool) or priority < 1:
        raise PolicyError(f"{name}: priority has to be a whole number above 0, got {priority!r}")
    return priority


def check_enabled(enabled: Any, name: str) -> bool:
    """Return the switch. Raises PolicyError unless it is a bool."""
    if not isinstance(enabled, bool):
        raise PolicyError(f"{name}: enabled has to be True or False, got {enabled!r}")
    return enabled


def bind(requirement: Any, tools: Sequence[ToolLike], taken: Mapping[str, Any]) -> BoundRequirement:
    """Bind a requirement to the tools of a policy, under a name that is not in `taken`.

    Raises PolicyError for what is no requirement, for unknown tools, and for a bad name, priority or `enabled`.
    """
    if isinstance(requirement, type) or not callable(getattr(requirement, "rules", None)):
        raise PolicyError(f"{requirement!r} is no requirement: it needs a method rules(history, run)")
    binder = getattr(requirement, "bind", None)
    bound = binder(tools) if callable(binder) else requirement
    if not callable(getattr(bound, "rules", None)):
        raise PolicyError(f"bind() of {requirement!r} has to return the bound form, got {bound!r}")
    name = getattr(bound, "name", None) or getattr(requirement, "name", None) or type(requirement).__name__
    if not isinstance(name, str):
        raise PolicyError(f"the name of a requirement has to be a text, got {name!r}")
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}#{number}", number + 1
    if isinstance(bound, BuiltIn):
        result: BoundRequirement = bound if unique == bound.name else bound.named(unique)
    else:
        result = Adapted(requirement, bound, unique)
    check_priority(result.priority, unique)
    check_enabled(result.enabled, unique)
    return result

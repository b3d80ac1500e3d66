"""A requirement out of a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, overload

from maymust.core.history import History
from maymust.core.requirement import DEFAULT_PRIORITY, GivenRules, RunView, check_enabled, check_priority
from maymust.core.rule import Rule
from maymust.core.tool_spec import ToolLike, match_target, target_text
from maymust.errors import PolicyError
from maymust.requirements.predicate import check_denials, function_text, is_async, takes_run
from maymust.requirements.targets import as_targets, resolve


class FunctionRequirement:
    """A requirement made by `@requirement`. Calling it calls the function."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        targets: Any = None,
        priority: int = DEFAULT_PRIORITY,
        depends_on: Any = None,
        stable_once_true: bool = False,
        max_denials: int | None = None,
        enabled: bool = True,
        version: str | int | None = None,
    ) -> None:
        if not callable(function):
            raise PolicyError(f"@requirement needs a function of (history) or (history, run), got {function!r}")
        self.name: str = name or function_text(function)
        self.function = function
        self.targets: tuple[Any, ...] | None = None if targets is None else as_targets(targets)
        self.priority: int = check_priority(priority, self.name)
        self.depends_on: tuple[Any, ...] | None = None if depends_on is None else as_targets(depends_on)
        if not isinstance(stable_once_true, bool):
            raise PolicyError(f"{self.name}: stable_once_true has to be True or False, got {stable_once_true!r}")
        self.stable_once_true = stable_once_true
        self.max_denials: int | None = check_denials(max_denials, self.name)
        self.enabled: bool = check_enabled(enabled, self.name)
        self.version = version
        self.is_async: bool = is_async(function)
        self._takes_run = takes_run(function, self.name)
        self.__doc__ = getattr(function, "__doc__", None)

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def rules(self, history: History, run: RunView, /) -> GivenRules | Awaitable[GivenRules]:
        """Ask the function. Gives an awaitable when it is async."""
        answer: GivenRules | Awaitable[GivenRules] = self.function(history, run) if self._takes_run else self.function(history)
        return answer

    def bind(self, tools: Sequence[ToolLike]) -> BoundFunction:
        """Check every tool it refers to, and return the bound form."""
        return BoundFunction(self, tools)


class BoundFunction:
    """The bound form of a `@requirement`: it may speak of its targets only."""

    def __init__(self, source: FunctionRequirement, tools: Sequence[ToolLike]) -> None:
        self.source = source
        self.name: str = source.name
        self.priority: int = source.priority
        self.enabled: bool = source.enabled
        self.version: str | int | None = source.version
        self.is_async: bool = source.is_async
        self._tools = tools
        self.targets: frozenset[str] | None = None if source.targets is None else _resolved(source.targets, tools, f"{self.name}: targets")
        self.stable_once_true: bool = source.stable_once_true
        self.max_denials: int | None = source.max_denials
        self.depends_on: frozenset[str] | None = (
            None if source.depends_on is None else _resolved(source.depends_on, tools, f"{self.name}: depends_on")
        )

    def rules(self, history: History, run: RunView, /) -> Any:
        """The function's rules, checked against `targets`; an awaitable of them when it is async."""
        if self.is_async:
            # The function is not called before somebody waits, so nothing is left behind where nobody does.
            return self._awaited(history, run)
        answer = self.source.rules(history, run)
        return answer if isinstance(answer, Awaitable) else self._checked(answer)

    async def _awaited(self, history: History, run: RunView) -> GivenRules:
        answer = self.source.rules(history, run)
        return self._checked(await answer if isinstance(answer, Awaitable) else answer)

    def _checked(self, answer: GivenRules) -> GivenRules:
        if self.targets is None or answer is None or not isinstance(answer, Iterable | Rule):
            return answer
        rules: tuple[Any, ...] = (answer,) if isinstance(answer, Rule) else tuple(answer)
        for rule in rules:
            if not isinstance(rule, Rule):
                continue  # the policy says what is wrong with it
            text = target_text(rule.target)
            if not self.targets.issuperset(match_target(rule.target, self._tools) or (text,)):
                raise PolicyError(f"requirement {self.name} gives a rule on {text}, which is not among its targets; add it to targets")
        return rules

    def describe(self) -> dict[str, Any]:
        """Kind and declared tools."""
        said: dict[str, Any] = {"kind": f"function:{function_text(self.source.function)}"}
        if self.targets is not None:
            said["targets"] = sorted(self.targets)
        return said


def _resolved(targets: Sequence[Any], tools: Sequence[ToolLike], where: str) -> frozenset[str]:
    return frozenset(name for target in targets for name in resolve(target, tools, where=where))


@overload
def requirement(function: Callable[..., Any], /) -> FunctionRequirement: ...
@overload
def requirement(
    *,
    name: str | None = None,
    targets: Any = None,
    priority: int = DEFAULT_PRIORITY,
    depends_on: Any = None,
    stable_once_true: bool = False,
    max_denials: int | None = None,
    enabled: bool = True,
    version: str | int | None = None,
) -> Callable[[Callable[..., Any]], FunctionRequirement]: ...
def requirement(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    targets: Any = None,
    priority: int = DEFAULT_PRIORITY,
    depends_on: Any = None,
    stable_once_true: bool = False,
    max_denials: int | None = None,
    enabled: bool = True,
    version: str | int | None = None,
) -> FunctionRequirement | Callable[[Callable[..., Any]], FunctionRequirement]:
    """Make a requirement from a function of (history) or (history, run) that gives rules, one rule or None.

    name              default: the function's name
    targets           the tools its rules may be about; checked when a policy is built, and again for every rule
    priority          whole number above 0
    depends_on        tools whose calls may change its rules; without it, calls of one batch run one after another
    stable_once_true  a promise for verification: once it has let a call of its targets through, it closes none of them any more
    max_denials       a promise for verification: it closes its targets at most so many times
    version           takes part in the policy's hash; raise it when the function changes its meaning

    An async function works in the agent loop, and is refused by `Policy.permit`.
    """

    def decorate(function: Callable[..., Any]) -> FunctionRequirement:
        return FunctionRequirement(
            function,
            name=name,
            targets=targets,
            priority=priority,
            depends_on=depends_on,
            stable_once_true=stable_once_true,
            max_denials=max_denials,
            enabled=enabled,
            version=version,
        )

    return decorate if function is None else decorate(function)

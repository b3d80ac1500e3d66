"""Requirements written for BeeAI's RequirementAgent, as ours: `policy_from_beeai(requirements, tools)`."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from maymust.errors import UnsupportedRuleError, missing

try:
    from beeai_framework.agents.requirement.requirements.ask_permission import AskPermissionRequirement as BeeAsk
    from beeai_framework.agents.requirement.requirements.ask_permission import _default_handler
    from beeai_framework.agents.requirement.requirements.conditional import ConditionalRequirement as BeeConditional
    from beeai_framework.agents.requirement.utils._tool import FinalAnswerTool
except ImportError as _fault:
    raise missing("this adapter needs BeeAI", "beeai", _fault) from _fault

from maymust.agent.approval import ask_in_terminal
from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.requirements.conditional import ConditionalRequirement
from maymust.requirements.permission import AskPermissionRequirement

__all__ = ["BeeAIDifference", "from_beeai", "policy_from_beeai"]


class BeeAIDifference(UserWarning):
    """A requirement means something else here than it did in BeeAI. The text says what."""


def policy_from_beeai(
    requirements: Iterable[Any], tools: Iterable[Any], *, final_answer_as_tool: bool = True, strict: bool = True
) -> Policy:
    """Return a policy that says what these BeeAI requirements say, over BeeAI's tools or any others of the same names.

    strict   False: requirements of classes of your own are left out with a warning

    Raises UnsupportedRuleError for requirements of classes of your own, and PolicyError for what a policy refuses.
    """
    known = [tool for tool in tools if not isinstance(tool, FinalAnswerTool)]
    return Policy(from_beeai(requirements, known, strict=strict), tools=known, final_answer_as_tool=final_answer_as_tool)


def from_beeai(requirements: Iterable[Any], tools: Iterable[Any] = (), *, strict: bool = True) -> list[Any]:
    """Return our requirements for BeeAI's, in the same order. `tools` are shown to custom checks and handlers, by name."""
    by_name = {tool if isinstance(tool, str) else tool.name: tool for tool in tools}
    made: list[Any] = []
    for one in requirements:
        if isinstance(one, BeeConditional):
            made.append(_conditional(one, by_name))
        elif isinstance(one, BeeAsk):
            made.append(_ask(one, by_name))
        else:
            text = f"{one.name}: {type(one).__name__} is a class of your own; write its run() as a function with @maymust.requirement"
            if strict:
                raise UnsupportedRuleError(text, framework="BeeAI", features=("custom",))
            warnings.warn(f"{text}. It is left out", BeeAIDifference, stacklevel=3)
    return made


def _conditional(one: Any, tools: dict[str, Any]) -> ConditionalRequirement:
    if one._before and not one._after:
        _differs(one, "BeeAI looks at only_before only beside only_after; here it closes the tool by itself")
    if one._custom_checks:
        _differs(one, "its custom checks see the steps of the run and nothing else of BeeAI's state")
    return ConditionalRequirement(
        _target(one.source),
        name=one.name,
        force_at_step=one._force_at_step,
        only_before=_targets(one._before),
        only_after=_targets(one._after),
        force_after=_targets(one._force_after),
        force_prevent_stop=one._force_prevent_stop,
        min_invocations=one._min_invocations or None,
        max_invocations=None if one._max_invocations == math.inf else one._max_invocations,
        only_success_invocations=one._only_success_invocations,
        consecutive_allowed=one._consecutive_allowed,
        custom_checks=[_check(check, tools) for check in one._custom_checks],
        priority=one.priority,
        enabled=one.enabled,
        reason=one._reason,
    )


def _ask(one: Any, tools: dict[str, Any]) -> AskPermissionRequirement:
    _differs(one, "a call that a person says no to is no invocation here; in BeeAI it is a successful one")
    if one._remember_choices:
        _differs(one, "choices are remembered for one run; in BeeAI for all runs of the requirement. Pass remember_in=ApprovalMemory()")
    if one.middlewares:
        _differs(one, "its middlewares are left out")
    names = [target for target in one._exclude if not _is_final(target)]
    if one._state:
        _differs(one, "what it has remembered so far is left out")
    handler = ask_in_terminal if one._handler is _default_handler else _handler(one._handler, tools)
    return AskPermissionRequirement(
        _targets(one._include),
        exclude=_targets(names),
        handler=handler,
        remember_choices=one._remember_choices,
        hide_disallowed=one._hide_disallowed,
        always_allow=one._always_allow,
        name=one.name,
        priority=one.priority,
        enabled=one.enabled,
    )


def _differs(one: Any, text: str) -> None:
    warnings.warn(f"{one.name}: {text}", BeeAIDifference, stacklevel=5)


def _is_final(target: Any) -> bool:
    return target is FinalAnswerTool or isinstance(target, FinalAnswerTool) or target == FINAL_ANSWER


def _target(target: Any) -> Any:
    return FINAL_ANSWER if _is_final(target) else target


def _targets(targets: Iterable[Any]) -> list[Any] | None:
    # BeeAI keeps sets; sorted, so that reasons and hashes do not depend on the order of a set.
    return sorted((_target(target) for target in targets), key=str) or None


@dataclass(frozen=True)
class BeeStep:
    """A step as BeeAI's checks read it."""

    tool: Any
    input: Any
    output: Any
    error: Exception | None
    id: str | None = None
    ability: None = None
    iteration: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BeeState:
    """As much of BeeAI's run state as a history tells."""

    steps: list[BeeStep]


def _check(check: Callable[[Any], Any], tools: dict[str, Any]) -> Callable[[History], bool]:
    def converted(history: History) -> bool:
        steps = []
        for step in history:
            if step.outcome.is_invocation:
                error = Exception(step.text or "the call failed") if step.outcome is Outcome.FAILED else None
                steps.append(BeeStep(tools.get(step.tool, step.tool), step.arguments, step.output, error, step.call_id))
        # BeeAI takes anything that is true; here a check has to give a bool.
        return bool(check(BeeState(steps)))

    converted.__name__ = getattr(check, "__name__", "check")
    return converted


def _handler(handler: Callable[..., Any], tools: dict[str, Any]) -> Callable[[Any], Any]:
    async def converted(call: Any) -> bool:
        answer = handler(tools.get(call.tool, call.tool), dict(call.arguments))
        return bool(await answer if inspect.isawaitable(answer) else answer)

    return converted

"""What a framework cannot enforce, told at construction; and how a permit reads where the answer is a text."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.requirement import BoundRequirement
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import PolicyError, UnsupportedRuleError

__all__ = ["FEATURES", "as_policy", "check_rules", "choice", "features_of", "refuse", "shown"]

FEATURES = {
    "async": "asynchronous requirements",
    "force": "forcing a tool (force_at_step, force_after)",
    "hide": "hiding a tool from the model",
    "pause": "asking a person without a handler",
    "stop": "keeping the run from ending (min_invocations, followed_by, rules on final_answer)",
}
"""What a rule may need of a framework, by the word that the table of docs/reference/adapters.md uses."""

ALWAYS_MISSING = {"async": "the gate is asked at once, so make the requirement a plain function"}


def features_of(requirement: BoundRequirement) -> set[str]:
    """What this requirement is known to need of a framework. Rules of custom requirements are not known before they are given."""
    describe = getattr(requirement, "describe", None)
    said: Mapping[str, Any] = describe() if callable(describe) else {}
    source = getattr(requirement, "source", None)
    found = set()
    if getattr(requirement, "is_async", False) or getattr(source, "is_async", False) or inspect.iscoroutinefunction(requirement.rules):
        found.add("async")
    if said.get("force_at_step") or said.get("force_after"):
        found.add("force")
    if said.get("hide_disallowed"):
        found.add("hide")
    if said.get("kind") == "ask_permission" and not said.get("handler") and not said.get("always_allow"):
        found.add("pause")
    if said.get("min_invocations") or said.get("followed_by") or FINAL_ANSWER in (said.get("target"), getattr(requirement, "target", None)):
        found.add("stop")
    return found


def refuse(framework: str, problems: Iterable[tuple[str, str]], *, strict: bool, features: Iterable[str] = ()) -> None:
    """Raise UnsupportedRuleError for (who, why) pairs, or warn of it; nothing for none."""
    lines = [f"{who}: {why}" for who, why in problems]
    if not lines:
        return
    text = f"{framework} cannot enforce this policy: {'; '.join(lines)}. Change the rules, or pass strict=False to go without them"
    if strict:
        raise UnsupportedRuleError(text, framework=framework, features=tuple(features))
    warnings.warn(text, stacklevel=4)


def check_rules(framework: str, policy: Policy, missing: Mapping[str, str], *, strict: bool) -> None:
    """Compare what the policy needs with what the framework lacks (feature -> reason).

    Raises UnsupportedRuleError; with `strict=False` it is a warning.
    """
    lacks = {**ALWAYS_MISSING, **missing}
    found = [(one.name, feature) for one in policy.requirements if one.enabled for feature in sorted(features_of(one) & lacks.keys())]
    problems = [(name, f"{FEATURES[feature]} ({lacks[feature]})") for name, feature in found]
    refuse(framework, problems, strict=strict, features=dict.fromkeys(feature for _, feature in found))


def as_policy(policy: Any) -> Policy:
    """The policy itself. Raises PolicyError for anything else, with the fix."""
    if not isinstance(policy, Policy):
        raise PolicyError(f'an adapter takes a policy, got {policy!r}; write Policy([...requirements], tools=["search", ...])')
    return policy


def shown(permit: Permit) -> tuple[str, ...]:
    """Names of the tools to send: those that may be called."""
    return tuple(name for name in permit.allowed if name != FINAL_ANSWER)


def choice(permit: Permit) -> str:
    """`auto`, `required`, `none` or a tool's name, where the answer is a text and `final_answer` is no tool."""
    if permit.forced == FINAL_ANSWER or not shown(permit):
        return "none"
    if permit.forced is not None and not (permit.may_stop and FINAL_ANSWER in permit.allowed):
        return permit.forced
    if permit.may_stop:
        return "auto" if permit.forced is None else permit.forced
    names = shown(permit)
    return names[0] if len(names) == 1 else "required"

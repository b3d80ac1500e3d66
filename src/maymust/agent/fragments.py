"""Fragments of JSON Schema in rules are compiled before a run depends on them: a typo is an error early, not in mid-run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from maymust.core.policy import Policy
from maymust.core.rule import Rule
from maymust.core.tool_spec import did_you_mean
from maymust.errors import PolicyError
from maymust.tools.function_tool import Tool
from maymust.tools.json_schema import fragment_check, in_question


def check_policy(policy: Policy, tools: Mapping[str, Tool]) -> None:
    """Compile what the requirements know of their fragments from the start.

    Raises PolicyError, naming the requirement, for what is no schema and for a condition on a parameter that no asked tool has.
    """
    for requirement in policy.requirements:
        when = getattr(requirement, "when", None)
        if isinstance(when, Mapping):
            _compile(when, f"{requirement.name}: when", asking=True)
            include = getattr(requirement, "include", None)
            if include:
                _check_parameters(when, [tools[name] for name in include if name in tools], requirement.name)
        fixed = getattr(requirement, "fixed_fragment", None)
        if isinstance(fixed, Mapping):
            _compile({str(getattr(requirement, "param", "")): fixed}, requirement.name)


def check_rules(requirement: str, rules: Iterable[Rule]) -> None:
    """Compile the fragments of rules that a custom requirement has just given. Raises PolicyError, naming the requirement."""
    for rule in rules:
        if rule.arguments:
            _compile(rule.arguments, f"{requirement}: arguments of the rule on {rule.target}")
        if isinstance(rule.ask, Mapping):
            _compile(rule.ask, f"{requirement}: ask of the rule on {rule.target}", asking=True)


def _compile(fragments: Mapping[str, Mapping[str, Any]], where: str, *, asking: bool = False) -> None:
    for parameter, fragment in fragments.items():
        try:
            if asking:
                in_question(fragment)
            else:
                fragment_check(fragment)
        except PolicyError as fault:
            raise PolicyError(f"{where}: parameter {parameter}: {fault}") from None


def _check_parameters(when: Mapping[str, Any], asked: Iterable[Tool], name: str) -> None:
    """A condition on a parameter that is never there asks about every call, which is hardly meant."""
    known: set[str] = set()
    for tool in asked:
        schema = tool.parameters
        if schema.get("additionalProperties", True) is not False:
            return
        known.update(schema.get("properties", ()))
    for parameter in when:
        if known and parameter not in known:
            raise PolicyError(f"{name}: when: none of its tools has a parameter {parameter}{did_you_mean(parameter, known)}")

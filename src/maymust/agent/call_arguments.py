"""The arguments of a call: read from what the model wrote, and held against the rules that narrow them."""

from __future__ import annotations

from typing import Any

from maymust.core.permit import Permit
from maymust.tools.json_schema import fragment_check
from maymust.tools.strict_json import read_json


def read_arguments(raw: str) -> tuple[dict[str, Any] | None, str | None]:
    """The arguments as a dict, or None and what is wrong with the text."""
    if not raw.strip():
        return {}, None
    try:
        value = read_json(raw)
    except (ValueError, RecursionError) as fault:
        return None, f"the arguments are not valid JSON ({fault}); nothing was run"
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a text", type(None): "null"}.get(type(value), type(value).__name__)
        return None, f"the arguments must be one JSON object, and this is {kind}"
    return value, None


def outside_of(permit: Permit, tool: str, arguments: dict[str, Any]) -> str | None:
    """What is wrong with the arguments by the rules' fragments; None when they are inside.

    A parameter that is left out counts as null: it is inside only where a rule says that null is.
    """
    for parameter, fragments in permit.arguments(tool).items():
        value = arguments.get(parameter)
        for fragment in fragments:
            fault = fragment_check(fragment)(value)
            if fault is not None:
                if parameter not in arguments:
                    fault = f"it has to be given; {fault.partition('; ')[2]}"
                reasons = _reasons(permit, tool, parameter)
                return f"{parameter}: {fault}" + (f" ({reasons})" if reasons else "")
    return None


def _reasons(permit: Permit, tool: str, parameter: str) -> str:
    """What the rules that narrow this parameter give as a reason."""
    rules = [spoken.rule for spoken in permit.why(tool) if spoken.rule.target == tool]
    return "; ".join(dict.fromkeys(rule.reason for rule in rules if rule.reason and rule.arguments and parameter in rule.arguments))

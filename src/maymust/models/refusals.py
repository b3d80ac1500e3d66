"""What a provider's 400 says it does not take. Only that is given up, and only when the request used it."""

from __future__ import annotations

import re

from maymust.models.capabilities import Capabilities
from maymust.models.encode import Encoding

_OURS = (
    "not found",
    "must be followed",
    "tool_result",
    "bound to a different",
    "no tool output",
    "no tool call",
    "must be unique",
    "must follow a user",
)
"""Signs of a request that is at fault itself: asking less would only hide it."""


def refused_ability(text: str, sent: Encoding, capabilities: Capabilities) -> str | None:
    """The ability (`capabilities.ABILITIES`) that this error says is not there; None when it says no such thing."""
    said = text.lower()
    if any(sign in said for sign in _OURS):
        return None
    return next((ability for ability, sign in _signs(sent, capabilities) if re.search(sign, said)), None)


def _signs(sent: Encoding, capabilities: Capabilities) -> list[tuple[str, str]]:
    """What this request used, each with the words of an error that speaks of it; what says more comes first."""
    tools, forced = bool(sent.tools), sent.choice not in ("auto", "none")
    used: list[tuple[bool, str, str]] = [
        (capabilities.inline_tools, "inline_tools", r"additional_tools|tool_definition|inline-tools"),
        (
            sent.subset is not None or capabilities.subset == "tool_changes",
            "subset",
            r"allowed_tools|tool_addition|tool_removal|tool-changes|allowed_function_names",
        ),
        (tools and capabilities.parallel_switch, "parallel_switch", r"parallel_tool_calls|disable_parallel"),
        (capabilities.late_system, "late_system", r"system message must|role.{0,20}system|system.{0,40}(role|beginning)"),
        (sent.level == 5 and capabilities.json_schema, "json_schema", r"response_format|json_schema|output_config|text\.format"),
        (tools and capabilities.strict_schemas, "strict_schemas", r"\bstrict\b"),
        (forced and "required" in sent.choice, "required", r"required['\"`]?.{0,40}(not support|unsupported)"),
        (forced and "required" not in sent.choice, "named_choice", r"(named|specific) (tool|function)|tool_choice.{0,30}(string|object)"),
        (forced, "forced_choice", r"tool_choice|tool choice|forc(e|es|ed|ing) tool"),
        (tools, "tools", r"(does not|doesn't|not) support.{0,20}(tool|function)|tools?( use)? .{0,20}(not supported|unsupported)"),
    ]
    return [(ability, sign) for so, ability, sign in used if so]

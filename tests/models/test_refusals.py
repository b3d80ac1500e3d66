"""A 400 that says so takes away one ability, and no other 400 does."""

from __future__ import annotations

from typing import Any

import pytest

from maymust.models import Capabilities, Message, ModelRequest, ToolDefinition
from maymust.models.encode import encode
from maymust.models.refusals import refused_ability

TOOLS = tuple(ToolDefinition(name, "", {"type": "object"}) for name in ("think", "search"))
FULL = Capabilities(
    subset="allowed_tools", parallel_switch=True, strict_schemas=True, json_schema=True, late_system=True, inline_tools=True
)


def lost(text: str, choice: str = "required", allowed: tuple[str, ...] = ("think",), told: Capabilities = FULL) -> Any:
    return refused_ability(text, encode(ModelRequest([Message("user", "hi")], TOOLS, allowed, choice), told), told)


@pytest.mark.parametrize(
    ("text", "ability"),
    [
        ("Thinking mode does not support this tool_choice", "forced_choice"),
        ("tool_choice forces tool use, which is not supported for this model. Use `auto` or `none`.", "forced_choice"),
        ("Thinking may not be enabled when tool_choice forces tool use.", "forced_choice"),
        ("Invalid value: 'allowed_tools'. Supported values are: 'function'. (tool_choice.type)", "subset"),
        ("Unsupported parameter: 'parallel_tool_calls' is not supported with this model.", "parallel_switch"),
        ("Unknown parameter: 'tools[0].function.strict'.", "strict_schemas"),
        ("System message must be at the beginning.", "late_system"),
        ("messages.3.role: system is not supported on this model", "late_system"),
        ("Invalid value: 'additional_tools'. (input)", "inline_tools"),
        ("tool_choice 'required' is not supported", "required"),
        ("registry.ollama.ai/library/gemma:2b does not support tools", "tools"),
        ("This model does not support tools.", "tools"),
    ],
)
def test_what_providers_say(text: str, ability: str) -> None:
    assert lost(text) == ability


@pytest.mark.parametrize(
    "text",
    [
        "Invalid value: 'tool_choice.function.name': 'x' not found in 'tools'.",
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
        "This model's maximum context length is 8192 tokens.",
        "max_tokens: Field required",
    ],
)
def test_a_request_that_is_at_fault_itself_is_not_made_weaker(text: str) -> None:
    assert lost(text) is None


def test_only_what_the_request_used_can_be_lost() -> None:
    assert lost("tool_choice is not supported", choice="auto") is None
    assert lost("allowed_tools is unknown", choice="think") is None
    assert lost("parallel_tool_calls: unknown", told=Capabilities()) is None


def test_a_named_choice_is_lost_by_itself() -> None:
    assert lost("named tool choice is not supported", choice="think") == "named_choice"
    assert lost("tool_choice: Input should be a string, not an object", choice="think") == "named_choice"

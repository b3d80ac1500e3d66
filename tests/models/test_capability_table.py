"""The table of what models can be told about tools."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from anthropic.types import ModelParam
from openai.types import ChatModel as OpenAIName

from maymust.models import Capabilities
from maymust.models.anthropic import AnthropicModel
from maymust.models.capability_table import GUESS, TABLE, capabilities_of, entry_for
from maymust.models.openai import OpenAIChatModel

CLAUDES = [name for part in get_args(ModelParam) for name in get_args(part)]


def test_every_entry_says_where_it_is_written() -> None:
    for entry in TABLE:
        assert "http" in entry.source or "SDK" in entry.source, entry.patterns


def test_every_entry_is_reached_by_some_name() -> None:
    for entry in TABLE:
        for pattern in entry.patterns:
            name = pattern.replace("[12]", "1").replace("[5-9]", "5").replace("[4-9]", "4").replace("?", "1").replace("*", "")
            assert entry_for(name, entry.apis[0]) is entry, pattern


@pytest.mark.parametrize("name", CLAUDES)
def test_every_claude_that_the_sdk_knows_is_in_the_table(name: str) -> None:
    assert entry_for(name, "messages") is not None


@pytest.mark.parametrize("name", [name for name in get_args(OpenAIName) if "codex" not in name and "audio" not in name])
def test_every_chat_model_that_the_sdk_knows_is_in_the_table(name: str) -> None:
    assert entry_for(name, "chat") is not None


@pytest.mark.parametrize(
    ("name", "api", "told"),
    [
        ("claude-opus-5-5", "messages", {"forced_choice": "no", "prefix_bound": True, "subset": "tool_changes", "late_system": True}),
        ("us.anthropic.claude-sonnet-5-5-v1:0", "messages", {"forced_choice": "no", "prefix_bound": True}),
        ("claude-opus-5", "messages", {"forced_choice": "not_with_thinking", "prefix_bound": False, "thinks": True}),
        ("claude-sonnet-5", "messages", {"subset": "choice", "late_system": False}),
        ("claude-sonnet-4-5-20250929", "messages", {"forced_choice": "not_with_thinking", "subset": "choice", "thinks": False}),
        ("gpt-6-sol", "chat", {"subset": "allowed_tools", "inline_tools": False}),
        ("gpt-6-sol", "responses", {"subset": "allowed_tools", "inline_tools": True}),
        ("openai/gpt-oss-120b", "chat", {"forced_choice": "no"}),
        ("deepseek-reasoner", "chat", {"forced_choice": "not_with_thinking", "thinks": True}),
        ("o1-mini", "chat", {"tools": False}),
        ("o3", "chat", {"parallel_switch": False}),
    ],
)
def test_what_the_table_says(name: str, api: Any, told: dict[str, Any]) -> None:
    found = capabilities_of(name, api)
    assert {field: getattr(found, field) for field in told} == told


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_an_unknown_model_gets_a_guess_that_nothing_refuses(api: Any) -> None:
    told = capabilities_of("nobody-knows-this-1", api)
    assert told == GUESS[api]
    assert told.subset in ("filter", "choice")
    assert [told.parallel_switch, told.strict_schemas, told.json_schema, told.inline_tools] == [False] * 4


def test_the_table_is_overridden_for_one_model_object() -> None:
    mine = Capabilities(forced_choice="no")
    assert OpenAIChatModel("gpt-6-sol", capabilities=mine, api_key="-").capabilities == mine


def test_thinking_that_is_switched_on_or_off_counts() -> None:
    on = AnthropicModel("claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 2000})
    off = AnthropicModel("claude-opus-5", thinking={"type": "disabled"})
    assert on.capabilities.thinks
    assert not off.capabilities.thinks
    silent = OpenAIChatModel("deepseek-v4-pro", api_key="-", extra_body={"thinking": {"type": "disabled"}})
    assert not silent.capabilities.thinks

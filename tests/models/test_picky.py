"""The picky server is as picky as it says: what providers refuse, it refuses, to their own SDKs."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai
import pytest

from tests.models.picky import Manners, PickyServer

CHAT_TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
RESPONSE_TOOLS = [{"type": "function", "name": "search", "parameters": {"type": "object"}, "strict": False}]
CLAUDE_TOOLS = [{"name": "search", "input_schema": {"type": "object"}}]
USER = {"role": "user", "content": "hi"}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "search", "input": {}}]}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "search", "arguments": "{}"}}],
}


def ask(api: str, manners: Manners, body: dict[str, Any]) -> Any:
    async def main() -> Any:
        with PickyServer(["fine"] * 3, manners=manners) as server:
            if api == "messages":
                async with anthropic.AsyncAnthropic(base_url=server.url, api_key="-", max_retries=0) as claude:
                    return await claude.messages.create(**{"model": "m", "max_tokens": 9, **body})
            async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="-", max_retries=0) as client:
                made: Any = client.chat.completions if api == "chat" else client.responses
                return await made.create(**{"model": "m", **body})

    return asyncio.run(main())


FORCED = Manners(forced=False)
PLAIN = Manners()
REFUSED = [
    ("chat", FORCED, {"messages": [USER], "tools": CHAT_TOOLS, "tool_choice": "required"}, "tool_choice"),
    ("chat", PLAIN, {"messages": [USER], "tools": CHAT_TOOLS, "tool_choice": {"type": "function", "function": {"name": "x"}}}, "not found"),
    ("chat", PLAIN, {"messages": [USER], "tool_choice": "required"}, "tools"),
    ("chat", PLAIN, {"messages": [USER, CALL], "tools": CHAT_TOOLS}, "must be followed"),
    ("chat", PLAIN, {"messages": [USER, {"role": "tool", "tool_call_id": "t1", "content": "x"}]}, "must be a response"),
    ("chat", Manners(subsets=False), {"messages": [USER], "tools": CHAT_TOOLS, "tool_choice": {"type": "allowed_tools"}}, "allowed_tools"),
    ("responses", FORCED, {"input": [USER], "tools": RESPONSE_TOOLS, "tool_choice": "required"}, "tool_choice"),
    ("responses", PLAIN, {"input": [USER], "tools": RESPONSE_TOOLS, "tool_choice": {"type": "function", "name": "x"}}, "not found"),
    (
        "responses",
        PLAIN,
        {"input": [USER, {"type": "function_call", "call_id": "t1", "name": "search", "arguments": "{}"}]},
        "No tool output",
    ),
    ("responses", PLAIN, {"input": [{"type": "function_call_output", "call_id": "t1", "output": "x"}]}, "No tool call"),
    (
        "responses",
        PLAIN,
        {"input": [USER, {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "s"}, USER]},
        "without its required following item",
    ),
    ("messages", FORCED, {"messages": [USER], "tools": CLAUDE_TOOLS, "tool_choice": {"type": "any"}}, "forces tool use"),
    (
        "messages",
        PLAIN,
        {"messages": [USER], "tools": CLAUDE_TOOLS, "tool_choice": {"type": "any"}, "thinking": {"type": "adaptive"}},
        "Thinking may not be enabled",
    ),
    ("messages", PLAIN, {"messages": [USER], "tools": CLAUDE_TOOLS, "tool_choice": {"type": "tool", "name": "x"}}, "not found"),
    ("messages", PLAIN, {"messages": [USER, USE, USER], "tools": CLAUDE_TOOLS}, "without `tool_result`"),
    ("messages", PLAIN, {"messages": [USER, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}]}, "unexpected"),
    ("messages", PLAIN, {"messages": [USER, {"role": "assistant", "content": "so"}]}, "prefill"),
    ("messages", Manners(late_system=False), {"messages": [USER, {"role": "system", "content": "x"}]}, "not supported"),
]


@pytest.mark.parametrize(("api", "manners", "body", "said"), REFUSED)
def test_what_it_refuses(api: str, manners: Manners, body: dict[str, Any], said: str) -> None:
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError), match=said):
        ask(api, manners, body)


@pytest.mark.parametrize("what", ["system", "tools", "message"])
def test_a_prefix_that_changed_before_thinking_is_refused(what: str) -> None:
    manners = Manners(thinks=True, bound=True)
    body: dict[str, Any] = {"system": "one", "tools": CLAUDE_TOOLS, "messages": [USER]}
    said = ask("messages", manners, body)
    later = [*body["messages"], {"role": "assistant", "content": [block.to_dict() for block in said.content]}, USER]
    assert ask("messages", manners, {**body, "messages": later}).content
    changed = {
        "system": {**body, "system": "two", "messages": later},
        "tools": {**body, "tools": [*CLAUDE_TOOLS, {**CLAUDE_TOOLS[0], "name": "read"}], "messages": later},
        "message": {**body, "messages": [{"role": "user", "content": "hello"}, *later[1:]]},
    }[what]
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        ask("messages", manners, changed)

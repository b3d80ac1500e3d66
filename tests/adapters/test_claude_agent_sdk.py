"""The table through the real SDK and the program it bundles, which talks to a scripted Messages API on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk")

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    create_sdk_mcp_server,
    query,
    tool,
)

from maymust import AskPermissionRequirement, ConditionalRequirement, Policy, requirement
from maymust.adapters.claude_agent_sdk import policy_hooks
from maymust.errors import UnsupportedRuleError
from tests.adapters.claude_peer import Peer
from tests.adapters.harness import Broken, Scenario, check, noting, policy, scenarios

pytestmark = pytest.mark.filterwarnings("ignore")

STALLED = "stop_hook_prevented"


def options_of(peer: Peer, hooks: Any, execute: Callable[[str], str], home: Path, **options: Any) -> ClaudeAgentOptions:
    def result(name: str) -> dict[str, Any]:
        try:
            return {"content": [{"type": "text", "text": execute(name)}]}
        except Broken as problem:
            return {"content": [{"type": "text", "text": str(problem)}], "is_error": True}

    @tool("think", "Think.", {})
    async def think(args: dict[str, Any]) -> dict[str, Any]:
        return result("think")

    @tool("search", "Search.", {"q": str})
    async def search(args: dict[str, Any]) -> dict[str, Any]:
        return result("search")

    @tool("refund", "Refund.", {"amount": float})
    async def refund(args: dict[str, Any]) -> dict[str, Any]:
        return result("refund")

    allowed = options.pop("allowed_tools", [f"mcp__desk__{name}" for name in ("think", "search", "refund")])
    alone = {
        "ANTHROPIC_BASE_URL": peer.url,
        "ANTHROPIC_API_KEY": "none",
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    return ClaudeAgentOptions(
        hooks=hooks,
        mcp_servers={"desk": create_sdk_mcp_server("desk", tools=[think, search, refund])},
        allowed_tools=allowed,
        tools=[],
        setting_sources=[],
        model="claude-sonnet-4-5",
        cwd=home,
        env=alone,
        **options,
    )


def desk(turns: list[Any]) -> list[Any]:
    """The script with names as the SDK writes them."""
    return [turn if isinstance(turn, str) else [(f"mcp__desk__{name}", args) for name, args in turn] for turn in turns]


async def ask(options: ClaudeAgentOptions, prompt: str = "Help me.") -> list[Any]:
    return [message async for message in query(prompt=prompt, options=options)]


def run(turns: list[Any], hooks: Any, execute: Callable[[str], str], home: Path, **options: Any) -> tuple[list[Any], Peer]:
    with Peer(desk(turns)) as peer:
        return asyncio.run(asyncio.wait_for(ask(options_of(peer, hooks, execute, home, **options)), 60)), peer


@pytest.mark.parametrize("row", scenarios())
def test_the_claude_agent_sdk_executes_what_the_table_says(row: dict[str, Any], tmp_path: Path) -> None:
    def play(scenario: Scenario) -> str | None:
        # Not enforceable: a hidden tool is seen by the model. It cannot be called all the same.
        hooks = policy_hooks(scenario.built_policy(), strict=scenario.policy != "refund_hidden")
        messages, _ = run(scenario.turns(), hooks, scenario.execute, tmp_path)
        result = next(message for message in messages if isinstance(message, ResultMessage))
        return None if result.terminal_reason == STALLED else result.result

    check(row, play)


def test_the_model_reads_why_a_call_was_refused(tmp_path: Path) -> None:
    _, peer = run([[("search", {"q": "x"})], "done"], policy_hooks(policy("search_after_think")), noting([]), tmp_path)
    assert "not now: think has to succeed first; you may call: think, refund, final_answer" in str(peer.heard[-1])


def test_prompts_of_one_client_do_not_share_a_history(tmp_path: Path) -> None:
    ran: list[str] = []

    async def main(peer: Peer) -> None:
        async with ClaudeSDKClient(options_of(peer, policy_hooks(policy("two_searches")), noting(ran), tmp_path)) as client:
            for prompt in ("Help me.", "Again."):
                await client.query(prompt)
                async for _ in client.receive_response():
                    pass

    with Peer(desk([[("search", {"q": "x"})] * 2, "one", [("search", {"q": "x"})] * 2, "two"])) as peer:
        asyncio.run(asyncio.wait_for(main(peer), 60))
    assert ran == ["search"] * 4


def test_streaming_goes_on(tmp_path: Path) -> None:
    ran: list[str] = []
    turns = [[("search", {"q": "x"})], "done"]
    messages, _ = run(turns, policy_hooks(policy("owes_search")), noting(ran), tmp_path, include_partial_messages=True)
    assert any(isinstance(message, StreamEvent) for message in messages)
    assert ran == ["search"]


@pytest.mark.parametrize("says", [True, False])
def test_a_question_goes_to_the_permissions_of_the_options(says: bool, tmp_path: Path) -> None:
    ran, asked = list[str](), list[str]()

    async def can_use_tool(name: str, given: dict[str, Any], context: Any) -> Any:
        asked.append(name)
        return PermissionResultAllow() if says else PermissionResultDeny(message="no money")

    async def main(peer: Peer) -> None:
        rules = Policy([AskPermissionRequirement("refund")], tools=["think", "search", "refund"])
        options = options_of(peer, policy_hooks(rules), noting(ran), tmp_path, can_use_tool=can_use_tool)
        async with ClaudeSDKClient(options) as client:
            await client.query("Help me.")
            async for _ in client.receive_response():
                pass

    with Peer(desk([[("refund", {"amount": 5})], "done"])) as peer:
        asyncio.run(asyncio.wait_for(main(peer), 60))
    assert asked == ["mcp__desk__refund"]
    assert ran == (["refund"] if says else [])


def test_what_it_cannot_enforce_is_said_at_construction_or_ends_the_run(tmp_path: Path) -> None:
    @requirement(name="slow", targets=["think"])
    async def slow(history: Any) -> None:
        return None

    with pytest.raises(UnsupportedRuleError, match="slow: asynchronous requirements"):
        policy_hooks(Policy([slow], tools=["think"]))
    with pytest.raises(UnsupportedRuleError, match="hiding a tool from the model"):
        policy_hooks(Policy([AskPermissionRequirement("think", remember_choices=True, hide_disallowed=True)], tools=["think"]))
    ran: list[str] = []
    messages, _ = run([[("search", {"q": "x"})], "done"], policy_hooks(policy("refund_hidden")), noting(ran), tmp_path)
    assert ran == []
    assert "refund: hiding a tool" in str(messages)


def test_limits_hold_by_short_names() -> None:
    rules = Policy([ConditionalRequirement("search", max_invocations=1)], tools=["search"])
    before = policy_hooks(rules)["PreToolUse"][0].hooks[0]
    data = {"session_id": "s", "tool_name": "mcp__desk__search", "tool_input": {}, "tool_use_id": "1"}
    assert asyncio.run(before(data, "1", None)) == {}

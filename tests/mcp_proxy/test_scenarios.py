"""The table of runs that the own loop and every adapter plays, as far as a proxy of tools can hold it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp.server.mcpserver import MCPServer
from mcp.types import ElicitResult

from maymust.core.policy import Policy
from maymust.errors import UnsupportedRuleError
from maymust.mcp_proxy.limits import check_policy
from maymust.requirements.permission import AskPermissionRequirement
from tests.adapters.harness import TOOLS, Scenario, scenarios
from tests.mcp_proxy.harness import ERAS, proxied, run

ABOUT_THE_ANSWER = ("answer_after_search", "owes_search")
"""Policies that say when the run may end, which a proxy of tools does not see."""


def server_of(scenario: Scenario) -> MCPServer:
    """The tools of the table."""
    server = MCPServer("table")

    @server.tool()
    def think() -> str:
        return scenario.execute("think")

    @server.tool()
    def search(q: str) -> str:
        return scenario.execute("search")

    @server.tool()
    def refund(amount: float) -> str:
        return scenario.execute("refund")

    return server


def policy_of(scenario: Scenario) -> Policy:
    """The policy of a row. The person sits at the client."""
    if scenario.policy == "refund_asks":
        return Policy([AskPermissionRequirement("refund")], tools=TOOLS, final_answer_as_tool=False)
    return scenario.built_policy()


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("row", scenarios())
def test_a_row_of_the_table(row: dict[str, Any], mode: str) -> None:
    scenario = Scenario(**json.loads(json.dumps(row)))
    policy = policy_of(scenario)
    if scenario.policy in ABOUT_THE_ANSWER:
        with pytest.raises(UnsupportedRuleError):
            check_policy(policy)
        return

    async def person(context: Any, params: Any) -> ElicitResult:
        scenario.asked.append(params.message)
        return ElicitResult(action="accept" if scenario.says else "decline")

    async def main() -> None:
        async with proxied(policy, server_of(scenario), mode=mode, elicitation_callback=person) as client:
            for turn in scenario.turns():
                if isinstance(turn, list):
                    await asyncio.gather(*(client.call_tool(name, arguments) for name, arguments in turn))

    run(main)
    assert scenario.ran == scenario.executed, scenario.about
    assert len(scenario.asked) == (scenario.policy == "refund_asks")

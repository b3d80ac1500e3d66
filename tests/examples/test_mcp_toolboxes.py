"""Toolboxes of a real MCP server: tools come from the next turn on, under rules that were there before them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from examples.mcp_toolboxes import __main__ as example
from examples.mcp_toolboxes.script import SCRIPT
from maymust import RunResult, load_policy
from maymust.models import ScriptedModel, call
from maymust.models.scripted import Turn
from maymust.verify import verify


def run(state: Path, *turns: Turn) -> RunResult[str]:
    return asyncio.run(example.work("?", ScriptedModel(turns), state))


def outcomes(result: RunResult[str], tool: str) -> list[str]:
    return [str(step.outcome) for step in result.steps if step.tool == tool]


def read(state: Path) -> dict[str, Any]:
    return dict(json.loads(state.read_text(encoding="utf-8")))


def test_of_the_script_one_order_reaches_the_server(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    result = run(state, *SCRIPT)
    assert [len(permit.tools) for permit in result.permits] == [2, 2, 4, 4, 4, 6, 6]
    assert outcomes(result, "stock_order") == ["refused", "refused", "refused", "refused", "ok"]
    assert outcomes(result, "open_toolbox") == ["failed", "ok", "ok", "refused"]
    assert (read(state)["orders"], read(state)["restarts"]) == ([["rye flour", 40]], [])


def test_a_ticket_that_the_server_did_not_list_is_not_closed_and_its_errors_are_failed_steps(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    result = run(
        state,
        [call("open_toolbox", box="ticket"), call("open_toolbox", box="stock")],
        [call("ticket_list"), call("ticket_close", number="71"), call("stock_look", item="gold")],
        [call("ticket_close", number="73"), call("ticket_close", number="72")],
        call("final_answer", answer="72 is closed."),
    )
    assert outcomes(result, "ticket_close") == ["refused", "refused", "ok"]
    (told,) = (step.text or "" for step in result.steps if step.tool == "stock_look")
    assert "there is no 'gold' in stock" in told
    assert outcomes(result, "stock_look") == ["failed"]
    assert read(state)["tickets"] == {"71": "open", "72": "closed", "73": "closed"}


def test_the_policy_is_clean_too_when_boxes_are_opened_on_the_way() -> None:
    policy = load_policy(Path(example.__file__).with_name("mcp_toolboxes.policy.yaml"))
    report = verify(policy, present=["open_toolbox"], loads={"open_toolbox": policy.tools[1:]})
    assert (report.verdict, report.findings, report.min_steps) == ("ok", (), 3)

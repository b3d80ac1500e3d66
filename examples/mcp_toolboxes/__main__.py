"""Tools from an MCP server that come a box at a time, under rules that were there before them.

python -m examples.mcp_toolboxes [--model script|local|openai:NAME|anthropic:NAME] ["a task"]
"""

import argparse
import asyncio
import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

from maymust import Agent, Budget, FunctionInvocationContext, MaymustError, RunResult, Tool, load_policy, tool
from maymust.models import ChatModel, ScriptedModel
from maymust.tools.mcp import mcp_tools
from maymust.views.terminal import Terminal

from .script import SCRIPT

TASK = "See how much rye flour there is, and order 40 bags if there are less than ten."
INSTRUCTIONS = "You look after a small shop. Open the toolbox that fits: stock, site, or ticket; its tools are there from the next step on."
Box = Literal["stock", "site", "ticket"]


def make_agent(model: str | ChatModel, tools: tuple[Tool, ...]) -> Agent[str]:
    """An agent that starts with one tool, and can get at those of the server."""

    @tool(effect="read")
    async def open_toolbox(box: Box, context: FunctionInvocationContext) -> str:
        """Get the tools of a box. They can be called from the next step on."""
        found = [one for one in tools if one.name.startswith(f"{box}_")]
        context.add_tools(found)
        return "\n".join(f"{one.name}: {one.description}" for one in found)

    return Agent(
        model,
        name="toolboxes",
        instructions=INSTRUCTIONS,
        tools=[open_toolbox],
        loadable=tools,
        policy=load_policy(Path(__file__).with_name("mcp_toolboxes.policy.yaml")),
        budget=Budget(turns=15),
    )


async def work(task: str, model: str | ChatModel, state: Path) -> RunResult[str]:
    """One run beside the server's process, told as it goes."""
    command = [sys.executable, str(Path(__file__).with_name("server.py")), str(state)]
    # The server is our own, so what it says about the effects of its tools counts.
    async with mcp_tools(command, trusted=True) as source:
        return await Terminal().listen(make_agent(model, source.tools).start(task))


def main() -> int:
    """0 when there is an answer."""
    parser = argparse.ArgumentParser(prog="python -m examples.mcp_toolboxes", description="Tools that come a box at a time.")
    parser.add_argument("task", nargs="?", default=TASK, help=f'default: "{TASK}"; the script does not read it')
    parser.add_argument("--model", default="script", help="script (default), local, openai:NAME or anthropic:NAME")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)  # refused calls are told by the terminal
    with tempfile.TemporaryDirectory(prefix="maymust-toolboxes-") as folder:
        state = Path(folder) / "state.json"
        try:
            result = asyncio.run(work(asked.task, ScriptedModel(SCRIPT) if asked.model == "script" else asked.model, state))
        except MaymustError as error:
            print(error, file=sys.stderr)
            return 1
        after: dict[str, Any] = json.loads(state.read_text(encoding="utf-8")) if state.exists() else {}
    for what in ("orders", "restarts"):
        print(f"{what}, asked separately: {after.get(what) or 'none'}")
    print(result.answer or f"no answer: {result.stop_reason}")
    return 0 if result.answer is not None else 1


if __name__ == "__main__":
    sys.exit(main())

"""A coding agent on a small project: it reads before it writes, leaves the tests alone, and finishes on green.

python -m examples.coding_agent [--model script|local|openai:NAME|anthropic:NAME] ["a task"]
"""

import argparse
import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from maymust import Agent, Budget, FunctionInvocationContext, MaymustError, RunResult, function_middleware, load_policy
from maymust.models import ChatModel, ScriptedModel
from maymust.views.terminal import Terminal

from .script import SCRIPT
from .tools import Workspace, list_files, read_file, run_tests, write_file

TASK = "One test fails. Find the fault in the code and mend it; leave the tests as they are."
INSTRUCTIONS = "You work on a small Python project. Look at files, change them, run the tests, and say what you have done."


@function_middleware
async def tested_as_it_is(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
    """Refuse the end when a file has changed since the tests passed.

    The rules know the order in which calls were made. Calls of one turn may run at the same time, and others may edit files, too.
    """
    if context.name == "final_answer" and context.deps.tested != context.deps.digests():
        context.refuse("files have changed since the tests passed; run them again")
        return
    await call_next()


def make_agent(model: str | ChatModel) -> Agent[str]:
    """The agent. A model that does not give a usable reply stops the run: green tests are owed, and stay so."""
    return Agent(
        model,
        name="coding",
        instructions=INSTRUCTIONS,
        tools=[list_files, read_file, write_file, run_tests],
        policy=load_policy(Path(__file__).with_name("coding_agent.policy.yaml")),
        middleware=[tested_as_it_is],
        budget=Budget(turns=20),
        on_stall="stop",
    )


async def work(task: str, model: str | ChatModel) -> int:
    """One run, told as it goes, and what the folder says afterwards. 0 when it ended and its tests pass."""
    workspace = Workspace()
    try:
        result: RunResult[str] = await Terminal().listen(make_agent(model).start(task, deps=workspace))
        print(result.answer or f"no answer: {result.stop_reason}; owed: {', '.join(result.unmet) or 'nothing'}")
        passed, _ = await workspace.test()
        print(f"tests, asked separately: {'green' if passed else 'red'}")
        for name in workspace.changed():
            print(f"{'NOT ALLOWED: ' if name.startswith('tests/') else ''}changed: {name}")
        return 0 if passed and result.answer is not None else 1
    finally:
        workspace.close()


def main() -> int:
    """0 when the task is done."""
    parser = argparse.ArgumentParser(prog="python -m examples.coding_agent", description="A coding agent that reads first, and tests.")
    parser.add_argument("task", nargs="?", default=TASK, help=f'default: "{TASK}"; the script does not read it')
    parser.add_argument("--model", default="script", help="script (default), local, openai:NAME or anthropic:NAME")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)  # refused calls are told by the terminal
    try:
        return asyncio.run(work(asked.task, ScriptedModel(SCRIPT) if asked.model == "script" else asked.model))
    except MaymustError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

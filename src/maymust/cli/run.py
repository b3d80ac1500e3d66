"""`maymust run`: run an agent from the command line."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from maymust.cli.exit_codes import CLEAN, FINDINGS, UNDECIDED
from maymust.cli.options import add_command, add_format, path_argument, whole

if TYPE_CHECKING:
    from maymust.agent.agent import Agent
    from maymust.agent.result import RunResult
    from maymust.cli.console import Console
    from maymust.cli.options import Subparsers
    from maymust.trace import TraceWriter

ABOUT = """\
Runs an agent and prints its answer; its calls are told on stderr. AGENT is `module:name` (an Agent, or
a function without arguments that gives one), or a policy file together with --tools and --model.

Where a person has to agree to a call, a terminal is asked; without one the run pauses: exit code 3,
and --state keeps it for Agent.resume."""
EXAMPLES = """\
  maymust run myapp.agents:desk "Where is order 7?"
  maymust run desk.policy.yaml --tools myapp.tools --model local "Where is order 7?" """


def add_parser(subparsers: Subparsers) -> None:
    """Add `run`."""
    parser = add_command(subparsers, "run", "run an agent", "[options] AGENT QUESTION", ABOUT, EXAMPLES.rstrip())
    path_argument(parser, "agent", metavar="AGENT", help="module:name in Python, or a policy file")
    parser.add_argument("question", metavar="QUESTION", help="what the agent is asked, - for stdin")
    parser.add_argument("--tools", metavar="MODULE", help="with a policy file: the Python module that has its tools")
    about = "with a policy file: local, openai:NAME or anthropic:NAME (default: local)"
    parser.add_argument("--model", metavar="MODEL", help=about)
    parser.add_argument("--instructions", metavar="TEXT", help="with a policy file: what the model is told about its work")
    parser.add_argument("--max-turns", type=whole, metavar="N", help="at most N turns")
    path_argument(parser, "--state", metavar="FILE", help="write the state of the run as JSON, for `maymust explain` and Agent.resume")
    path_argument(parser, "--trace", metavar="FILE", help="write a trace while the run goes, for `maymust explain` and `maymust replay`")
    parser.add_argument("--quiet", action="store_true", help="do not tell the calls")
    add_format(parser, ("text", "json"))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the agent to its end, or to a question that nobody can answer here."""
    import asyncio

    from maymust.cli.console import Console, told_once

    console = Console(arguments.output)
    agent = _agent(arguments)
    question = sys.stdin.read() if arguments.question == "-" else arguments.question
    try:
        with told_once():
            result = asyncio.run(_run(agent, question, arguments))
    except Exception as error:
        _keep(getattr(error, "state", None), arguments.state)
        raise
    _keep(result.state, arguments.state)
    code = _exit_code(result)
    _write(result, code, arguments.format, console)
    return code


def _agent(arguments: argparse.Namespace) -> Agent[Any]:
    from maymust.cli.agent_source import agent_from_policy, agent_from_reference
    from maymust.cli.console import UnusableError
    from maymust.cli.target import is_reference

    if not is_reference(arguments.agent):
        if arguments.tools is None and not os.path.exists(arguments.agent):
            raise UnusableError(f"there is no policy file {arguments.agent}; an agent in Python is written module:name")
        if arguments.tools is None:
            raise UnusableError("a policy file knows its tools by name only: give the module that has them, --tools MODULE")
        return agent_from_policy(arguments.agent, arguments.tools, arguments.model or "local", arguments.instructions or "")
    for option in ("tools", "model", "instructions"):
        if getattr(arguments, option) is not None:
            raise UnusableError(f"--{option} goes with a policy file; {arguments.agent} has its own")
    return agent_from_reference(arguments.agent)


async def _run(agent: Agent[Any], question: str, arguments: argparse.Namespace) -> RunResult[Any]:
    from maymust.agent.approval import ask_in_terminal
    from maymust.agent.budget import Budget
    from maymust.views.terminal import Terminal

    budget = Budget(turns=arguments.max_turns) if arguments.max_turns else None
    trace = None if arguments.trace is None else _trace(arguments.trace)
    terminal = None if arguments.quiet else Terminal()
    running = agent.start(question, budget=budget)
    while True:
        if trace is not None:
            trace.listen(running)
        if terminal is not None:
            terminal.listen(running)
        result = await running
        if result.stop_reason != "paused" or not sys.stdin.isatty() or arguments.question == "-":
            return result
        decisions = {call.call_id: await ask_in_terminal(call) for call in result.pending}
        running = agent.start_resume(result, decisions)


def _trace(path: str) -> TraceWriter:
    """Begin a trace. Raises UnusableError when it cannot be written."""
    from maymust.cli.console import UnusableError
    from maymust.errors import RunError
    from maymust.trace import TraceWriter

    try:
        return TraceWriter(path)
    except RunError as error:
        raise UnusableError(str(error)) from error


def _exit_code(result: RunResult[Any]) -> int:
    if result.stop_reason == "paused":
        return UNDECIDED
    return CLEAN if result.answer is not None and not result.unmet else FINDINGS


def _keep(state: Any, path: str | None) -> None:
    """Write the state of a run. Raises UnusableError when it cannot be written."""
    from maymust.cli.console import Console

    if path is not None and state is not None:
        Console(path).result(state.to_json())


def _write(result: RunResult[Any], code: int, format: str, console: Console) -> None:
    from maymust.views.paint import clean

    if format == "json":
        console.result(_document(result, code))
    elif result.answer is not None:
        console.result("\n".join(clean(line) for line in result.answer.splitlines()) + "\n")
    if result.stop_reason == "paused":
        for call in result.pending:
            console.error(f"{call.tool} waits for a person's yes (call {call.call_id}), and standard input is no terminal")
    elif result.answer is None:
        console.error(f"the run ended without an answer: {result.stop_reason}")
    if result.unmet:
        console.error(f"owed and not done: {', '.join(result.unmet)}")


def _document(result: RunResult[Any], code: int) -> str:
    from maymust.reports.machine import document

    return document(
        "run",
        exit_code=code,
        run=result.state.run_id,
        stop_reason=result.stop_reason,
        answer=result.answer,
        steps=[step.to_dict() for step in result.steps],
        pending=[{"call_id": call.call_id, "tool": call.tool, "arguments": dict(call.arguments)} for call in result.pending],
        unmet=list(result.unmet),
        counters=result.counters.to_dict(),
        usage=result.usage.to_dict(),
    )

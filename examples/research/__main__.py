"""Research in a small library: every source of the answer was read in this run, and every quote stands in it.

python -m examples.research [--model script|local|openai:NAME|anthropic:NAME] ["a question"]
"""

import argparse
import asyncio
import logging
import re
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from maymust import Agent, Budget, FunctionInvocationContext, MaymustError, RunResult, Step, function_middleware, load_policy
from maymust.models import ChatModel, ScriptedModel
from maymust.views.terminal import Terminal

from .script import SCRIPT
from .tools import LIBRARY, cite, read, report_gap, search

QUESTION = "In which year did the Eastmere ferry carry most passengers, and how many?"
INSTRUCTIONS = (
    "You answer questions from a library. Search, read, cite the words that matter, and write [source] behind what they bear out."
)


@function_middleware
async def answers_name_what_was_cited(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
    """Refuse an answer that refers to something that was not cited."""
    if context.name == "final_answer":
        cited = {source for source, _ in citations(context.history)}
        unknown = set(re.findall(r"\[([^\]]+)\]", str((context.arguments or {}).get("answer")))) - cited
        if unknown:
            context.refuse(f"not cited: {', '.join(sorted(unknown))}; refer to {', '.join(sorted(cited)) or 'nothing'}, or cite first")
            return
    await call_next()


def citations(steps: Iterable[Step]) -> list[tuple[str, str]]:
    """Sources and quotes of the calls of `cite` that succeeded."""
    calls = [step.arguments or {} for step in steps if step.tool == "cite" and step.outcome == "ok"]
    return [(arguments["source"], arguments["quote"]) for arguments in calls]


def make_agent(model: str | ChatModel) -> Agent[str]:
    """The researcher."""
    return Agent(
        model,
        name="research",
        instructions=INSTRUCTIONS,
        tools=[search, read, cite, report_gap],
        policy=load_policy(Path(__file__).with_name("research.policy.yaml")),
        middleware=[answers_name_what_was_cited],
        budget=Budget(turns=15),
    )


async def ask(question: str, model: str | ChatModel) -> RunResult[str]:
    """One run, told as it goes."""
    return await Terminal().listen(make_agent(model).start(question, deps=LIBRARY))


def main() -> int:
    """0 when there is an answer."""
    parser = argparse.ArgumentParser(prog="python -m examples.research", description="Research with citations.")
    parser.add_argument("question", nargs="?", default=QUESTION, help=f'default: "{QUESTION}"; the script does not read it')
    parser.add_argument("--model", default="script", help="script (default), local, openai:NAME or anthropic:NAME")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)  # refused calls are told by the terminal
    try:
        result = asyncio.run(ask(asked.question, ScriptedModel(SCRIPT) if asked.model == "script" else asked.model))
    except MaymustError as error:
        print(error, file=sys.stderr)
        return 1
    print(result.answer or f"no answer: {result.stop_reason}")
    for source, quote in citations(result.steps):
        print(f'  [{source}] "{quote}"')
    return 0 if result.answer is not None else 1


if __name__ == "__main__":
    sys.exit(main())

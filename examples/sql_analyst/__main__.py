"""An analyst over a database that can only be read: it looks at tables first, and reads few rows at a time.

python -m examples.sql_analyst [--model script|local|openai:NAME|anthropic:NAME] ["a question"]
"""

import argparse
import asyncio
import json
import logging
import sys
from pathlib import Path

from maymust import Agent, Budget, MaymustError, RunResult, load_policy
from maymust.models import ChatModel, ScriptedModel
from maymust.views.terminal import Terminal

from .script import SCRIPT
from .tools import Database, describe, list_tables, query

QUESTION = "Which branch sold most in 2024, in money?"
INSTRUCTIONS = "You answer questions about a bakery's numbers from its database. Let SQL count; do not guess."


def make_agent(model: str | ChatModel) -> Agent[str]:
    """The analyst."""
    return Agent(
        model,
        name="analyst",
        instructions=INSTRUCTIONS,
        tools=[list_tables, describe, query],
        policy=load_policy(Path(__file__).with_name("sql_analyst.policy.yaml")),
        budget=Budget(turns=15),
    )


async def ask(question: str, model: str | ChatModel, database: Database) -> RunResult[str]:
    """One run, told as it goes."""
    return await Terminal().listen(make_agent(model).start(question, deps=database))


def main() -> int:
    """0 when there is an answer."""
    parser = argparse.ArgumentParser(prog="python -m examples.sql_analyst", description="An analyst with row limits.")
    parser.add_argument("question", nargs="?", default=QUESTION, help=f'default: "{QUESTION}"; the script does not read it')
    parser.add_argument("--model", default="script", help="script (default), local, openai:NAME or anthropic:NAME")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)  # refused calls are told by the terminal
    database = Database()
    try:
        result = asyncio.run(ask(asked.question, ScriptedModel(SCRIPT) if asked.model == "script" else asked.model, database))
    except MaymustError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        database.close()
    read = [step for step in result.steps if step.tool == "query" and step.outcome == "ok"]
    for step in read[-1:]:
        for row in json.loads(step.text or "{}").get("rows", []):
            print(row)
    print(result.answer or f"no answer: {result.stop_reason}")
    return 0 if result.answer is not None else 1


if __name__ == "__main__":
    sys.exit(main())

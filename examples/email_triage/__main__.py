"""Triage of mails: a stranger's words move nothing out of the house unless a person agrees.

python -m examples.email_triage [--model script|local|openai:NAME|anthropic:NAME] ["a task"]

In a terminal you are asked; elsewhere every question is answered with no.
"""

import argparse
import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from maymust import Agent, Budget, Decision, MaymustError, RunResult, ask_in_terminal, load_policy
from maymust.models import ChatModel, ScriptedModel
from maymust.views.terminal import Terminal

from .script import SCRIPT
from .tools import Office, delete_mail, file_mail, list_mail, read_mail, send_mail

TASK = "Sort the inbox. Tell ann@customer.example that we are open on Sunday from 8 to 12 and have plum cake."
INSTRUCTIONS = "You sort the mails of a bakery's office: list them, read each, put it into its folder, and say what you did."

Person = Callable[[Any], Awaitable[Decision]]


def make_agent(model: str | ChatModel) -> Agent[str]:
    """The agent."""
    return Agent(
        model,
        name="triage",
        instructions=INSTRUCTIONS,
        tools=[list_mail, read_mail, file_mail, send_mail, delete_mail],
        policy=load_policy(Path(__file__).with_name("email_triage.policy.yaml")),
        budget=Budget(turns=25),
    )


async def nobody_is_here(call: Any) -> Decision:
    """The answer where there is no terminal."""
    print(f"asked and refused: {call.tool} {call.arguments}")
    return Decision(False, reason="nobody was there to agree")


async def triage(task: str, model: str | ChatModel, office: Office, person: Person) -> RunResult[str]:
    """One run, told as it goes, with a person who is asked when it pauses."""
    agent, terminal = make_agent(model), Terminal()
    result = await terminal.listen(agent.start(task, deps=office))
    while result.pending:
        decisions = {call.call_id: await person(call) for call in result.pending}
        result = await terminal.listen(agent.start_resume(result, decisions, deps=office))
    return result


def main() -> int:
    """0 when there is an answer."""
    parser = argparse.ArgumentParser(prog="python -m examples.email_triage", description="Triage of untrusted mails.")
    parser.add_argument("task", nargs="?", default=TASK, help=f'default: "{TASK}"; the script does not read it')
    parser.add_argument("--model", default="script", help="script (default), local, openai:NAME or anthropic:NAME")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)  # refused calls are told by the terminal
    person: Person = ask_in_terminal if sys.stdin.isatty() else nobody_is_here
    office = Office()
    try:
        result = asyncio.run(triage(asked.task, ScriptedModel(SCRIPT) if asked.model == "script" else asked.model, office, person))
        for folder, subjects in office.filed().items():
            print(f"{folder}: {', '.join(subjects) or '-'}")
    except MaymustError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        office.close()
    print(result.answer or f"no answer: {result.stop_reason}")
    return 0 if result.answer is not None else 1


if __name__ == "__main__":
    sys.exit(main())

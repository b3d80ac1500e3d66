"""A booking that a person confirms, in this process or in another one, today or after the weekend.

python -m examples.booking [--model script|local|openai:NAME|anthropic:NAME] [--folder DIR] ["a wish"]
python -m examples.booking --folder DIR --resume RUN --answer yes|no

In a terminal you are asked. Elsewhere the run waits in the folder; without a folder to wait in, the answer is no.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
from pathlib import Path

from maymust import Agent, Budget, Decision, MaymustError, RunResult, SqliteStore, ask_in_terminal, load_policy
from maymust.models import ChatModel, ScriptedModel
from maymust.views.terminal import Terminal

from .script import SCRIPT
from .tools import House, book, cancel_booking, search_rooms

WISH = "Book a room for two, for three nights. The garden room if it is free."
INSTRUCTIONS = "You book rooms in a guest house. Search, book what fits, and say what you did."


def make_agent(model: str | ChatModel, store: SqliteStore) -> Agent[str]:
    """The agent. Its runs are kept in the store."""
    return Agent(
        model,
        name="booking",
        instructions=INSTRUCTIONS,
        tools=[search_rooms, book, cancel_booking],
        policy=load_policy(Path(__file__).with_name("booking.policy.yaml")),
        budget=Budget(turns=15),
        store=store,
    )


def model_for(name: str, store: SqliteStore, run_id: str | None) -> str | ChatModel:
    """The model. A script goes on where the run has stopped."""
    if name != "script":
        return name
    return ScriptedModel(SCRIPT[len(store.state(run_id).turns) if run_id else 0 :])


async def go(asked: argparse.Namespace, folder: Path) -> RunResult[str]:
    """Start or resume the run, and ask as long as there is somebody to ask."""
    store, house, terminal = SqliteStore(folder / "runs.db"), House(folder), Terminal()
    agent = make_agent(model_for(asked.model, store, asked.resume), store)
    answers = {}
    if asked.resume and asked.answer:
        waiting = [question for question in store.questions() if question.run_id == asked.resume]
        answers = {question.call_id: Decision(asked.answer == "yes", by="the person at the desk") for question in waiting}
    started = agent.start_resume(asked.resume, answers, deps=house) if asked.resume else agent.start(asked.wish, deps=house)
    result = await terminal.listen(started)
    while result.pending and (sys.stdin.isatty() or not asked.folder):
        no = Decision(False, reason="nobody was there to agree")
        decisions = {call.call_id: await ask_in_terminal(call) if sys.stdin.isatty() else no for call in result.pending}
        result = await terminal.listen(agent.start_resume(result, decisions, deps=house))
    for number, room, nights, cents in house.bookings():
        print(f"booked: {number}: {room}, {nights} nights, {cents / 100:.2f}")
    return result


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.booking", description="A booking that a person confirms.")
    parser.add_argument("wish", nargs="?", default=WISH, help=f'default: "{WISH}"; the script does not read it')
    parser.add_argument("--model", default="script", help="script (default), local, openai:NAME or anthropic:NAME")
    parser.add_argument("--folder", type=Path, help="where bookings and runs are kept (default: a temporary folder)")
    parser.add_argument("--resume", metavar="RUN", help="go on with a run that waits in the folder")
    parser.add_argument("--answer", choices=("yes", "no"), help="with --resume: the person's answer")
    asked = parser.parse_args()
    if asked.resume and not asked.folder:
        parser.error("--resume needs the --folder in which the run waits")
    if asked.answer and not asked.resume:
        parser.error("--answer needs the run it is for: --resume RUN")
    return asked


def main() -> int:
    """0 when there is an answer, or when the run waits for a person."""
    asked = arguments()
    logging.basicConfig(level=logging.ERROR)  # refused calls are told by the terminal
    try:
        with tempfile.TemporaryDirectory(prefix="maymust-booking-") as temporary:
            folder = asked.folder or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            result = asyncio.run(go(asked, folder))
    except (MaymustError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    for call in result.pending:
        print(f"waits for a person: {call.tool} {call.arguments}")
        print(f"go on with: --folder {asked.folder} --resume {result.state.run_id} --answer yes")
    if not result.pending:
        print(result.answer or f"no answer: {result.stop_reason}")
    return 0 if result.pending or result.answer is not None else 1


if __name__ == "__main__":
    sys.exit(main())

"""The support desk on a model of your choice, and what the database says afterwards.

python -m examples.support_desk [--model script|local|openai:NAME|anthropic:NAME] ["a question"]
"""

import argparse
import asyncio
import logging
import sys

from maymust import MaymustError
from maymust.models import ScriptedModel
from maymust.views.terminal import Terminal

from .check import changes, violations
from .demo import QUESTION, desk
from .script import SCRIPT
from .tools import Shop


async def ask(question: str, model: str, shop: Shop) -> None:
    """One run, told as it goes."""
    agent = desk(model=ScriptedModel(SCRIPT) if model == "script" else model)
    result = await Terminal().listen(agent.start(question, deps=shop))
    print(result)


def main() -> int:
    """0 when the database has nothing in it that the rules do not allow."""
    parser = argparse.ArgumentParser(prog="python -m examples.support_desk", description="A support desk that looks before it pays.")
    parser.add_argument("question", nargs="?", default=QUESTION, help=f'default: "{QUESTION}"; the script does not read it')
    parser.add_argument("--model", default="script", help="script (default), local, openai:NAME or anthropic:NAME")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)  # refused calls are told by the terminal
    shop = Shop()
    try:
        asyncio.run(ask(asked.question, asked.model, shop))
        for change in changes(shop):
            print(f"changed: {change}")
        for broken in violations(shop):
            print(f"NOT ALLOWED: {broken}")
        return 1 if violations(shop) else 0
    except MaymustError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        shop.close()


if __name__ == "__main__":
    sys.exit(main())

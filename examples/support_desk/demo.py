"""`make demo`: a support desk on a small local model, with rules, then without.

python -m examples.support_desk.demo ["a question"]
"""

import asyncio
import contextlib
import logging
import os
import sys

from maymust import Agent, Budget, MaymustError, RunResult
from maymust.models import ChatModel
from maymust.models.local import LocalModel
from maymust.models.structured import Bounds
from maymust.views.paint import clean
from maymust.views.terminal import Terminal

from .check import changes, is_the_right_change, violations
from .rules import TOOLS, policy
from .tools import Shop

QUESTION = "Refund 40 dollars to Maria Lopez for order 1007."
INSTRUCTIONS = "You work at the support desk of a small shop."


def desk(rules: bool = True, model: str | ChatModel = "local") -> Agent[str]:
    """The agent. Without rules, everything else is the same."""
    if model == "local":
        model = LocalModel(context=4096, bounds=Bounds(characters=120))
    ruled = policy() if rules else None
    return Agent(model, name="desk", instructions=INSTRUCTIONS, tools=TOOLS, policy=ruled, budget=Budget(turns=12))


async def ask(agent: Agent[str], question: str, shop: Shop, terminal: Terminal | None = None) -> RunResult[str]:
    """One run, shown as it goes."""
    run = agent.start(question, deps=shop)
    return await (run if terminal is None else terminal.listen(run))


async def show_run(question: str, *, rules: bool) -> tuple[Shop, RunResult[str]]:
    """Ask, and let the database say what was changed and whether that was allowed."""
    shop = Shop()
    print(f"\n{'=' * 24} {'with the rules' if rules else 'the same question without the rules'} {'=' * 24}\n")
    result = await ask(desk(rules), question, shop, Terminal(sys.stdout))
    print(f"answer: {'(none)' if result.answer is None else clean(result.answer)}\n\nthe database, asked separately:")
    for change in changes(shop) or ["no change"]:
        print(f"  {clean(change)}")
    for broken in violations(shop):
        print(f"  NOT ALLOWED: {clean(broken)}")
    if not violations(shop):
        print("  every change is one the rules allow")
    return shop, result


async def demo(question: str) -> int:
    """Both runs and what they differ in. 0 when the rules held."""
    print(f"question: {question if len(question) < 300 else question[:300] + f'... ({len(question)} characters)'}")
    shop, result = await show_run(question, rules=True)
    if question == QUESTION:
        print("  and it is the right one" if is_the_right_change(shop) else "  but not what was asked for: 40 dollars for order 1007")
    elif changes(shop):
        print("  whether it was asked for is no rule here: that would be a person's to say, `ask: refund`")
    free_shop, free = await show_run(question, rules=False)
    print("\nthe difference")
    for label, one, own in (("with rules", result, shop), ("without", free, free_shop)):
        path = " > ".join(step.tool if step.outcome == "ok" else f"{step.tool}!{step.outcome}" for step in one.steps)
        print(f"  {label:<11} {path or '(no call)'}; changes: {len(changes(own))}, not allowed: {len(violations(own))}")
    return 1 if violations(shop) else 0


def main() -> int:
    """The question is the argument, else the variable QUESTION, else the default."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # only text files have it
    logging.basicConfig(level=logging.ERROR)
    question = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("QUESTION", QUESTION)
    try:
        return asyncio.run(demo(question))
    except MaymustError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

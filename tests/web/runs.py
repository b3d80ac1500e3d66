"""Runs that were recorded, to look at."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from maymust import Agent, AskPermissionRequirement, ConditionalRequirement, History, Policy, Step, ThinkTool, ToolError, tool
from maymust.events import TurnStarted
from maymust.models import ScriptedModel, call
from maymust.trace import write_trace
from maymust.trace.encode import encode, kind_of, to_line
from maymust.trace.records import StepsTaken, TraceStarted


@tool
def lookup(order: int) -> str:
    """Look an order up."""
    if order == 0:
        raise ToolError("there is no order 0")
    return f"order {order}: paid 20"


@tool
def refund(order: int, amount: int) -> str:
    """Pay back."""
    return "paid back"


RULES: list[Any] = [
    ConditionalRequirement(ThinkTool, force_at_step=1, name="think-first"),
    ConditionalRequirement("refund", only_after=["lookup"], max_invocations=1, name="refund-after-lookup"),
    AskPermissionRequirement(include=["refund"], handler=lambda _: True),
    ConditionalRequirement("final_answer", only_after=["lookup"], name="answer-with-facts"),
]
SCRIPT: list[Any] = [
    call("think", thought="Which order?"),
    call("refund", order=7, amount=20),
    [call("lookup", order=0), call("lookup", order=7)],
    call("refund", order=7, amount=20),
    call("pay_out", amount=5),
    call("refund", order=7, amount=20),
    call("final_answer", answer="Paid back 20."),
]


def record(path: Path, rules: list[Any] = RULES, script: list[Any] = SCRIPT, tools: tuple[Any, ...] = (lookup, refund)) -> Path:
    """Run an agent, and write its trace."""

    async def main() -> None:
        agent = Agent(ScriptedModel(script), tools=[ThinkTool(), *tools], requirements=rules, loop_guard=None)
        run = agent.start("Please pay back order 7.")
        write_trace(run, path)
        await run

    # While a browser is there its loop runs in this thread.
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, main()).result()
    return path


def written(path: Path, policy: Policy, steps: list[Step]) -> Path:
    """A trace of a run with these steps."""
    history = History()
    records: list[Any] = [TraceStarted("r", policy=policy.describe())]
    for number, step in enumerate(steps, 1):
        records += [TurnStarted("r", number, policy.permit(history)), StepsTaken("r", (step,))]
        history = history.add(step)
    with path.open("w", encoding="ascii") as file:
        for place, event in enumerate(records):
            head = {} if place else {"trace": 1}
            file.write(to_line({**head, "at": 1.0, "run": "r", "kind": kind_of(event), "data": encode(event)}) + "\n")
    return path

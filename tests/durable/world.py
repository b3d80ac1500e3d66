"""A small shop whose every effect is written to a file that survives any kill: the oracle.

One line an effect, fsynced before the tool returns. The model is a function of the conversation, so that any process can go on.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maymust import Agent, AskPermissionRequirement, FunctionInvocationContext, Happened, SqliteStore, tool
from maymust.agent.actions import ChildEvent, Event, MessageSent, ToolFinished, ToolStarted
from maymust.agent.journal import Journal
from maymust.agent.state import RunState
from maymust.durable import DbosStore
from maymust.models import Capabilities, ScriptedModel, call
from maymust.models.chat_model import ModelDelta, ModelReply, ModelRequest

EFFECTS = ("look1", "charge1", "ship1", "notify1", "charge2", "charge3", "refund1", "inner1")
"""Call ids of everything that has an effect, in the script's order; the last one is a child agent's."""
READS = ("look1",)
POINTS = ("before intent", "after intent", "after effect", "after result", "after the next write")

SCRIPT: tuple[Any, ...] = (
    call("charge", call_id="charge1", amount=1),
    [call("look", call_id="look1", what="a"), call("ship", call_id="ship1", what="b")],
    call("notify", call_id="notify1", whom="c"),
    [call("charge", call_id="charge2", amount=2), call("charge", call_id="charge3", amount=3)],
    call("refund", call_id="refund1", amount=4),
    call("helper", call_id="child1", task="charge five"),
    call("final_answer", call_id="end", answer="done"),
)
INNER: tuple[Any, ...] = (call("charge", call_id="inner1", amount=5), call("final_answer", call_id="inner_end", answer="charged five"))


class ByPlace:
    """A model that looks where in the conversation it is: it says the same in whatever process it is asked."""

    name = "by place"
    capabilities = Capabilities()

    def __init__(self, turns: tuple[Any, ...]) -> None:
        self._turns = turns

    async def complete(self, request: ModelRequest) -> ModelReply:
        place = sum(message.role == "assistant" for message in request.messages)
        return await ScriptedModel([self._turns[place]]).complete(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        yield await self.complete(request)


@dataclass
class Oracle:
    """The file of effects."""

    path: Path

    def note(self, call_id: str, key: str) -> None:
        """An effect takes place."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([call_id, key]) + "\n")
            file.flush()
            os.fsync(file.fileno())

    @property
    def effects(self) -> list[str]:
        """Call ids of the effects, in order."""
        return [line[0] for line in self._lines()]

    @property
    def keys(self) -> list[str]:
        """Idempotency keys of the effects, in order."""
        return [line[1] for line in self._lines()]

    def _lines(self) -> list[list[str]]:
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()] if self.path.exists() else []


@dataclass
class Deps:
    """What the tools work with: the oracle, and where this process is to end."""

    oracle: Oracle
    kill: KillPlan


@dataclass
class KillPlan:
    """Where the process ends: at a point of a call, or `after` so many writes (negative: before that write)."""

    call_id: str | None = None
    point: str | None = None
    after: int | None = None
    how: int = signal.SIGKILL
    writes: int = field(default=0, init=False)
    armed: bool = field(default=False, init=False)

    def at(self, call_id: str, point: str) -> None:
        """This point is reached."""
        if (call_id, point) == (self.call_id, self.point):
            self._end()

    def wrote(self, change: int) -> None:
        """A write is about to be made (0) or has been made (1)."""
        self.writes += change
        if self.after is not None and (self.writes == self.after if change else -self.after - 1 == self.writes):
            self._end()

    def _end(self) -> None:
        # To this thread: a signal to the process may be taken by another one, and this one goes on until that has had its turn.
        signal.pthread_kill(threading.get_ident(), self.how)


class KillingJournal:
    """A journal that ends the process at the planned point."""

    def __init__(self, inner: Journal, plan: KillPlan) -> None:
        self._inner, self._plan = inner, plan

    def fold(self, state: RunState, event: Event) -> RunState:
        told = event
        while isinstance(told, ChildEvent):
            told = told.event
        plan = self._plan
        if isinstance(told, ToolStarted):
            plan.at(told.call_id, "before intent")
        elif isinstance(told, MessageSent):
            plan.at("message", "before it is kept")
        plan.wrote(0)
        new = self._inner.fold(state, event)
        plan.wrote(1)
        if plan.armed:
            plan.at(plan.call_id or "", "after the next write")
        if isinstance(told, ToolStarted):
            plan.at(told.call_id, "after intent")
        elif isinstance(told, ToolFinished):
            plan.at(told.call_id, "after result")
            plan.armed = plan.armed or told.call_id == plan.call_id
        elif isinstance(told, MessageSent):
            plan.at("message", "after it is kept")
        return new

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class KillingStore(SqliteStore):
    """A store whose journals end the process at the planned point."""

    plan = KillPlan()

    def _journal(self, *args: Any) -> Any:
        return KillingJournal(super()._journal(*args), self.plan)


class KillingDbosStore(DbosStore):
    """The same on DBOS."""

    plan = KillPlan()

    def _journal(self, *args: Any) -> Any:
        return KillingJournal(super()._journal(*args), self.plan)


async def effect(context: FunctionInvocationContext) -> None:
    """The effect of a call, and the point after it."""
    deps: Deps = context.deps
    deps.kill.at(context.call_id, "before effect")
    deps.oracle.note(context.call_id, context.idempotency_key)
    deps.kill.at(context.call_id, "after effect")


@tool(effect="read")
async def look(context: FunctionInvocationContext, what: str) -> str:
    """Look at something."""
    await effect(context)
    return f"saw {what}"


@tool(effect="once")
async def charge(context: FunctionInvocationContext, amount: int) -> dict[str, int]:
    """Charge a card."""
    await effect(context)
    return {"charged": amount}


@tool(effect="idempotent")
async def ship(context: FunctionInvocationContext, what: str) -> str:
    """Ship something; a carrier that knows the key does nothing again."""
    deps: Deps = context.deps
    if context.idempotency_key not in deps.oracle.keys:
        await effect(context)
    return f"shipped {what}"


def look_up_notification(context: FunctionInvocationContext) -> Any:
    """What became of a notification: the other side knows."""
    return Happened("notified c") if context.idempotency_key in context.deps.oracle.keys else False


@tool(effect="once", resolve=look_up_notification)
async def notify(context: FunctionInvocationContext, whom: str) -> str:
    """Notify somebody."""
    await effect(context)
    return f"notified {whom}"


@tool(effect="once")
async def refund(context: FunctionInvocationContext, amount: int) -> str:
    """Give money back."""
    await effect(context)
    return f"refunded {amount}"


OUTPUTS: dict[str, Any] = {
    "charge1": {"charged": 1},
    "charge2": {"charged": 2},
    "charge3": {"charged": 3},
    "inner1": {"charged": 5},
    "refund1": "refunded 4",
}
"""What the calls return whose interruption a person is asked about."""


def agent(store: SqliteStore | DbosStore | None) -> Agent[str]:
    """The shop's agent."""
    helper: Agent[str] = Agent(ByPlace(INNER), name="helper", description="Charges.", tools=[charge])
    asks = AskPermissionRequirement(["refund"])
    return Agent(ByPlace(SCRIPT), tools=[look, charge, ship, notify, refund, helper.as_tool()], requirements=[asks], store=store)


def record(state: RunState) -> dict[str, Any]:
    """What two runs are compared by: all they did and said."""
    data = state.to_dict()
    children = [[call_id, child["history"], child["messages"], child["answer"]] for call_id, child in data["past_children"]]
    kept = {name: data[name] for name in ("messages", "history", "answer", "stop_reason", "counters", "memories", "unmet", "phase")}
    permits = [turn["permit"] for turn in data["turns"]]
    return {**kept, "children": children, "turns": len(data["turns"]), "permits": permits}

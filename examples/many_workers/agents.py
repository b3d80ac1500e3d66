"""The agent that every worker runs, its tools, and the ledger they write to: `maymust worker --agent examples.many_workers.agents:desk`."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated

from pydantic import Field

from maymust import Agent, Budget, FunctionInvocationContext, Happened, ToolError, load_policy, tool

from .script import Clerk

LEDGER = "MANY_WORKERS_LEDGER"
"""The environment variable with the ledger's path; workers get it from whoever starts them."""
MODEL = "MANY_WORKERS_MODEL"
PRICES = {ticket: 1500 * (ticket % 9 + 1) for ticket in range(1, 101)}
"""Ticket: cents that were paid for what it is about."""


class Ledger:
    """What was paid back, in a file that all workers share."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        with closing(self._connect()) as connection, connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS refunds"
                " (ticket INTEGER NOT NULL, cents INTEGER NOT NULL, key TEXT NOT NULL UNIQUE, pid INTEGER NOT NULL)"
            )

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=30)

    def pay(self, ticket: int, cents: int, key: str) -> None:
        """Write a payment down."""
        with closing(self._connect()) as connection, connection:
            connection.execute("INSERT INTO refunds VALUES (?, ?, ?, ?)", (ticket, cents, key, os.getpid()))

    def was_paid(self, key: str) -> bool:
        """Whether a call has paid."""
        with closing(self._connect()) as connection:
            return connection.execute("SELECT 1 FROM refunds WHERE key = ?", (key,)).fetchone() is not None

    def rows(self) -> list[tuple[int, int, int]]:
        """Ticket, cents, and the process that paid."""
        with closing(self._connect()) as connection:
            return connection.execute("SELECT ticket, cents, pid FROM refunds ORDER BY ticket").fetchall()


def ledger() -> Ledger:
    """The `deps` of a run, for `maymust worker --deps`."""
    return Ledger(os.environ[LEDGER])


def ledger_of(ctx: FunctionInvocationContext) -> Ledger:
    if not isinstance(ctx.deps, Ledger):
        raise ToolError("there is no ledger: start the worker with --deps")
    return ctx.deps


def was_it_paid(ctx: FunctionInvocationContext) -> Happened | bool:
    """What became of a payment whose worker has ended: the ledger says it."""
    return Happened("paid back") if ledger_of(ctx).was_paid(ctx.idempotency_key) else False


@tool(effect="read")
def look_up(ticket: int) -> str:
    """See what a ticket is about."""
    if ticket not in PRICES:
        raise ToolError(f"there is no ticket {ticket}")
    return f"ticket {ticket}: arrived broken; {PRICES[ticket]} cents were paid"


@tool(effect="once", resolve=was_it_paid)
def refund(ticket: int, cents: Annotated[int, Field(ge=1)], ctx: FunctionInvocationContext) -> str:
    """Pay the price of a ticket back."""
    if cents > PRICES.get(ticket, 0):
        raise ToolError(f"for ticket {ticket} only {PRICES.get(ticket, 0)} cents were paid")
    ledger_of(ctx).pay(ticket, cents, ctx.idempotency_key)
    return "paid back"


def make_agent(model: str = "script") -> Agent[str]:
    """The agent."""
    return Agent(
        Clerk() if model == "script" else model,
        name="refunds",
        instructions="You settle tickets of a shop: look the ticket up, pay its price back if it arrived broken, and say what you did.",
        tools=[look_up, refund],
        policy=load_policy(Path(__file__).with_name("many_workers.policy.yaml")),
        budget=Budget(turns=10),
    )


def desk() -> Agent[str]:
    """The agent as a worker makes it."""
    return make_agent(os.environ.get(MODEL, "script"))

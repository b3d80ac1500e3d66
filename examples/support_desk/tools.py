"""The desk's tools over its database. The database is the run's `deps`: tools get it from their context, no rule or model sees it."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from maymust import FunctionInvocationContext, ToolError, tool


class Shop:
    """The shop's database, in memory, fresh from its SQL file. Tools run in threads, one transaction at a time."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        self._lock = threading.Lock()
        with self._lock:
            self._connection.executescript((Path(__file__).parent / "shop.sql").read_text(encoding="utf-8"))

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The connection; commits at the end, takes everything back on an error."""
        with self._lock, self._connection:
            yield self._connection

    def query(self, sql: str, *values: object) -> list[sqlite3.Row]:
        """All rows of a query."""
        with self.transaction() as connection:
            return connection.execute(sql, values).fetchall()

    def close(self) -> None:
        """Forget the shop."""
        self._connection.close()


def shop_of(ctx: FunctionInvocationContext) -> Shop:
    if not isinstance(ctx.deps, Shop):
        raise ToolError("the desk has no database: start the run with deps=Shop()")
    return ctx.deps


@tool
def find_order(
    customer: Annotated[str, Field(description="Name of the customer.", examples=["Peter Hall"])], ctx: FunctionInvocationContext
) -> str:
    """Find the orders and tickets of a customer by name."""
    rows = shop_of(ctx).query(
        "SELECT orders.id, item, orders.status, tickets.id AS ticket FROM orders LEFT JOIN tickets ON tickets.order_id = orders.id "
        "WHERE instr(lower(customer), lower(?)) ORDER BY orders.id",
        customer.strip() or "nobody",
    )
    lines = [f"order {row['id']}: {row['item']}, {row['status']}" + (f"; ticket {row['ticket']}" if row["ticket"] else "") for row in rows]
    return "\n".join(lines) or "No orders of a customer with this name."


@tool
def get_order(order_id: Annotated[int, Field(description="Number of the order.", examples=[8342])], ctx: FunctionInvocationContext) -> str:
    """Read one order by its number."""
    with shop_of(ctx).transaction() as connection:
        row = connection.execute("SELECT * FROM orders WHERE id = ?", (order_id,)).fetchone()
        if row is None:
            raise ToolError(f"there is no order {order_id}")
        connection.execute("INSERT INTO journal (action, row_id) VALUES ('get_order', ?)", (order_id,))
    return f"order {row['id']}: {row['customer']} paid {row['total']} dollars for a {row['item']}, {row['status']}"


@tool
def refund(
    order_id: Annotated[int, Field(description="Number of the order.", examples=[8342])],
    amount: Annotated[int, Field(description="Dollars to pay back.", examples=[72], ge=1)],
    ctx: FunctionInvocationContext,
) -> str:
    """Pay money back for an order."""
    with shop_of(ctx).transaction() as connection:
        row = connection.execute("SELECT total FROM orders WHERE id = ?", (order_id,)).fetchone()
        if row is None:
            raise ToolError(f"there is no order {order_id}")
        if amount > row["total"]:
            raise ToolError(f"order {order_id} was only {row['total']} dollars")
        connection.execute("INSERT INTO refunds (order_id, amount) VALUES (?, ?)", (order_id, amount))
    return f"paid back {amount} dollars for order {order_id}"


@tool
def update_ticket(
    ticket_id: Annotated[int, Field(description="Number of the ticket.", examples=[77])],
    status: Annotated[Literal["open", "waiting", "solved"], Field(description="The new status.", examples=["solved"])],
    ctx: FunctionInvocationContext,
) -> str:
    """Set the status of a ticket."""
    with shop_of(ctx).transaction() as connection:
        if not connection.execute("UPDATE tickets SET status = ? WHERE id = ?", (status, ticket_id)).rowcount:
            raise ToolError(f"there is no ticket {ticket_id}")
    return f"ticket {ticket_id} is now {status}"

"""Tools over the rooms of a small guest house and its book of bookings, which is a file. The house is the run's `deps`."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from maymust import FunctionInvocationContext, Happened, ToolError, tool

ROOMS = {"garden": (2, 8900), "tower": (2, 12900), "attic": (1, 5900), "hall": (4, 19900)}
"""Room: beds, and cents for a night."""


class House:
    """The guest house. Its bookings are in a file, so that they outlive the process."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bookings.db"
        with closing(self._connect()) as connection, connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS bookings"
                " (id INTEGER PRIMARY KEY, room TEXT NOT NULL, nights INTEGER NOT NULL, cents INTEGER NOT NULL, key TEXT NOT NULL UNIQUE)"
            )

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=10)

    def book(self, room: str, nights: int, cents: int, key: str) -> int:
        """Write a booking down; its number. `key` names the call it comes from: the same call books once."""
        with closing(self._connect()) as connection, connection:
            values = (room, nights, cents, key)
            connection.execute("INSERT OR IGNORE INTO bookings (room, nights, cents, key) VALUES (?, ?, ?, ?)", values)
            return int(connection.execute("SELECT id FROM bookings WHERE key = ?", (key,)).fetchone()[0])

    def booked_by(self, key: str) -> int | None:
        """The booking that a call has made."""
        with closing(self._connect()) as connection:
            row = connection.execute("SELECT id FROM bookings WHERE key = ?", (key,)).fetchone()
        return None if row is None else int(row[0])

    def cancel(self, booking: int) -> bool:
        """Strike a booking out; False when there is none of that number."""
        with closing(self._connect()) as connection, connection:
            return connection.execute("DELETE FROM bookings WHERE id = ?", (booking,)).rowcount == 1

    def bookings(self) -> list[tuple[int, str, int, int]]:
        """Number, room, nights and cents of each booking."""
        with closing(self._connect()) as connection:
            return connection.execute("SELECT id, room, nights, cents FROM bookings ORDER BY id").fetchall()


def house_of(ctx: FunctionInvocationContext) -> House:
    if not isinstance(ctx.deps, House):
        raise ToolError("there is no house: start the run with deps=House(folder)")
    return ctx.deps


def was_it_booked(ctx: FunctionInvocationContext) -> Happened | bool:
    """What became of a booking whose process ended meanwhile: the book says it, by the call's key."""
    booking = house_of(ctx).booked_by(ctx.idempotency_key)
    return False if booking is None else Happened({"booking": booking})


@tool(effect="read")
def search_rooms(beds: Annotated[int, Field(ge=1, le=10)], nights: Annotated[int, Field(ge=1, le=30)]) -> list[dict[str, Any]]:
    """Find rooms with so many beds at least, and what so many nights cost in them."""
    fitting = [(cents * nights, room) for room, (has, cents) in ROOMS.items() if has >= beds]
    return [{"room": room, "nights": nights, "cents": cents} for cents, room in sorted(fitting)]


@tool(effect="once", resolve=was_it_booked)
def book(
    room: str, nights: Annotated[int, Field(ge=1, le=30)], cents: Annotated[int, Field(ge=1)], ctx: FunctionInvocationContext
) -> dict[str, Any]:
    """Book a room. `cents` is the whole price, as the search has given it."""
    if room not in ROOMS:
        raise ToolError(f"there is no room {room!r}")
    if cents != ROOMS[room][1] * nights:
        raise ToolError(f"{nights} nights in {room} cost {ROOMS[room][1] * nights} cents, not {cents}")
    return {"booking": house_of(ctx).book(room, nights, cents, ctx.idempotency_key)}


@tool(effect="idempotent")
def cancel_booking(booking: int, ctx: FunctionInvocationContext) -> str:
    """Cancel a booking."""
    return f"booking {booking} is cancelled" if house_of(ctx).cancel(booking) else f"there was no booking {booking}"

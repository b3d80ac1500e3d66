"""Messages that were sent to a run and wait in its store: numbered, and read in that order, each once.

The number of the last one that has come to the run is a part of its state. So the write that brings a message into the run is also the one
that says so, wherever the process ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from maymust.agent.actions import MessageSent
from maymust.agent.inputs import from_user
from maymust.durable.audit import when, write_audit
from maymust.durable.connection import Connection
from maymust.errors import RunError
from maymust.models.message import Message
from maymust.tools.output import json_text

_SHOWN = 200


def checked(message: str | Message) -> Message:
    """What is to be sent; raises what `from_user` does."""
    return from_user(message, "store.send()")


def send(connection: Connection, row: Any, message: Message, by: str | None, now: float) -> None:
    """Keep a message for the run of this row, which nobody else may change meanwhile. Raises RunError for a run that is over for good."""
    run_id = row["run_id"]
    if row["cancelled_at"] is not None:
        raise RunError(f"run {run_id} was cancelled by {row['cancelled_by'] or 'somebody'} at {when(row['cancelled_at'])}")
    if row["status"] == "ended":
        raise RunError(f"run {run_id} has ended with its answer and reads no more; start a new run with previous= to go on talking")
    number = row["mail"] + 1
    connection.execute("UPDATE runs SET mail = ? WHERE run_id = ?", (number, run_id))
    values = (run_id, number, json_text(message.to_dict()), by, now)
    connection.execute("INSERT INTO messages(run_id, number, message, by, sent_at) VALUES(?, ?, ?, ?, ?)", values)
    write_audit(connection, now, run_id, "message", by=by, number=number, text=message.text[:_SHOWN] or None)


def unread(connection: Connection, run_id: str, received: int) -> list[MessageSent]:
    """What was sent to a run after the message of this number, in order."""
    query = "SELECT * FROM messages WHERE run_id = ? AND number > ? ORDER BY number"
    return [_event(row) for row in connection.execute(query, (run_id, received)).fetchall()]


def unread_by(connection: Connection, run_ids: Sequence[str]) -> Mapping[str, list[MessageSent]]:
    """What waits for these runs, by run."""
    found: dict[str, list[MessageSent]] = {}
    if not run_ids:
        return found
    query = f"SELECT * FROM messages WHERE run_id IN ({', '.join('?' * len(run_ids))}) ORDER BY run_id, number"
    for row in connection.execute(query, run_ids).fetchall():
        found.setdefault(row["run_id"], []).append(_event(row))
    return found


def settle(connection: Connection, run_id: str, received: int, now: float, *, ended: bool = False) -> None:
    """The messages up to this number are in the run: they wait no more. When it has `ended`, they came too late to be read in it."""
    where = "run_id = ? AND number <= ?"
    for row in connection.execute(f"SELECT number FROM messages WHERE {where} ORDER BY number", (run_id, received)).fetchall():
        write_audit(connection, now, run_id, "not read" if ended else "received", number=row["number"])
    connection.execute(f"DELETE FROM messages WHERE {where}", (run_id, received))


def _event(row: Any) -> MessageSent:
    return MessageSent(Message.from_dict(json.loads(row["message"])), row["by"], row["number"])


class Letterbox:
    """Brings what comes in to a run that is under way; each message once, in order."""

    def __init__(self) -> None:
        self.received: int = 0
        self.hear: Callable[[MessageSent], None] | None = None

    def bring(self, said: Iterable[MessageSent]) -> None:
        """Everything that waits for the run now. What comes before somebody listens is brought the next time."""
        if self.hear is None:
            return
        for event in said:
            if event.number is not None and event.number > self.received:
                self.received = event.number
                self.hear(event)

"""What is known of runs from outside, without the agents they belong to."""

from __future__ import annotations

import sqlite3
from typing import cast

from maymust.durable.owner import is_free
from maymust.durable.store import RunRow, Status


def read_runs(connection: sqlite3.Connection, now: float, limit: int) -> list[RunRow]:
    """The newest runs."""
    rows = connection.execute("SELECT * FROM runs ORDER BY created_at DESC, rowid DESC LIMIT ?", (limit,)).fetchall()
    return [row_of(connection, row, now) for row in rows]


def row_of(connection: sqlite3.Connection, row: sqlite3.Row, now: float) -> RunRow:
    """A row as what it says; whether a process is at work is found out now."""
    waiting = "run_id = ? AND answer IS NULL AND (expires_at IS NULL OR expires_at > ?)"
    found = connection.execute(f"SELECT count(*) FROM questions WHERE {waiting}", (row["run_id"], now)).fetchone()
    working = row["owner"] is not None and not is_free(row, now)
    status = row["status"]
    if working:
        status = "running"
    elif row["cancelled_at"] is not None:
        status = "cancelled"
    elif status == "running":
        status = "interrupted"
    return RunRow(
        run_id=row["run_id"],
        status=cast("Status", status),
        agent=row["agent"],
        input=row["input"],
        seq=row["seq"],
        open=found[0],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        stop_reason=row["stop_reason"],
        answer=row["answer"],
        error=row["error"],
        pid=row["pid"] if working else None,
        host=row["host"] if working else None,
        cancelled_by=row["cancelled_by"],
    )

"""The state of a run as rows of SQLite: what an event has changed is written, not the whole state."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from maymust.agent.state import RunState
from maymust.durable import blobs
from maymust.durable.changes import LOGS, assemble, damaged, write_changes
from maymust.durable.migrations import DOCUMENTS, Document
from maymust.durable.sealing import Sealer
from maymust.durable.store import StoreError


class StateWriter:
    """Writes the state of one run. `kept` is the state that is in the database."""

    def __init__(self, run_id: str, sealer: Sealer) -> None:
        self._run_id, self._sealer = run_id, sealer
        self.kept: RunState | None = None

    def write(self, connection: sqlite3.Connection, state: RunState) -> None:
        """Bring the rows to this state; the caller commits, and notes `kept` then."""
        if self.kept is None:
            for table in ("states", "items"):
                connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (self._run_id,))
        rows = _Rows(connection, self._run_id)
        try:
            write_changes(rows, self._sealer, self.kept, state)
        except (TypeError, ValueError) as fault:
            raise StoreError(f"run {self._run_id} cannot be stored, for something in it has no JSON form: {fault}") from fault
        if rows.texts:
            blobs.keep(connection, self._run_id, rows.texts)


class _Rows:
    """Keeps changed parts as rows; long texts are gathered in `texts`."""

    def __init__(self, connection: sqlite3.Connection, run_id: str) -> None:
        self._connection, self._run_id = connection, run_id
        self.texts: dict[str, str] = {}

    def head(self, path: str, head: Document, fixed: Document | None) -> None:
        if fixed is None:
            values = (blobs.dumps(head, self.texts), self._run_id, path)
            self._connection.execute("UPDATE states SET head = ? WHERE run_id = ? AND path = ?", values)
            return
        row = (self._run_id, path, blobs.dumps(fixed, self.texts), blobs.dumps(head, self.texts))
        self._connection.execute("INSERT OR REPLACE INTO states(run_id, path, fixed, head) VALUES(?, ?, ?, ?)", row)

    def clear(self, path: str, log: str) -> None:
        self._connection.execute("DELETE FROM items WHERE run_id = ? AND path = ? AND log = ?", (self._run_id, path, log))

    def item(self, path: str, log: str, place: int, data: Any) -> None:
        row = (self._run_id, path, log, place, blobs.dumps(data, self.texts))
        self._connection.execute("INSERT INTO items(run_id, path, log, place, data) VALUES(?, ?, ?, ?, ?)", row)

    def gone(self, path: str) -> None:
        for table in ("states", "items"):
            where = "run_id = ? AND (path = ? OR substr(path, 1, ?) = ?)"
            self._connection.execute(f"DELETE FROM {table} WHERE {where}", (self._run_id, path, len(path) + 1, f"{path}/"))


def read_document(
    connection: sqlite3.Connection,
    run_id: str,
    sealer: Sealer,
    migrations: Mapping[int, Callable[[Document], Document]] = DOCUMENTS,
) -> Document:
    """The state of a run as a document of the present version. Raises StoreError for what is not there or damaged."""
    found: dict[str, Document] = {}
    try:
        for path, fixed, head in connection.execute("SELECT path, fixed, head FROM states WHERE run_id = ?", (run_id,)).fetchall():
            found[path] = {**blobs.loads(head, connection), **blobs.loads(fixed, connection)}
            found[path].update({name: [] for name in LOGS.values()})
        rows = connection.execute("SELECT path, log, data FROM items WHERE run_id = ? ORDER BY path, log, place", (run_id,)).fetchall()
        for path, log, data in rows:
            found[path][LOGS[log]].append(blobs.loads(data, connection))
    except (KeyError, ValueError, LookupError, TypeError) as fault:
        raise damaged(run_id, fault) from fault
    return assemble(run_id, found, sealer, migrations)

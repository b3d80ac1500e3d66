"""The state of a run as rows: what an event has changed is written, not the whole state.

A state is its head, which does not grow, four logs, which only grow, and the states of child agents, at the path of their call. Rows are
read back into the document that `RunState.to_dict` gives.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from maymust.agent.state import RunState
from maymust.durable import blobs
from maymust.durable.migrations import DOCUMENTS, Document, migrate_document
from maymust.durable.sealing import Sealer, sealed_calls
from maymust.durable.store import StoreError

_FIXED = ("system", "policy", "metadata", "before", "said")
"""Parts of a head that are the same objects from event to event."""
_LOGS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("m", "messages", lambda message: message.to_dict()),
    ("h", "history", lambda step: step.to_dict()),
    ("t", "turns", lambda turn: turn.to_dict()),
    ("p", "past_children", lambda pair: [pair[0], pair[1].to_dict()]),
)


class StateWriter:
    """Writes the state of one run. `kept` is the state that is in the database."""

    def __init__(self, run_id: str, sealer: Sealer) -> None:
        self._run_id, self._sealer = run_id, sealer
        self.kept: RunState | None = None

    def write(self, connection: sqlite3.Connection, state: RunState) -> None:
        """Bring the rows to this state; the caller commits, and notes `kept` then."""
        texts: dict[str, str] = {}
        if self.kept is None:
            for table in ("states", "items"):
                connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (self._run_id,))
        try:
            self._write(connection, "", self.kept, state, texts)
        except (TypeError, ValueError) as fault:
            raise StoreError(f"run {self._run_id} cannot be stored, for something in it has no JSON form: {fault}") from fault
        if texts:
            blobs.keep(connection, self._run_id, texts)

    def _write(self, connection: sqlite3.Connection, path: str, old: RunState | None, new: RunState, texts: dict[str, str]) -> None:
        run_id, head = self._run_id, new.head()
        fixed = {name: head.pop(name) for name in _FIXED}
        if secrets := sealed_calls(new.calls, self._sealer):
            for call in head["calls"]:
                if call["call_id"] in secrets:
                    call["secret"] = secrets[call["call_id"]]
        if old is not None and all(getattr(old, name) is getattr(new, name) for name in _FIXED):
            connection.execute("UPDATE states SET head = ? WHERE run_id = ? AND path = ?", (blobs.dumps(head, texts), run_id, path))
        else:
            values = (run_id, path, blobs.dumps(fixed, texts), blobs.dumps(head, texts))
            connection.execute("INSERT OR REPLACE INTO states(run_id, path, fixed, head) VALUES(?, ?, ?, ?)", values)
        for log, name, as_data in _LOGS:
            before, after = None if old is None else getattr(old, name), getattr(new, name)
            start = len(before) if before is not None and after.grew_from(before) else 0
            if before is not None and not start and len(before):
                connection.execute("DELETE FROM items WHERE run_id = ? AND path = ? AND log = ?", (run_id, path, log))
            for place in range(start, len(after)):
                row = (run_id, path, log, place, blobs.dumps(as_data(after[place]), texts))
                connection.execute("INSERT INTO items(run_id, path, log, place, data) VALUES(?, ?, ?, ?, ?)", row)
        self._children(connection, path, old, new, texts)

    def _children(self, connection: sqlite3.Connection, path: str, old: RunState | None, new: RunState, texts: dict[str, str]) -> None:
        before: Mapping[str, RunState] = {} if old is None else old.children
        for call_id, child in new.children.items():
            if child is not before.get(call_id):
                self._write(connection, f"{path}/{call_id}", before.get(call_id), child, texts)
        for call_id in before:
            if call_id not in new.children:
                at = f"{path}/{call_id}"
                for table in ("states", "items"):
                    where = "run_id = ? AND (path = ? OR substr(path, 1, ?) = ?)"
                    connection.execute(f"DELETE FROM {table} WHERE {where}", (self._run_id, at, len(at) + 1, f"{at}/"))


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
            found[path] = {**blobs.loads(head, connection), **blobs.loads(fixed, connection), "children": {}}
            found[path].update({name: [] for _, name, _ in _LOGS})
            for call in found[path]["calls"]:
                _unseal(call, sealer)
        names = {log: name for log, name, _ in _LOGS}
        rows = connection.execute("SELECT path, log, data FROM items WHERE run_id = ? ORDER BY path, log, place", (run_id,)).fetchall()
        for path, log, data in rows:
            found[path][names[log]].append(blobs.loads(data, connection))
        for path in sorted(found, key=len, reverse=True):
            if path:
                parent = max((one for one in found if one != path and path.startswith(f"{one}/")), key=len)
                found[parent]["children"][path[len(parent) + 1 :]] = found[path]
        return migrate_document(found[""], migrations)
    except (KeyError, ValueError, LookupError, TypeError) as fault:
        raise StoreError(f"run {run_id} is damaged in the store: {type(fault).__name__} {fault}") from fault


def _unseal(call: dict[str, Any], sealer: Sealer) -> None:
    secret = call.pop("secret", None)
    raw = None if secret is None else sealer.unseal(secret, tool=call["name"])
    if raw is not None:
        call["shown"], call["raw_arguments"] = call["raw_arguments"], raw
        call.pop("sealed", None)

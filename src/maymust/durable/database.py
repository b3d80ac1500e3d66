"""The connection to a SQLite database: how it is opened, how a transaction is made, and what its errors say."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from maymust.durable.migrations import LAYOUT, layout_steps
from maymust.durable.store import StoreError

_WAIT = 5.0
"""Seconds to wait for another process that writes."""


class Database:
    """One connection, used by one thread at a time. Opened at first use.

    Raises StoreError for whatever SQLite cannot do.
    """

    def __init__(self, path: str | os.PathLike[str], layout: Sequence[tuple[str, ...]] = LAYOUT) -> None:
        self.path: Path = Path(path)
        self._layout = layout
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._syncs: bool | None = None
        self._finalizer: Callable[[], object] | None = None

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for statements that only read."""
        with self._lock, self._told():
            yield self._open()

    @contextlib.contextmanager
    def writing(self, *, sync: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is kept, or nothing.

        `sync=False` lets the operating system write it out later: it survives the end of the process, not of the machine.
        """
        with self._lock, self._told():
            connection = self._open()
            if sync != self._syncs:
                connection.execute(f"PRAGMA synchronous={'FULL' if sync else 'NORMAL'}")
                self._syncs = sync
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            if self._finalizer is not None:
                self._finalizer()
            self._connection = None

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as fault:
            raise StoreError(f"the store {self.path} failed: {fault}{_advice(fault)}") from fault

    def _open(self) -> sqlite3.Connection:
        # A connection must not be carried over a fork.
        if self._connection is None or self._process != os.getpid():
            connection = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
            connection.row_factory = sqlite3.Row
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                _prepare(connection, self._layout)
            except BaseException:
                connection.close()
                raise
            self._connection, self._process, self._syncs = connection, os.getpid(), None
            # What is dropped is closed: a store is often made where it is used.
            self._finalizer = weakref.finalize(self, _close, connection, os.getpid())
        return self._connection


def _close(connection: sqlite3.Connection, process: int) -> None:
    # Closing what a fork has inherited would drop the locks of the process it is from.
    if process == os.getpid():
        connection.close()


def _prepare(connection: sqlite3.Connection, layout: Sequence[tuple[str, ...]]) -> None:
    """Bring the database to the newest layout."""
    if _layout_of(connection) == len(layout):
        return
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have done it while this one waited.
    found = _layout_of(connection)
    for statements in layout_steps(found, layout):
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version={len(layout)}")
    connection.execute("COMMIT")


def _layout_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _advice(fault: sqlite3.Error) -> str:
    said = str(fault)
    if "readonly" in said or "unable to open" in said:
        return "; the folder and the file have to be writable, also for -wal and -shm beside it"
    if "full" in said or "disk I/O" in said:
        return "; make room, and resume the run"
    if "locked" in said:
        return f"; another process has been writing for more than {_WAIT:g} seconds"
    if "malformed" in said or "not a database" in said:
        return "; it is damaged: restore a copy"
    return ""

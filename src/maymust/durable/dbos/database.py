"""The database of a `DbosStore`: DBOS's tables, and beside them an index of the runs. What the index says follows from DBOS's tables.

In Postgres the index has the schema `maymust`, DBOS has `dbos`. In SQLite both are in one file.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import sqlalchemy as sa
from dbos import DBOS, DBOSClient

from maymust.durable.dbos.serializer import SERIALIZER
from maymust.durable.dbos.sql import Sql
from maymust.durable.dbos.tables import LAYOUT
from maymust.durable.migrations import layout_steps
from maymust.durable.store import StoreError

log: logging.Logger = logging.getLogger(__name__)

T = TypeVar("T")
NAME = "maymust"
"""The application that DBOS knows our workflows by; others in the same database are left alone."""
_LOCK = 0x6D61_7975
"""Postgres' advisory lock for changing the layout."""
_BUSY = 10.0
"""Seconds to wait for another process that writes to a SQLite file."""
_STILL = 10
"""Seconds after which Postgres ends a session that stands still in the middle of a transaction."""


class DbosDatabase:
    """Connections are made at first use, and anew after they were lost. Raises StoreError for whatever the database cannot do."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self._address = sa.make_url(url)
        except sa.exc.ArgumentError as fault:
            raise ValueError("that is no address; give postgresql://USER:PASSWORD@HOST/DATABASE, or sqlite:///FILE") from fault
        if self._address.get_backend_name() not in ("postgresql", "sqlite") or not self._address.database:
            raise ValueError(f"{self}: give postgresql://USER:PASSWORD@HOST/DATABASE, or sqlite:///FILE")
        self._lock = threading.RLock()
        self._engine: sa.Engine | None = None
        self._client: DBOSClient | None = None
        self._finalizer: Callable[[], object] | None = None
        self._process = 0

    def __str__(self) -> str:
        return self._address.render_as_string(hide_password=True)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Sql]:
        """A connection, for statements that only read."""
        with self._told(), self._open().connect() as connection, connection.begin():
            yield Sql(connection)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Sql]:
        """A transaction: all of it is kept, or nothing."""
        with self._told(), self._open().connect() as connection:
            connection.execution_options(writes=True)
            with connection.begin():
                yield Sql(connection)

    def patiently(self, work: Callable[[], T], stop: Callable[[], bool] = lambda: False) -> T:
        """Do it, and again while the database is not there, as DBOS does with its own writes."""
        pause = 0.05
        while True:
            try:
                return work()
            except StoreError as fault:
                if not fault.away or stop():
                    raise
                log.warning("%s; trying again", fault)
                time.sleep(pause)
                pause = min(pause * 2, 2.0)

    def client(self) -> DBOSClient:
        """DBOS's client, which enqueues within our transactions."""
        with self._lock, self._told():
            engine = self._open()
            if self._client is None:
                self._client = DBOSClient(
                    system_database_engine=engine, serializer=SERIALIZER, application_name=NAME, lazy=True, retry_connection_errors=False
                )
            return self._client

    def close(self) -> None:
        """Close all connections; the next use opens them again."""
        with self._lock:
            if self._finalizer is not None:
                self._finalizer()
            self._engine = self._client = self._finalizer = None

    def _open(self) -> sa.Engine:
        with self._lock:
            # A connection must not be carried over a fork.
            if self._engine is None or self._process != os.getpid():
                self._engine, self._client, self._process = self._connect(), None, os.getpid()
                # What is dropped is closed: a store is often made where it is used.
                self._finalizer = weakref.finalize(self, _dispose, self._engine, os.getpid())
                try:
                    _prepare(self._engine, self.url)
                except BaseException:
                    self.close()
                    raise
            return self._engine

    @property
    def url_for_dbos(self) -> str:
        """The address with the settings of a session, as DBOS connects by it."""
        if self._address.get_backend_name() == "sqlite":
            return self.url
        return self._address.update_query_dict({"options": self._options()}).render_as_string(hide_password=False)

    def _options(self) -> str:
        # A process that stands still in the middle of a transaction must not hold its locks for ever: others wait for them.
        return f"{self._address.query.get('options', '')} -cidle_in_transaction_session_timeout={_STILL * 1000}".strip()

    def _connect(self) -> sa.Engine:
        if self._address.get_backend_name() == "sqlite":
            if sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42):
                raise StoreError(
                    f"DBOS needs SQLite 3.42 on this Python, and there is {sqlite3.sqlite_version}; use Postgres, or Python 3.11"
                )
            engine = sa.create_engine(self._address, connect_args={"timeout": _BUSY, "check_same_thread": False}, poolclass=sa.QueuePool)
            sa.event.listen(engine, "connect", _own_transactions)
            sa.event.listen(engine, "begin", _begin)
            return engine
        address = self._address.set(drivername="postgresql+psycopg")
        options = f"{self._options()} -csearch_path={NAME},dbos"
        settings: dict[str, Any] = {"options": options, "application_name": NAME, "connect_timeout": 10}
        return sa.create_engine(address, connect_args=settings, pool_pre_ping=True, pool_size=3, max_overflow=3)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as fault:
            said = str(getattr(fault, "orig", None) or fault).strip().splitlines()
            error = StoreError(f"the store {self} failed: {said[0] if said else type(fault).__name__}")
            error.away = is_away(fault)
            raise error from fault


def _dispose(engine: sa.Engine, process: int) -> None:
    # What a fork has inherited belongs to the process it is from.
    engine.dispose(close=process == os.getpid())


def is_away(fault: sa.exc.SQLAlchemyError) -> bool:
    """Whether the database was not there, so that the same may succeed later."""
    return isinstance(fault, sa.exc.OperationalError | sa.exc.InterfaceError | sa.exc.TimeoutError) or bool(
        getattr(fault, "connection_invalidated", False)
    )


def _own_transactions(connection: Any, _: Any) -> None:
    # Python's sqlite3 would begin a transaction only at the first change, too late for reading what the change rests on.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")


def _prepare(engine: sa.Engine, url: str) -> None:
    """Bring the database to the newest layout: DBOS's tables by DBOS, and the index."""
    with engine.connect() as connection, connection.begin():
        if _layout_of(Sql(connection)) == len(LAYOUT):
            return
    with engine.connect() as guard:
        guard.execution_options(isolation_level="AUTOCOMMIT")
        if guard.dialect.name == "postgresql":
            # Asked for again and again: a statement that waits would keep DBOS from making an index without locks.
            while not guard.exec_driver_sql(f"SELECT pg_try_advisory_lock({_LOCK})").scalar():
                time.sleep(0.1)
        try:
            DBOS.migrate(url)
            with engine.connect() as connection:
                connection.execution_options(writes=True)
                with connection.begin():
                    _write_layout(Sql(connection))
        finally:
            if guard.dialect.name == "postgresql":
                guard.exec_driver_sql(f"SELECT pg_advisory_unlock({_LOCK})")


def _write_layout(sql: Sql) -> None:
    if sql.is_postgres:
        sql.execute(f"CREATE SCHEMA IF NOT EXISTS {NAME}")
    found = _layout_of(sql)
    serial = "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY" if sql.is_postgres else "INTEGER PRIMARY KEY"
    for statements in layout_steps(found, LAYOUT):
        for statement in statements:
            sql.execute(statement.replace("SERIAL", serial))
    sql.execute("DELETE FROM index_layout")
    sql.execute("INSERT INTO index_layout(version) VALUES(?)", (len(LAYOUT),))


def _layout_of(sql: Sql) -> int:
    if not sa.inspect(sql.connection).has_table("index_layout", schema=NAME if sql.is_postgres else None):
        return 0
    row = sql.execute("SELECT version FROM index_layout").fetchone()
    return 0 if row is None else int(row[0])

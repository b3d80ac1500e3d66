"""Tools over a database that can only be read. The database is the run's `deps`.

The rules say how the tools may be used; what SQL can do is bounded here, where it cannot be talked around: the file is opened for reading,
only SELECT passes the authorizer, one statement at a time, and a query that takes too long is interrupted.
"""

import sqlite3
import tempfile
import threading
import time
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from maymust import FunctionInvocationContext, ToolError, tool

SECONDS = 1.0
PERMITTED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


class Database:
    """The bakery's numbers in a temporary file."""

    def __init__(self) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="maymust-analyst-")
        self.path = Path(self._made.name) / "bakery.db"
        writer = sqlite3.connect(self.path)
        writer.executescript(Path(__file__).with_name("bakery.sql").read_text(encoding="utf-8"))
        writer.close()
        self._reader = sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self._lock = threading.Lock()

    def select(self, sql: str, limit: int, *values: object) -> tuple[list[dict[str, Any]], bool]:
        """At most `limit` rows, and whether there were more. Raises sqlite3.Error for anything that is no query."""
        with self._lock:
            end = time.monotonic() + SECONDS
            self._reader.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in PERMITTED else sqlite3.SQLITE_DENY)
            self._reader.set_progress_handler(lambda: time.monotonic() > end, 10_000)
            try:
                cursor = self._reader.execute(sql, values)
                names = [column[0] for column in cursor.description or ()]
                rows = cursor.fetchmany(limit + 1)
            finally:
                self._reader.set_authorizer(None)
                self._reader.set_progress_handler(None, 0)
            return [dict(zip(names, row, strict=True)) for row in rows[:limit]], len(rows) > limit

    def close(self) -> None:
        """Forget the numbers."""
        self._reader.close()
        self._made.cleanup()


def database_of(ctx: FunctionInvocationContext) -> Database:
    if not isinstance(ctx.deps, Database):
        raise ToolError("there is no database: start the run with deps=Database()")
    return ctx.deps


@tool(effect="read")
def list_tables(ctx: FunctionInvocationContext) -> list[str]:
    """List the tables."""
    rows, _ = database_of(ctx).select("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", 1000)
    return [row["name"] for row in rows]


@tool(effect="read")
def describe(table: str, ctx: FunctionInvocationContext) -> str:
    """Show how a table was made: its columns, their types, and what they refer to."""
    rows, _ = database_of(ctx).select("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", 1, table)
    if not rows:
        raise ToolError(f"there is no table {table!r}")
    return str(rows[0]["sql"])


@tool(effect="read")
def query(
    sql: Annotated[str, Field(description="One SELECT statement in SQLite's dialect.")],
    limit: Annotated[int, Field(description="The most rows to read.", ge=1)],
    ctx: FunctionInvocationContext,
) -> dict[str, Any]:
    """Read rows with SQL."""
    try:
        rows, more = database_of(ctx).select(sql, limit)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise ToolError(f"no rows were read: {error}") from error
    return {"rows": rows, "there_are_more": more}

"""What questions and the audit trail need of a connection to a database: SQLite's own has it, and so has that of `maymust.durable.dbos`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol


class Cursor(Protocol):
    """What a statement gave. Rows answer to numbers and to names of columns."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """Statements with `?` for each value, in a transaction that somebody else makes."""

    def execute(self, query: str, values: Sequence[Any] = ..., /) -> Cursor: ...
    def executemany(self, query: str, rows: Iterable[Sequence[Any]], /) -> object: ...

"""A connection of SQLAlchemy's with the manners of `maymust.durable.connection.Connection`, so that both stores share their statements."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa


class Sql:
    """Statements with `?` for each value, in the transaction of `connection`."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection

    @property
    def is_postgres(self) -> bool:
        """Whether this is Postgres; else it is SQLite."""
        return self.connection.dialect.name == "postgresql"

    @property
    def clock(self) -> str:
        """The database's clock, in seconds since the epoch, as an expression: hosts need not agree on theirs."""
        return "extract(epoch from clock_timestamp())" if self.is_postgres else "((julianday('now') - 2440587.5) * 86400.0)"

    @property
    def for_update(self) -> str:
        """What locks the rows of a SELECT until the end of the transaction."""
        return " FOR UPDATE" if self.is_postgres else ""

    def now(self) -> float:
        """The database's clock."""
        return float(self.execute(f"SELECT {self.clock}").fetchone()[0])

    def execute(self, query: str, values: Sequence[Any] = ()) -> Rows:
        """Run a statement."""
        return Rows(self.connection.execute(_text(query), {f"p{place}": plain(value) for place, value in enumerate(values)}))

    def executemany(self, query: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row of values."""
        for row in rows:
            self.execute(query, row)


class Rows:
    """What a statement gave."""

    def __init__(self, result: Any) -> None:
        self._result = result

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""
        return int(self._result.rowcount)

    def fetchone(self) -> Any:
        """The next row, or None."""
        row = self._result.fetchone()
        return None if row is None else Row(row)

    def fetchall(self) -> list[Any]:
        """The other rows."""
        return [Row(row) for row in self._result.fetchall()]


class Row:
    """A row that answers to numbers and to names."""

    def __init__(self, row: Any) -> None:
        self._row = row

    def __getitem__(self, key: int | str) -> Any:
        return self._row[key] if isinstance(key, int) else self._row._mapping[key]

    def to_dict(self) -> dict[str, Any]:
        """By name."""
        return dict(self._row._mapping)


@functools.lru_cache(maxsize=256)
def _text(query: str) -> sa.TextClause:
    first, *others = query.split("?")
    return sa.text(first + "".join(f":p{place}{part}" for place, part in enumerate(others)))


def plain(value: Any) -> Any:
    """A value that both databases take: Postgres has no NUL in a text, and UTF-8 no lone surrogates."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and ("\x00" in value or not value.isascii()):
        return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return value

"""Runs that outlive their process: stores, leases, questions that wait, and what is known of a run from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maymust.durable.dbos.store import DbosStore as DbosStore
    from maymust.durable.sqlite_store import SqliteStore as SqliteStore

__all__ = ["DbosStore", "SqliteStore"]


def __getattr__(name: str) -> Any:
    # DBOS is an extra, and takes a while to load.
    if name == "DbosStore":
        from maymust.durable.dbos.store import DbosStore

        return DbosStore
    if name == "SqliteStore":
        from maymust.durable.sqlite_store import SqliteStore

        return SqliteStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

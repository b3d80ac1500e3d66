"""Which store a test's folder has: `SqliteStore` in a file, or the one whose address is in the file `store`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from maymust import SqliteStore
from maymust.durable import DbosStore

AnyStore = SqliteStore | DbosStore


def address(folder: Path) -> str | None:
    """The address of the folder's store; None for a file of `SqliteStore`."""
    path = folder / "store"
    return path.read_text(encoding="utf-8") if path.exists() else None


@contextlib.contextmanager
def store_of(folder: Path, **settings: Any) -> Iterator[AnyStore]:
    """The store of a folder, for as long as it is looked at."""
    url = address(folder)
    store: AnyStore = SqliteStore(folder / "runs.db", **settings) if url is None else DbosStore(url, **settings)
    try:
        yield store
    finally:
        store.close()

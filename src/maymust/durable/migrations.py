"""Versions of what is stored, and how an older one becomes a newer one. Pure functions; nothing is ever stored without its version.

Two things have a version: the layout of the database, and the document a run's state is. A released version never changes: a newer one
gets a number and a function here, and a database of the older one goes to `tests/durable/released`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maymust.agent.state import STATE_VERSION
from maymust.durable.store import StoreError

Document = dict[str, Any]

LAYOUT: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE runs(run_id TEXT PRIMARY KEY, seq INTEGER NOT NULL, status TEXT NOT NULL, agent TEXT, input TEXT NOT NULL,
        stop_reason TEXT, answer TEXT, error TEXT, created_at REAL NOT NULL, updated_at REAL NOT NULL,
        owner TEXT, host TEXT, pid INTEGER, born TEXT, lease_until REAL, cancelled_at REAL, cancelled_by TEXT)""",
        """CREATE TABLE states(run_id TEXT NOT NULL, path TEXT NOT NULL, fixed TEXT NOT NULL, head TEXT NOT NULL,
        PRIMARY KEY(run_id, path))""",
        """CREATE TABLE items(run_id TEXT NOT NULL, path TEXT NOT NULL, log TEXT NOT NULL, place INTEGER NOT NULL, data TEXT NOT NULL,
        PRIMARY KEY(run_id, path, log, place))""",
        """CREATE TABLE questions(id INTEGER PRIMARY KEY, run_id TEXT NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL,
        arguments TEXT NOT NULL, requirements TEXT NOT NULL, reasons TEXT NOT NULL, interrupted INTEGER NOT NULL, asked_at REAL NOT NULL,
        expires_at REAL, answer TEXT, output TEXT, reason TEXT, by TEXT, remember INTEGER NOT NULL DEFAULT 0, decided_at REAL,
        used INTEGER NOT NULL DEFAULT 0)""",
        "CREATE UNIQUE INDEX open_question ON questions(run_id, call_id) WHERE used = 0",
        """CREATE TABLE audit(id INTEGER PRIMARY KEY, at REAL NOT NULL, run_id TEXT NOT NULL, kind TEXT NOT NULL, by TEXT, call_id TEXT,
        detail TEXT NOT NULL)""",
        "CREATE INDEX audit_of_run ON audit(run_id, id)",
        "CREATE TABLE blobs(hash TEXT PRIMARY KEY, data TEXT NOT NULL)",
        "CREATE TABLE blob_uses(run_id TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY(run_id, hash)) WITHOUT ROWID",
    ),
    (
        "ALTER TABLE runs ADD COLUMN mail INTEGER NOT NULL DEFAULT 0",
        """CREATE TABLE messages(run_id TEXT NOT NULL, number INTEGER NOT NULL, message TEXT NOT NULL, by TEXT, sent_at REAL NOT NULL,
        PRIMARY KEY(run_id, number))""",
    ),
)
"""The statements that make layout n+1 out of layout n; a new database goes through all of them."""

DOCUMENTS: Mapping[int, Callable[[Document], Document]] = {}
"""What makes a document of version n+1 out of one of version n."""


def migrate_document(
    document: Document, migrations: Mapping[int, Callable[[Document], Document]] = DOCUMENTS, version: int = STATE_VERSION
) -> Document:
    """The document in the version that this library reads, child agents' included. Raises StoreError for a newer one.

    A migration gets one document at a time; its children have been migrated already.
    """
    if document["version"] != version:
        children = {name: migrate_document(child, migrations, version) for name, child in document["children"].items()}
        past = [[name, migrate_document(child, migrations, version)] for name, child in document["past_children"]]
        document = {**document, "children": children, "past_children": past}
    while document["version"] != version:
        step = migrations.get(document["version"])
        if step is None:
            raise StoreError(
                f"run {document.get('run_id')} was stored in version {document['version']}, and this maymust reads up to {version}; "
                "use the maymust that wrote it or a newer one"
            )
        document = step(document)
    return document


def layout_steps(found: int, layout: Sequence[tuple[str, ...]] = LAYOUT) -> Sequence[tuple[str, ...]]:
    """The statements that a database of layout `found` still needs, one group a version. Raises StoreError for a newer one."""
    if found > len(layout):
        raise StoreError(f"the database has layout {found}, and this maymust knows up to {len(layout)}; use a newer maymust")
    return layout[found:]

"""What an older version has stored goes on under a newer one: its runs, its questions, its secrets."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from maymust import RunState, SqliteStore
from maymust.agent.state import STATE_VERSION
from maymust.durable import documents, sqlite_store
from maymust.durable.database import Database
from maymust.durable.migrations import DOCUMENTS, LAYOUT, migrate_document
from maymust.durable.store import StoreError
from tests.durable.release import KEY, desk

RELEASED = sorted((Path(__file__).parent / "released").glob("*.sql"))
REMEDY = (
    "a released version of the state cannot be read any more: give fields a default in RunState.from_dict, or raise STATE_VERSION and "
    "write a migration. Before the first release: python -m tests.durable.release 0.1"
)


def unpacked(source: Path, folder: Path) -> Path:
    """The database of a released version."""
    path = folder / "runs.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(source.read_text(encoding="utf-8"))
    return path


def goes_on(store: SqliteStore) -> None:
    """All four runs are what they were, and go on."""
    rows = {row.input.removeprefix("run that "): row for row in store.runs()}
    statuses = {name: row.status for name, row in rows.items()}
    assert statuses == {"waits": "paused", "has ended": "ended", "was cancelled": "cancelled", "was interrupted": "interrupted"}
    for row in rows.values():
        assert isinstance(store.state(row.run_id), RunState), REMEDY
    agent = desk(store)
    assert agent.resume_sync(rows["has ended"].run_id).answer == "waited"
    agent.decide(rows["waits"].run_id, {"w3": True}, by="Ada")
    assert agent.resume_sync(rows["waits"].run_id, {"w4": True}).answer == "waited"
    result = agent.resume_sync(rows["was interrupted"].run_id)
    assert [(call.call_id, call.interrupted) for call in result.pending] == [("w3", True), ("w4", False)]
    result = agent.resume_sync(rows["was interrupted"].run_id, {"w3": False, "w4": True})
    assert [str(step.outcome) for step in result.steps] == ["ok", "ok", "failed", "ok", "ok"]
    assert result.steps[3].text == "logged in, 11 letters"


@pytest.mark.parametrize("source", RELEASED, ids=lambda path: path.stem)
def test_every_released_version_can_be_read_and_goes_on(tmp_path: Path, source: Path) -> None:
    goes_on(SqliteStore(unpacked(source, tmp_path), key=KEY))


@pytest.mark.parametrize("source", RELEASED, ids=lambda path: path.stem)
def test_a_run_of_every_released_version_takes_messages(tmp_path: Path, source: Path) -> None:
    store = SqliteStore(unpacked(source, tmp_path), key=KEY)
    (waits,) = (row for row in store.runs() if row.status == "paused")
    store.send(waits.run_id, "hurry", by="Ada")
    result = desk(store).resume_sync(waits.run_id, {"w3": True, "w4": True})
    assert result.answer == "waited"
    assert [message.text for message in result.messages if message.role == "user"][-1] == "hurry"


def test_there_is_a_released_version() -> None:
    assert RELEASED


def renamed(document: dict[str, Any]) -> dict[str, Any]:
    """A migration as a later version may have one: `said` was called `words` before."""
    changed = {key: value for key, value in document.items() if key != "words"}
    return {**changed, "said": document["words"], "version": STATE_VERSION}


def test_a_question_is_decided_across_an_upgrade_of_layout_and_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unpacked(RELEASED[-1], tmp_path)
    store = SqliteStore(path, key=KEY)
    (waits,) = (row for row in store.runs() if row.status == "paused")
    store.decide(waits.run_id, {"w3": True}, by="Ada")
    store.close()
    # Make the stored documents those of an older version, and the layout the older one of two.
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE states SET head = replace(head, '\"version\":1', '\"version\":0')")
        connection.execute("UPDATE states SET fixed = replace(fixed, '\"said\":', '\"words\":')")
    layout = (*LAYOUT, ("ALTER TABLE questions ADD COLUMN urgency TEXT",))
    read = documents.read_document
    monkeypatch.setattr(sqlite_store, "Database", lambda path: Database(path, layout))
    monkeypatch.setattr(sqlite_store, "read_document", lambda connection, run_id, sealer: read(connection, run_id, sealer, {0: renamed}))
    goes_on(SqliteStore(path, key=KEY))
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(layout),)
        # Whatever went on is stored in the new version.
        heads = [row[0] for row in connection.execute("SELECT head FROM states WHERE run_id = ?", (waits.run_id,))]
        assert all('"version":1' in head for head in heads)


def test_migrations_go_through_child_agents_one_version_at_a_time() -> None:
    def to_one(document: dict[str, Any]) -> dict[str, Any]:
        return {**document, "version": 1, "trail": [0]}

    def to_two(document: dict[str, Any]) -> dict[str, Any]:
        return {**document, "version": 2, "trail": [*document["trail"], 1]}

    leaf = {"version": 0, "children": {}, "past_children": []}
    tree = {"version": 0, "children": {"a": leaf}, "past_children": [["b", leaf]]}
    done = migrate_document(tree, {0: to_one, 1: to_two}, 2)
    for one in (done, done["children"]["a"], done["past_children"][0][1]):
        assert (one["version"], one["trail"]) == (2, [0, 1])
    with pytest.raises(StoreError, match="was stored in version 7, and this maymust reads up to 2"):
        migrate_document({**leaf, "run_id": "r", "version": 7}, {0: to_one, 1: to_two}, 2)
    assert set(DOCUMENTS) == set(range(1, STATE_VERSION))

"""A store that fails stops the run before anything can come of what was not kept; when it works again, the run goes on."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maymust import Agent, SqliteStore, tool
from maymust.durable.store import StoreError
from maymust.models import ScriptedModel, call
from maymust.models.chat_model import ModelReply, ModelRequest
from tests.durable.person import faults, finish
from tests.durable.zygote import Zygote


@pytest.mark.parametrize("limit", [70_000, 80_000, 90_000, 105_000, 120_000, 140_000])
def test_a_full_disk_stops_the_run_and_loses_nothing(zygote: Zygote, tmp_path: Path, limit: int, undisturbed: dict[str, Any]) -> None:
    ended = zygote.run(tmp_path, limit=limit)
    if "error" in ended:
        assert "StoreError: the store" in ended["error"], ended
    assert not faults(tmp_path, finish(zygote, tmp_path), undisturbed)


@pytest.mark.parametrize("pages", [1, 2, 3, 4, 5, 6])
def test_a_full_database_stops_the_run_before_an_effect_that_is_not_kept(tmp_path: Path, pages: int) -> None:
    done: list[int] = []

    @tool
    async def pay(amount: int) -> str:
        """Pay."""
        done.append(amount)
        return f"paid {amount} " + "x" * 3000

    store = SqliteStore(tmp_path / "runs.db")
    assert store.runs() == []
    with store.database.reading() as connection:
        connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0] + pages}")
    script = [*[call("pay", amount=amount) for amount in range(6)], call("final_answer", answer="done")]
    with pytest.raises(StoreError, match=r"full.*make room, and resume the run"):
        Agent(ScriptedModel(script), tools=[pay], store=store).run_sync("go")
    kept = SqliteStore(tmp_path / "runs.db")
    intents = [entry for row in kept.runs() for entry in kept.audit(row.run_id) if entry.kind == "intent"]
    assert len(done) == len(intents)


def test_a_database_that_cannot_be_written_is_an_error_that_says_so(zygote: Zygote, tmp_path: Path) -> None:
    folder, says = tmp_path / "closed", tmp_path / "says"
    folder.mkdir()
    says.mkdir()
    says.chmod(0o777)
    SqliteStore(folder / "runs.db").runs()
    (folder / "runs.db").chmod(0o444)
    folder.chmod(0o555)
    parents = [one for one in tmp_path.parents if one.stat().st_uid == os.getuid() and str(one) != "/"]
    modes = [(one, one.stat().st_mode) for one in (tmp_path, *parents)]
    try:
        for one, mode in modes:
            one.chmod(mode | 0o055)
        ended = zygote.run(folder, uid=65534 if os.getuid() == 0 else None, says=str(says))
    finally:
        for one, mode in modes:
            one.chmod(mode)
        folder.chmod(0o755)
    assert "StoreError" in ended.get("error", ""), ended
    assert "have to be writable" in ended["error"]


def test_what_has_no_json_form_is_an_error_and_not_stored(tmp_path: Path) -> None:
    class Careless(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            return replace(await super().complete(request), extra={"signature": object()})

    store = SqliteStore(tmp_path / "runs.db")
    with pytest.raises(StoreError, match="has no JSON form"):
        Agent(Careless([call("final_answer", answer="done")]), store=store).run_sync("go")
    assert [row.status for row in store.runs()] == ["interrupted"]


def test_what_is_no_database_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "runs.db").write_text("this is a letter to my aunt" * 100, encoding="utf-8")
    with pytest.raises(StoreError, match="not a database; it is damaged: restore a copy"):
        SqliteStore(tmp_path / "runs.db").runs()


def test_a_database_of_a_newer_maymust_is_left_alone(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "runs.db").runs()
    with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="layout 99, and this maymust knows up to"):
        SqliteStore(tmp_path / "runs.db").runs()


def frames(wal: bytes) -> list[tuple[int, bool]]:
    """Where the valid frames of a write-ahead log end, and whether each ends a transaction."""
    size, salts = struct.unpack(">I", wal[8:12])[0], wal[16:24]
    found = []
    for start in range(32, len(wal) - 24 - size + 1, 24 + size):
        if wal[start + 8 : start + 16] != salts:
            break
        found.append((start + 24 + size, wal[start + 4 : start + 8] != b"\0\0\0\0"))
    return found


@pytest.mark.parametrize(
    "how", ["half a transaction is missing", "the last transaction is missing", "rubbish at the end", "a bit has flipped"]
)
def test_a_torn_log_is_read_up_to_its_last_whole_transaction(zygote: Zygote, tmp_path: Path, how: str, undisturbed: dict[str, Any]) -> None:
    assert zygote.run(tmp_path, kill={"call_id": "charge2", "point": "after result"})["signal"] == 9
    path = tmp_path / "runs.db-wal"
    wal = path.read_bytes()
    ends = frames(wal)
    commits = [place for place, (_, commit) in enumerate(ends) if commit]
    last = ends[commits[-2]][0]
    if how == "half a transaction is missing":
        wal = wal[: (last + ends[commits[-1]][0]) // 2]
    elif how == "the last transaction is missing":
        wal = wal[:last]
    elif how == "rubbish at the end":
        wal = wal[: ends[-1][0]] + os.urandom(1000)
    else:
        wal = wal[: ends[commits[-1]][0] - 100] + b"\xff\x00" * 50
    path.write_bytes(wal)
    (tmp_path / "runs.db-shm").unlink(missing_ok=True)
    assert not faults(tmp_path, finish(zygote, tmp_path), undisturbed)


def test_a_copy_of_the_files_is_a_copy_of_the_runs(zygote: Zygote, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    assert zygote.run(here, kill={"call_id": "notify1", "point": "after effect"})["signal"] == 9
    shutil.copytree(here, there)
    assert not faults(there, finish(zygote, there), undisturbed)

"""The index beside DBOS's tables: made once however many come at once, made anew when it is gone, and left alone when it is newer."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maymust import Agent, AskPermissionRequirement, tool
from maymust.durable import DbosStore
from maymust.durable.dbos.database import DbosDatabase
from maymust.durable.dbos.process import process_for
from maymust.durable.store import StoreError
from maymust.models import call
from scripts.postgres import Postgres
from tests.cli.commands import command
from tests.durable.world import ByPlace


@tool
def refund(amount: int) -> str:
    """Refund."""
    return f"refunded {amount}"


def desk(store: DbosStore | None, **settings: Any) -> Agent[str]:
    script = (call("refund", call_id="r1", amount=1), call("final_answer", answer="done"))
    return Agent(ByPlace(script), name="desk", tools=[refund], requirements=[AskPermissionRequirement(["refund"])], store=store, **settings)


@pytest.fixture(params=["database", "database_file"])
def store(request: pytest.FixtureRequest) -> Iterator[DbosStore]:
    made = DbosStore(request.getfixturevalue(request.param))
    yield made
    made.close()


def waiting(store: DbosStore) -> str:
    return desk(store).run_sync("go").state.run_id


def test_an_index_that_is_gone_is_made_anew(store: DbosStore) -> None:
    paused, decided, ended, cancelled = (waiting(store) for _ in range(4))
    submitted = store.submit(desk(None), "later", tenant="acme")
    store.decide(decided, {"r1": True}, by="Ada")
    desk(store).resume_sync(ended, {"r1": True})
    store.cancel(cancelled, by="Bob")

    def known() -> tuple[Any, ...]:
        rows = {row.run_id: replace(row, created_at=round(row.created_at), updated_at=0) for row in store.runs()}
        asked = [replace(one, asked_at=0) for one in store.questions(waiting=True)]
        return {key: replace(row, created_at=0) for key, row in rows.items()}, asked

    before = known()
    assert {run_id: row.status for run_id, row in before[0].items()} == {
        paused: "paused",
        decided: "queued",
        ended: "ended",
        cancelled: "cancelled",
        submitted: "queued",
    }
    with store.database.writing() as sql:
        sql.execute("DELETE FROM runs")
        sql.execute("DELETE FROM questions")
    assert store.runs() == []
    assert store.rebuild() == 5
    assert known() == before
    assert desk(store).resume_sync(decided).answer == "done"
    assert desk(store).resume_sync(paused, {"r1": False}).answer == "done"
    assert desk(store).resume_sync(submitted).stop_reason == "paused"


def test_many_that_come_at_once_make_the_tables_once(postgres: Postgres) -> None:
    url = postgres.database("fresh")
    stores = [DbosStore(url) for _ in range(3)]
    threads = [threading.Thread(target=store.runs) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        assert store.runs() == []
        store.close()


def test_a_newer_index_is_left_alone(store: DbosStore) -> None:
    with store.database.writing() as sql:
        sql.execute("UPDATE index_layout SET version = 99")
    store.database.close()
    with pytest.raises(StoreError, match="layout 99, and this maymust knows up to 2"):
        store.runs()


def test_an_index_of_before_messages_takes_messages(store: DbosStore) -> None:
    run_id = waiting(store)
    with store.database.writing() as sql:
        sql.execute("DROP TABLE messages")
        sql.execute("ALTER TABLE runs DROP COLUMN mail")
        sql.execute("UPDATE index_layout SET version = 1")
    store.database.close()
    store.send(run_id, "hurry", by="Ada")
    result = desk(store).resume_sync(run_id, {"r1": True})
    assert [message.text for message in result.messages if message.role == "user"] == ["go", "hurry"]


def test_messages_wait_while_the_index_is_made_anew(store: DbosStore) -> None:
    run_id = waiting(store)
    store.send(run_id, "one")
    assert desk(store).resume_sync(run_id).stop_reason == "paused"
    for _ in range(2):
        # The first time nothing waits, and the numbers go on all the same.
        store.rebuild()
        store.send(run_id, "more")
    assert [message.text for message in store.state(run_id).inbox] == ["one", "more", "more"]
    result = desk(store).resume_sync(run_id, {"r1": True})
    assert [message.text for message in result.messages if message.role == "user"] == ["go", "one", "more", "more"]


def test_a_message_that_is_in_the_run_is_not_read_again_however_its_row_was_left(store: DbosStore) -> None:
    run_id = waiting(store)
    store.send(run_id, "hurry", by="Ada")
    with store.database.reading() as sql:
        kept = sql.execute("SELECT * FROM messages").fetchone().to_dict()
    assert desk(store).resume_sync(run_id).stop_reason == "paused"
    # As a process leaves it that ends between the two writes.
    with store.database.writing() as sql:
        sql.execute(f"INSERT INTO messages({', '.join(kept)}) VALUES(?, ?, ?, ?, ?)", tuple(kept.values()))
    assert len(store.state(run_id).inbox) == 1
    result = desk(store).resume_sync(run_id, {"r1": True})
    assert [message.text for message in result.messages if message.role == "user"] == ["go", "hurry"]


def test_an_address_that_is_none_is_told_without_its_password() -> None:
    for address in ("runs.db", "mysql://me:hush@db/runs", "postgresql://me:hush@db", "sqlite://"):
        with pytest.raises(ValueError, match="give postgresql://") as told:
            DbosStore(address)
        assert "hush" not in str(told.value)
    away = DbosStore("postgresql://me:hush@127.0.0.1:9/runs")
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:9/runs failed") as failed:
        away.runs()
    assert failed.value.away
    assert "hush" not in str(failed.value) + repr(away)


def test_a_process_works_on_one_database_at_a_time(store: DbosStore, made_file: Path, tmp_path: Path) -> None:
    other = DbosStore(f"sqlite:///{tmp_path / 'other.db'}")

    async def scene() -> None:
        run = desk(store).start("go")
        with pytest.raises(StoreError, match="DBOS works on one database in a process"):
            desk(other).start("go")
        await run

    asyncio.run(scene())
    # Nothing is under way any more.
    assert desk(other).run_sync("go").stop_reason == "paused"
    other.close()


def test_a_fork_is_told_that_it_comes_too_late(store: DbosStore) -> None:
    waiting(store)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            try:
                process_for(DbosDatabase(store.database.url), 30)
            except StoreError as fault:
                os.write(writing, str(fault).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        assert b"before this process was forked" in said.read()
    os.waitpid(pid, 0)


def test_the_command_line_knows_addresses(store: DbosStore, tmp_path: Path) -> None:
    run_id = waiting(store)
    address = ("--store", store.database.url)
    assert "paused, 1 waiting" in command(tmp_path, "runs", "list", *address).out
    decided = command(tmp_path, "runs", "decide", *address, run_id[:8], "r1", "yes", "--by", "Ada")
    assert "goes on with a worker" in decided.out
    assert "queued" in command(tmp_path, "runs", "show", *address, run_id[:8]).out
    sent = command(tmp_path, "runs", "send", *address, run_id[:8], "Hurry.", "--by", "Ada")
    assert sent.out == f"run {run_id[:8]} is queued, and reads it when it goes on\n"
    assert command(tmp_path, "runs", "rebuild", *address).out == "1 runs\n"
    assert command(tmp_path, "runs", "cancel", *address, run_id[:8]).code == 0
    assert "cancelled" in command(tmp_path, "runs", "list", *address).out


def test_the_command_line_says_what_is_no_address(tmp_path: Path) -> None:
    for words in (("rebuild",), ("submit", "shop:desk", "go")):
        told = command(tmp_path, "runs", *words, "--store", "runs.db")
        assert told.code == 2
        assert "that is for a DbosStore" in told.err
    told = command(tmp_path, "runs", "list", "--store", "sqlite:///nothing.db")
    assert (told.code, "there is no store" in told.err) == (2, True)
    told = command(tmp_path, "runs", "list", "--store", "mysql://me@db/runs")
    assert (told.code, "give postgresql://" in told.err) == (2, True)

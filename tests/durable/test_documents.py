"""What is read back is what was written, event by event, in as many rows as have changed."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from maymust import Agent, Budget, SqliteStore, tool
from maymust.agent.compaction import ShortenOutputs
from maymust.durable import blobs
from maymust.durable.blobs import LONG
from maymust.durable.migrations import LAYOUT
from maymust.models import ScriptedModel, call
from tests.durable.world import Deps, KillPlan, Oracle, agent


@tool(effect="read", repeatable=True)
def read(name: str) -> dict[str, Any]:
    """Read something long."""
    return {"name": name, "text": "all work and no play " * 200, "$blob": "none of ours"}


def checked(run: Any, store: SqliteStore) -> list[int]:
    """Compare what is stored with the state after every event; the list grows with each comparison."""
    journal, compared = run._session._journal, []
    whole = journal._keep

    def keep(new: Any, event: Any) -> None:
        whole(new, event)
        assert store.state(run.id).to_dict() == new.to_dict()
        compared.append(1)

    journal._keep = keep
    return compared


def test_the_store_holds_the_state_after_every_event(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    deps = Deps(Oracle(tmp_path / "oracle"), KillPlan())

    async def main() -> None:
        run = agent(store).start("go", deps=deps)
        compared = checked(run, store)
        result = await run
        assert result.stop_reason == "paused"
        run = agent(store).start_resume(run.id, {"refund1": True}, deps=deps)
        compared += checked(run, store)
        assert (await run).answer == "done"
        assert len(compared) > 15
        assert store.state(run.id).to_dict() == run.state.to_dict()

    asyncio.run(main())


def test_a_conversation_that_is_compacted_is_written_anew(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    script = [*[call("read", name=str(number)) for number in range(8)], call("final_answer", answer="done")]

    async def main() -> None:
        model, short = ScriptedModel(script), ShortenOutputs(limit=2_000)
        run = Agent(model, tools=[read], compaction=short, budget=Budget(turns=None), store=store).start("go")
        compared = checked(run, store)
        result = await run
        assert compared
        assert result.state.compacted
        assert store.state(run.id).to_dict() == result.state.to_dict()

    asyncio.run(main())


def test_a_long_text_is_kept_once_however_often_it_is_said(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    for _ in range(3):
        script = [*[call("read", name="a") for _ in range(3)], call("final_answer", answer="done")]
        result = Agent(ScriptedModel(script), tools=[read], loop_guard=None, store=store).run_sync("go")
        assert store.state(result.state.run_id).to_dict() == result.state.to_dict()
    with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        # The text of the output, and the text that the model reads.
        assert connection.execute("SELECT count(*) FROM blobs").fetchone() == (2,)
    for left, row in zip((2, 2, 0), store.runs(), strict=True):
        store.delete(row.run_id)
        with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
            assert connection.execute("SELECT count(*) FROM blobs").fetchone() == (left,)
            tables = ("runs", "states", "items", "audit", "questions", "blob_uses")
            assert all(
                connection.execute(f"SELECT count(*) FROM {name} WHERE run_id = ?", (row.run_id,)).fetchone() == (0,) for name in tables
            )


@pytest.mark.parametrize(
    "value",
    [
        "x" * LONG,
        {"$blob": "x" * LONG},
        {"$blob": "short", "more": "y" * LONG},
        {"$plain": {"$blob": "z" * LONG}},
        [{"$blob": 1}, "\ud800" + "x" * LONG, {"a": {"$plain": None}, "long": "x" * LONG}],
        {"$blob": {"$blob": {"$plain": ["x" * LONG]}}},
    ],
)
def test_whatever_a_value_looks_like_it_is_read_back_as_it_was(value: Any) -> None:
    texts: dict[str, str] = {}
    written = blobs.dumps(value, texts)
    assert len(written) < LONG
    connection = sqlite3.connect(":memory:")
    for statements in LAYOUT:
        for statement in statements:
            connection.execute(statement)
    blobs.keep(connection, "run", texts)
    assert blobs.loads(written, connection) == value
    connection.close()


def test_a_text_without_utf8_form_is_stored_all_the_same(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    result = Agent(ScriptedModel([call("final_answer", answer="half \ud83d a smile")]), store=store).run_sync("half \ud83d of one")
    assert store.run(result.state.run_id).status == "ended"
    assert store.state(result.state.run_id).to_dict() == result.state.to_dict()


def test_rows_written_do_not_grow_with_the_run(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    changes: list[int] = []

    async def main() -> None:
        script = [*[call("read", name="a") for _ in range(60)], call("final_answer", answer="done")]
        run = Agent(ScriptedModel(script), tools=[read], loop_guard=None, budget=Budget(turns=None), store=store).start("go")
        journal: Any = run._session._journal
        whole = journal._keep

        def keep(new: Any, event: Any) -> None:
            with store.database.reading() as connection:
                before = connection.total_changes
                whole(new, event)
                changes.append(connection.total_changes - before)

        journal._keep = keep
        await run

    asyncio.run(main())
    assert max(changes[100:]) <= max(changes[:50])


def test_without_a_store_nothing_of_stores_is_loaded() -> None:
    code = """
import sys
from maymust import Agent
from maymust.models import ScriptedModel, call
assert Agent(ScriptedModel([call("final_answer", answer="done")])).run_sync("go").answer == "done"
print([name for name in sys.modules if name.startswith("maymust.durable") or name == "sqlite3"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

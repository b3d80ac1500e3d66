"""A message to a run at work comes to it once, wherever its process is killed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from maymust import SqliteStore
from maymust.durable.store import RunTakenError
from tests.durable.dbos.shifts import agent_called, until
from tests.durable.stores import AnyStore, store_of
from tests.durable.world import Deps, KillPlan, Oracle
from tests.durable.zygote import Zygote

POINTS = ("before it is kept", "after it is kept")


def check_message(zygote: Zygote, folder: Path, point: str) -> None:
    """Say something to a run whose process ends there, and go on with it."""
    pid = zygote.spawn(folder, agent="lingerer", kill={"call_id": "message", "point": point})
    until(lambda: Oracle(folder / "oracle").effects == ["l1"])
    with store_of(folder) as store:
        (row,) = store.runs()
        assert row.status == "running"
        store.send(row.run_id, "hurry", by="Ada")
        assert zygote.wait(pid)["signal"] == 9
        ended = zygote.run(folder, agent="lingerer", run_id=row.run_id)
        assert ended.get("stop_reason") == "final_answer", ended
        was_read_once(store, row.run_id)


def was_read_once(store: AnyStore, run_id: str) -> None:
    """The message is behind the result of the call that it came in."""
    state = store.state(run_id)
    assert [(message.role, message.text) for message in state.messages][2:4] == [("tool", "lingered"), ("user", "hurry")]
    assert sum(message.text == "hurry" for message in (*state.messages, *state.inbox)) == 1
    told = [(entry.kind, entry.by) for entry in store.audit(run_id) if entry.kind in ("message", "received", "not read")]
    assert told == [("message", "Ada"), ("received", None)]


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_no_message_and_repeats_none(zygote: Zygote, tmp_path: Path, point: str) -> None:
    check_message(zygote, tmp_path, point)


def check_message_between(zygote: Zygote, folder: Path) -> None:
    """Say something to a run whose process has ended before a model call."""
    assert zygote.run(folder, kill={"call_id": "charge1", "point": "after result"})["signal"] == 9
    with store_of(folder) as store:
        (row,) = store.runs()
        store.send(row.run_id, "hurry")
        assert zygote.run(folder, run_id=row.run_id)["stop_reason"] == "paused"
        # The model call that is made anew has it already.
        messages = store.state(row.run_id).messages
        assert [message.role for message in messages][:5] == ["user", "assistant", "tool", "user", "assistant"]
        assert messages[3].text == "hurry"


def test_a_message_to_a_run_whose_process_is_gone_is_read_at_once_when_it_goes_on(zygote: Zygote, tmp_path: Path) -> None:
    check_message_between(zygote, tmp_path)


def test_a_message_that_cannot_be_kept_breaks_the_run_off_and_stays_in_the_store(tmp_path: Path) -> None:
    store, oracle = SqliteStore(tmp_path / "runs.db"), Oracle(tmp_path / "oracle")
    agent = agent_called("lingerer")
    agent.store = store

    async def scene() -> str:
        run = agent.start("go", deps=Deps(oracle, KillPlan()))
        while not oracle.effects:
            await asyncio.sleep(0.01)
        with store.database.writing() as connection:
            # As another process does that finds the lease run out.
            connection.execute("UPDATE runs SET seq = seq + 1 WHERE run_id = ?", (run.id,))
        store.send(run.id, "hurry")
        with pytest.raises(RunTakenError, match="is not this process's any more") as told:
            await asyncio.wait_for(run, 10)
        assert told.value.state is not None
        return run.id

    run_id = asyncio.run(scene())
    assert [message.text for message in store.state(run_id).inbox] == ["hurry"]
    store.close()

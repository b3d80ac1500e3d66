"""One process at a time works on a run: a second one is told, and one that was away for too long can do no harm."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from maymust import Agent, Happened, RunError, SqliteStore, tool
from maymust.durable.store import RunTakenError
from maymust.models import ScriptedModel, call
from tests.durable.person import faults, finish
from tests.durable.world import Oracle
from tests.durable.zygote import Zygote

LEASE = 0.6


def spawn_and_stop(zygote: Zygote, folder: Path, point: str, lease: float) -> tuple[int, str]:
    """A process that is stopped (SIGSTOP) at this point of its first charge; gives its id and the run's."""
    pid = zygote.spawn(folder, lease=lease, kill={"call_id": "charge1", "point": point, "how": signal.SIGSTOP})
    end = time.monotonic() + 20
    while Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < end
        time.sleep(0.01)
    (row,) = SqliteStore(folder / "runs.db").runs()
    assert row.status == "running"
    assert row.pid == pid
    return pid, row.run_id


@pytest.mark.parametrize("point", ["before intent", "before effect", "after effect"])
def test_a_zombie_that_wakes_up_finds_its_run_with_others(zygote: Zygote, tmp_path: Path, point: str, undisturbed: dict[str, Any]) -> None:
    pid, run_id = spawn_and_stop(zygote, tmp_path, point, LEASE)
    oracle = Oracle(tmp_path / "oracle")
    time.sleep(LEASE + 0.2)
    store = SqliteStore(tmp_path / "runs.db")
    assert zygote.run(tmp_path, run_id=run_id)["stop_reason"] == "paused"
    if point != "before intent":
        (asked,) = store.questions(run_id)
        assert asked.interrupted
        # The zombie may still do it, so a person who cannot look must not say that it be done again.
        store.decide(run_id, {"charge1": Happened({"charged": 1}) if point == "after effect" else False}, by="Ada")
        assert zygote.run(tmp_path, run_id=run_id)["stop_reason"] == "paused"
    before = store.state(run_id).to_dict()
    os.kill(pid, signal.SIGCONT)
    ended = zygote.wait(pid)
    assert "RunTakenError" in ended["error"]
    assert "another process went on with it" in ended["error"]
    assert store.state(run_id).to_dict() == before
    finish(zygote, tmp_path)
    found = faults(tmp_path, run_id, undisturbed)
    if point == "before effect":
        assert oracle.effects.count("charge1") == 1
        assert "may have taken effect; Ada decided not to repeat it" in (store.state(run_id).steps[0].text or "")
    else:
        assert not found


def test_a_second_process_is_told_who_has_the_run(zygote: Zygote, tmp_path: Path) -> None:
    pid, run_id = spawn_and_stop(zygote, tmp_path, "before effect", 30.0)
    second = zygote.run(tmp_path, run_id=run_id)
    assert f"run {run_id} is being worked on by process {pid}" in second["error"]
    assert "one process at a time" in second["error"]
    os.kill(pid, signal.SIGKILL)
    assert zygote.wait(pid)["signal"] == signal.SIGKILL
    # It has ended, so there is nothing to wait for.
    assert zygote.run(tmp_path, run_id=run_id)["stop_reason"] == "paused"


def test_two_processes_that_go_on_with_a_run_at_once_do_it_once(zygote: Zygote, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    assert zygote.run(tmp_path)["stop_reason"] == "paused"
    store = SqliteStore(tmp_path / "runs.db")
    (row,) = store.runs()
    store.decide(row.run_id, {"refund1": True})
    pids = [zygote.spawn(tmp_path, run_id=row.run_id) for _ in range(4)]
    for ended in map(zygote.wait, pids):
        assert ended.get("stop_reason") == "final_answer" or "RunTakenError" in ended["error"]
    assert not faults(tmp_path, row.run_id, undisturbed)


def test_a_process_of_another_container_or_host_is_believed_until_its_lease_runs_out(tmp_path: Path) -> None:
    async def main() -> None:
        agent = Agent(ScriptedModel(SLOW), tools=[slow], store=SqliteStore(tmp_path / "runs.db"))
        run = agent.start("go")
        for column, value in (("born", "pid:[1] 42"), ("host", "elsewhere")):
            with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
                connection.execute(f"UPDATE runs SET {column} = ?, pid = 999999", (value,))
            with pytest.raises(RunTakenError, match="process 999999"):
                await agent.resume(run.id)
        late = SqliteStore(tmp_path / "runs.db", clock=lambda: time.time() + 31)
        late.claim(run.id, {}).journal.release()
        with pytest.raises(RunTakenError, match="not this process's any more"):
            await run

    asyncio.run(main())


def test_without_an_event_loop_no_run_is_begun(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    with pytest.raises(RuntimeError):
        Agent(ScriptedModel(SLOW), tools=[slow], store=store).start("go")
    assert store.runs() == []


@tool
async def slow() -> str:
    """Take a while."""
    await asyncio.sleep(0.5)
    return "done"


SLOW: tuple[Any, ...] = (call("slow"), call("final_answer", answer="done"))


def test_the_same_process_claims_a_run_once(tmp_path: Path) -> None:
    async def main() -> None:
        agent = Agent(ScriptedModel(SLOW), tools=[slow], store=SqliteStore(tmp_path / "runs.db"))
        run = agent.start("go")
        await asyncio.sleep(0.1)
        with pytest.raises(RunTakenError, match="this very process"):
            await agent.resume(run.id)
        assert (await run).answer == "done"

    asyncio.run(main())


def test_a_run_that_is_busy_for_longer_than_its_lease_keeps_it(tmp_path: Path) -> None:
    @tool
    async def block() -> str:
        """Block the event loop."""
        time.sleep(1.0)
        return "done"

    store = SqliteStore(tmp_path / "runs.db", lease=0.4)
    result = Agent(ScriptedModel([call("block"), call("final_answer", answer="done")]), tools=[block], store=store).run_sync("go")
    assert result.answer == "done"


def test_a_process_that_wakes_up_between_intent_and_effect_does_not_begin(tmp_path: Path) -> None:
    done: list[str] = []

    @tool
    async def pay() -> str:
        """Pay."""
        done.append("paid")
        return "paid"

    late = [0.0]
    store = SqliteStore(tmp_path / "runs.db", clock=lambda: time.time() + late[0])
    other = SqliteStore(tmp_path / "runs.db", clock=lambda: time.time() + 3600)

    async def main() -> None:
        run = agent.start("go")
        journal: Any = run._session._journal
        whole = journal._keep

        def slept(new: Any, event: Any) -> None:
            whole(new, event)
            if type(event).__name__ == "ToolStarted":
                # The process sleeps for an hour here, and another one takes the run.
                late[0] = 3600
                other.claim(run.id, {})

        journal._keep = slept
        with pytest.raises(RunTakenError, match="not this process's any more"):
            await run

    agent = Agent(ScriptedModel([call("pay")]), tools=[pay], store=store)
    asyncio.run(main())
    assert not done


def test_a_run_can_be_cancelled_from_another_process(tmp_path: Path) -> None:
    async def main() -> None:
        agent = Agent(ScriptedModel([call("slow")] * 50), tools=[slow], store=SqliteStore(tmp_path / "runs.db"))
        run = agent.start("go")
        await asyncio.sleep(0.1)
        other = SqliteStore(tmp_path / "runs.db")
        other.cancel(run.id, by="Eve")
        async with asyncio.timeout(5):
            result = await run
        assert result.stop_reason == "aborted"
        assert other.run(run.id).status == "cancelled"
        with pytest.raises(RunError, match="was cancelled by Eve"):
            await agent.resume(run.id)

    asyncio.run(main())


def test_a_run_stopped_in_its_own_process_can_be_resumed(tmp_path: Path) -> None:
    async def main() -> None:
        agent = Agent(
            ScriptedModel([call("slow"), call("final_answer", answer="done")]), tools=[slow], store=SqliteStore(tmp_path / "runs.db")
        )
        run = agent.start("go")
        await asyncio.sleep(0.1)
        run.cancel()
        assert (await run).stop_reason == "aborted"
        assert (await agent.resume(run.id)).answer == "done"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("call_id", "point"),
    [
        ("charge1", "before intent"),
        ("charge1", "after effect"),
        ("charge2", "after result"),
        ("notify1", "after intent"),
        ("refund1", "paused"),
    ],
)
def test_a_run_can_be_cancelled_wherever_it_was_left_without_its_agent(zygote: Zygote, tmp_path: Path, call_id: str, point: str) -> None:
    ended = zygote.run(tmp_path, kill={"call_id": call_id, "point": point})
    assert ended["signal"] == 9 or ended["stop_reason"] == "paused"
    store = SqliteStore(tmp_path / "runs.db")
    (row,) = store.runs()
    store.cancel(row.run_id, by="Eve")
    state = store.state(row.run_id)
    assert (store.run(row.run_id).status, state.phase, state.calls) == ("cancelled", "ended", ())
    assert {call.call_id for message in state.messages for call in message.calls} == {step.call_id for step in state.steps}
    if point in ("after effect", "after intent"):
        assert (str(state.steps[-1].outcome), "may still have taken effect" in (state.steps[-1].text or "")) == ("failed", True)
    assert store.questions() == []
    assert "was cancelled by Eve" in zygote.run(tmp_path, run_id=row.run_id)["error"]


def test_many_runs_share_a_store(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        agents = [Agent(ScriptedModel(SLOW), tools=[slow], store=store) for _ in range(20)]
        results = await asyncio.gather(*[agent.run(str(number)) for number, agent in enumerate(agents)])
        assert {result.answer for result in results} == {"done"}
        assert [row.status for row in store.runs()] == ["ended"] * 20
        assert store._renewal.of_run(results[0].state.run_id) is None

    asyncio.run(main())


def test_processes_that_make_the_file_at_once_all_use_it(zygote: Zygote, tmp_path: Path) -> None:
    pids = [zygote.spawn(tmp_path) for _ in range(6)]
    assert [zygote.wait(pid).get("stop_reason") for pid in pids] == ["paused"] * 6
    assert [row.status for row in SqliteStore(tmp_path / "runs.db").runs()] == ["paused"] * 6

"""Workers come and go, and so does Postgres: every run ends, and nothing comes twice."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maymust.durable import DbosStore
from maymust.durable.dbos.database import DbosDatabase
from maymust.durable.dbos.process import Process
from maymust.durable.dbos.reaper import sweep
from maymust.durable.store import DecisionError
from scripts.postgres import Postgres
from tests.durable.dbos.shifts import LEASE, Shift, agent_called, attend, double, until
from tests.durable.test_messages import POINTS, was_read_once
from tests.durable.world import EFFECTS, Oracle, record
from tests.durable.zygote import Zygote


@pytest.fixture
def shift(zygote: Zygote, tmp_path: Path) -> Iterator[Shift]:
    made = Shift(zygote, tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(database: str) -> Iterator[DbosStore]:
    made = DbosStore(database, lease=LEASE)
    yield made
    made.close()


@pytest.fixture
def oracle(tmp_path: Path) -> Oracle:
    return Oracle(tmp_path / "oracle")


def submit(store: DbosStore, name: str, count: int = 1, **settings: Any) -> list[str]:
    return [store.submit(agent_called(name), "go", **settings) for _ in range(count)]


def test_two_of_three_workers_are_killed_and_all_runs_finish(
    shift: Shift, store: DbosStore, oracle: Oracle, undisturbed: dict[str, Any]
) -> None:
    run_ids = submit(store, "shop", 8)
    first, second, _ = shift.begin("shop", count=3)
    until(lambda: len(oracle.effects) > 5)
    shift.end(first, signal.SIGKILL)
    until(lambda: len(oracle.effects) > 15)
    shift.end(second, signal.SIGKILL)
    attend(store, oracle, run_ids)
    assert not list(double(oracle))
    done = Counter(oracle.effects)
    assert all(done[effect] >= 8 if effect == "look1" else done[effect] == 8 for effect in EFFECTS), done
    for run_id in run_ids:
        assert record(store.state(run_id)) == undisturbed


@pytest.mark.parametrize("point", ["before intent", "before effect", "after effect"])
def test_a_worker_that_was_away_finds_its_run_with_others(
    shift: Shift, store: DbosStore, oracle: Oracle, undisturbed: dict[str, Any], point: str
) -> None:
    (run_id,) = submit(store, "shop")
    (zombie,) = shift.begin("shop", kill={"call_id": "charge1", "point": point, "how": signal.SIGSTOP})
    until(lambda: Path(f"/proc/{zombie}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T")
    assert store.run(run_id).pid == zombie
    shift.begin("shop")
    # The other one recovers the run, and asks where it cannot know; nobody answers yes while the zombie may still do it.
    until(lambda: len(store.questions(run_id)) == 1)
    (asked,) = store.questions(run_id)
    assert asked.interrupted == (point != "before intent")
    if point == "before effect":
        # What is about to be done in another process cannot be called back; a person who cannot look must not say that it be done again.
        store.decide(run_id, {"charge1": False}, by="Ada")
    os.kill(zombie, signal.SIGCONT)
    attend(store, oracle, [run_id])
    until(lambda: "charge1" in oracle.effects)
    assert not list(double(oracle))
    if point != "before effect":
        assert record(store.state(run_id)) == undisturbed
    # It is a worker like any other again.
    (later,) = submit(store, "shop")
    attend(store, oracle, [later])


def test_two_reapers_at_once_recover_a_run_once(shift: Shift, store: DbosStore, database: str, oracle: Oracle) -> None:
    run_ids = submit(store, "worker 40", 3)
    (worker,) = shift.begin("worker 40")
    until(lambda: len(oracle.effects) > 3)
    shift.end(worker, signal.SIGKILL)
    reapers = [(DbosStore(database, lease=LEASE), Process(DbosDatabase(database), LEASE)) for _ in range(4)]
    start, recovered = threading.Barrier(4), []

    def reap(place: int) -> None:
        start.wait()
        recovered.append(sweep(*reapers[place]))

    threads = [threading.Thread(target=reap, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for made, process in reapers:
        made.close()
        process.database.close()
    assert sorted(recovered) == [0, 0, 0, 3]
    assert sum(entry.kind == "recovered" for run_id in run_ids for entry in store.audit(run_id)) == 3
    assert {store.run(run_id).status for run_id in run_ids} == {"queued"}


def test_postgres_crashes_three_times_under_a_worker(shift: Shift, store: DbosStore, oracle: Oracle, postgres: Postgres) -> None:
    run_ids = submit(store, "worker 25", 4)
    shift.begin("worker 25")
    for crash in range(1, 4):
        until(lambda wanted=crash * 10: len(oracle.effects) > wanted)
        postgres.crash()
        time.sleep(0.3)
        postgres.start()
    for run_id in run_ids:
        assert store.wait(run_id, 60).answer == "done"
    assert not list(double(oracle))
    assert len(oracle.effects) == 4 * 25


def test_a_decision_waits_for_a_worker_to_come(shift: Shift, store: DbosStore, oracle: Oracle) -> None:
    (run_id,) = submit(store, "signer 1")
    assert store.run(run_id).status == "queued"
    (worker,) = shift.begin("signer 1")
    assert store.wait(run_id, 30).status == "paused"
    assert shift.end(worker)["signal"] == 0
    store.decide(run_id, {"s1": True}, by="Ada")
    assert store.run(run_id).status == "queued"
    with pytest.raises(DecisionError, match="Ada decided yes"):
        store.decide(run_id, {"s1": False}, by="Bob")
    shift.begin("signer 1")
    assert store.wait(run_id, 30).answer == "done"
    assert oracle.effects == ["s1"]


def test_runs_that_wait_survive_an_upgrade_of_the_workers(shift: Shift, store: DbosStore) -> None:
    first, second, third = submit(store, "signer 1", 3)
    (old,) = shift.begin("signer 1")
    assert {store.wait(run_id, 30).status for run_id in (first, second, third)} == {"paused"}
    shift.end(old)
    store.decide(first, {"s1": True})
    (new,) = shift.begin("signer 2")
    assert store.wait(first, 30).answer == "done"
    assert store.state(first).steps[0].text == "signed it in a better way"
    shift.end(new)
    # Another policy is another matter: it is said, and nothing is lost.
    store.decide(second, {"s1": True})
    (strict,) = shift.begin("signer 3")
    row = store.wait(second, 30)
    assert row.status == "stopped"
    assert "was started under another policy" in str(row.error)
    shift.end(strict)
    shift.begin("signer 3", allow_policy_change=True)
    store.requeue(second, by="Ada")
    assert store.wait(second, 30).answer == "done"
    store.decide(third, {"s1": False})
    assert store.wait(third, 30).answer == "done"


def test_a_run_with_a_worker_is_cancelled_from_anywhere(shift: Shift, store: DbosStore, oracle: Oracle) -> None:
    (run_id,) = submit(store, "lingerer")
    shift.begin("lingerer")
    until(lambda: oracle.effects == ["l1"])
    store.cancel(run_id, by="Ada")
    until(lambda: store.run(run_id).status == "cancelled", 10)
    assert store.state(run_id).stop_reason == "aborted"


@pytest.mark.parametrize("point", POINTS)
def test_a_message_comes_once_to_the_run_of_a_worker_that_is_killed(shift: Shift, store: DbosStore, oracle: Oracle, point: str) -> None:
    (run_id,) = submit(store, "lingerer")
    shift.begin("lingerer", kill={"call_id": "message", "point": point})
    until(lambda: oracle.effects == ["l1"])
    store.send(run_id, "hurry", by="Ada")
    until(lambda: store.run(run_id).status != "running")
    shift.begin("lingerer")
    assert store.wait(run_id, 30).answer == "done"
    was_read_once(store, run_id)


def test_a_message_is_not_a_decision_and_waits_for_it(shift: Shift, store: DbosStore) -> None:
    (run_id,) = submit(store, "signer 1")
    store.send(run_id, "before it began")
    shift.begin("signer 1")
    segment = store.wait(run_id, 30).seq
    store.send(run_id, "while it waits")
    time.sleep(0.5)
    row = store.run(run_id)
    assert (row.status, row.seq) == ("paused", segment)
    store.decide(run_id, {"s1": True})
    assert store.wait(run_id, 30).answer == "done"
    said = [(message.role, message.text) for message in store.state(run_id).messages]
    assert said[:2] == [("user", "go"), ("user", "before it began")]
    assert said[3:5] == [("tool", "signed it"), ("user", "while it waits")]


def test_a_worker_that_is_asked_to_end_leaves_its_runs_to_others_at_once(shift: Shift, store: DbosStore, oracle: Oracle) -> None:
    (run_id,) = submit(store, "lingerer")
    (leaving,) = shift.begin("lingerer", grace=0)
    until(lambda: oracle.effects == ["l1"])
    shift.begin("lingerer")
    assert shift.end(leaving)["signal"] == 0
    assert store.wait(run_id, 20).answer == "done"
    assert oracle.effects == ["l1", "l1"]


def test_limits_hold_for_all_workers_together(shift: Shift, store: DbosStore, tmp_path: Path) -> None:
    many = [*submit(store, "worker 4", 4, tenant="a"), *submit(store, "worker 4", 2, tenant="b")]
    shift.begin("worker 4", count=2, tenant_limit=1)
    most: Counter[str] = Counter()
    tenants = dict.fromkeys(many[:4], "a") | dict.fromkeys(many[4:], "b")
    while any(store.run(run_id).status != "ended" for run_id in many):
        with store.database.reading() as sql:
            rows = sql.execute("SELECT workflow_uuid FROM workflow_status WHERE status = 'PENDING'").fetchall()
        for tenant, now in Counter(tenants[row[0].rpartition(":")[0]] for row in rows).items():
            most[tenant] = max(most[tenant], now)
        time.sleep(0.02)
    assert most == {"a": 1, "b": 1}


def test_a_long_run_is_several_segments(shift: Shift, store: DbosStore, oracle: Oracle) -> None:
    (run_id,) = submit(store, "worker 60")
    shift.begin("worker 60")
    row = store.wait(run_id, 60)
    assert (row.answer, row.seq) == ("done", 1)
    assert len(store.state(run_id).steps) == 61
    assert len(oracle.effects) == 60
    assert not list(double(oracle))


def test_a_question_is_answered_by_time_and_the_run_goes_on(shift: Shift, database: str) -> None:
    store = DbosStore(database, question_timeout=0.3)
    (run_id,) = submit(store, "signer 1")
    shift.begin("signer 1")
    assert store.wait(run_id, 30).status == "paused"
    until(lambda: store.run(run_id).status == "ended")
    assert "nobody answered within 0.3 seconds" in str(store.state(run_id).steps[0].text)
    store.close()


def test_a_run_that_its_own_process_has_left_goes_on_with_a_worker(
    shift: Shift, store: DbosStore, oracle: Oracle, zygote: Zygote, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    assert zygote.run(tmp_path, kill={"call_id": "charge1", "point": "after effect"})["signal"] == signal.SIGKILL
    (row,) = store.runs()
    assert row.status == "interrupted"
    shift.begin("shop")
    attend(store, oracle, [row.run_id])
    assert not list(double(oracle))
    assert record(store.state(row.run_id)) == undisturbed


def test_workers_work_on_a_file_too(zygote: Zygote, tmp_path: Path, database_file: str, oracle: Oracle) -> None:
    shift, store = Shift(zygote, tmp_path), DbosStore(database_file, lease=LEASE)
    run_ids = submit(store, "signer 1", 2)
    first, _ = shift.begin("signer 1", count=2)
    until(lambda: len(store.questions()) == 2)
    shift.end(first, signal.SIGKILL)
    attend(store, oracle, run_ids)
    assert sorted(oracle.effects) == ["s1", "s1"]
    shift.close()
    store.close()

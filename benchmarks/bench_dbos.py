"""What a step costs on DBOS and Postgres, what it writes, and how many steps a second 1, 2 and 4 workers do.

    python -m benchmarks.bench_dbos [URL]

Without the address of a Postgres of yours a private one is started (scripts/postgres.py), with its durability as it comes: a commit waits
for the disk of the temporary folder. Workers are processes of this machine, so more of them than processors do not help here.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg

from maymust import Agent, Budget, tool
from maymust.durable import DbosStore
from maymust.durable.dbos.worker import DbosWorker
from maymust.models import Capabilities, ScriptedModel, call
from maymust.models.chat_model import ModelDelta, ModelReply, ModelRequest
from scripts.postgres import NoPostgresError, Postgres, install

STEPS = 100
RUNS = 12
RUN_STEPS = 20
WORKERS = (1, 2, 4)


@tool(repeatable=True)
async def work(number: int) -> str:
    """Do a piece of work."""
    return f"done {number}"


class Worker:
    """A model that asks for so many steps, then answers. It looks into the conversation, so that any process can go on."""

    name = "worker"
    capabilities = Capabilities()

    def __init__(self, steps: int) -> None:
        self._steps = steps

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One more step."""
        place = sum(message.role == "assistant" for message in request.messages)
        turn = call("work", number=place) if place < self._steps else call("final_answer", answer="done")
        return await ScriptedModel([turn]).complete(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        """The same."""
        yield await self.complete(request)


def agent(steps: int, store: DbosStore | None = None) -> Agent[str]:
    """The agent that is measured."""
    return Agent(Worker(steps), name="bench", tools=[work], budget=Budget(turns=None), loop_guard=None, store=store)


@contextlib.contextmanager
def database() -> Iterator[str]:
    """The address of an empty database."""
    if len(sys.argv) > 1:
        yield sys.argv[1]
        return
    install()
    # As root the server is another user, who has to get in.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with Postgres(Path(folder) / "postgres", settings={}) as server:
            yield server.database("bench")


def counted(store: DbosStore) -> dict[str, float]:
    """What Postgres has done so far: commits, and bytes of its log."""
    with store.database.reading() as sql:
        commits = sql.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()").fetchone()[0]
        log = sql.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").fetchone()[0]
        flushes = sql.execute("SELECT wal_sync FROM pg_stat_wal").fetchone()[0]
        rows = sql.execute("SELECT sum(n_tup_ins), sum(n_tup_upd) FROM pg_stat_user_tables").fetchone()
    found = {"commits": commits, "log bytes": log, "log flushes": flushes, "rows inserted": rows[0], "rows updated": rows[1]}
    return {name: float(number or 0) for name, number in found.items()}


def of_a_step(url: str) -> None:
    """One run in this process."""
    bare = agent(STEPS)
    bare.run_sync("go")
    start, used = time.perf_counter(), time.process_time()
    bare.run_sync("go")
    without = (time.perf_counter() - start, time.process_time() - used)
    store = DbosStore(url)
    agent(2, store).run_sync("go")
    time.sleep(1.5)
    idle, since = counted(store), time.monotonic()
    time.sleep(5)
    before, began = counted(store), time.monotonic()
    start, used = time.perf_counter(), time.process_time()
    agent(STEPS, store).run_sync("go")
    wall, cpu = time.perf_counter() - start - without[0], time.process_time() - used - without[1]
    time.sleep(1.5)
    after, ended = counted(store), time.monotonic()
    store.close()
    print(f"a step (once) costs {wall / STEPS * 1e3:.1f} ms on the clock, of that {cpu / STEPS * 1e3:.1f} ms of the processor here")
    own = {name: (before[name] - idle[name]) / (began - since) * (ended - began) for name in before}
    print("a step is, for Postgres: " + ", ".join(f"{(after[name] - before[name] - own[name]) / STEPS:.1f} {name}" for name in before))


def of_bare_postgres(url: str) -> float:
    """Milliseconds of two transactions such as a step has, by the driver alone: what this machine takes, whoever writes."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE bare(id SERIAL PRIMARY KEY, data TEXT)")
        start = time.perf_counter()
        for _ in range(2 * STEPS):
            with connection.transaction():
                connection.execute("SELECT max(id) FROM bare")
                connection.execute("INSERT INTO bare(data) VALUES(%s)", ("x" * 1000,))
        return (time.perf_counter() - start) / STEPS * 1e3


def _work(url: str, ready: Any, done: Any) -> None:
    store = DbosStore(url)
    worker = DbosWorker(store, [agent(RUN_STEPS)], concurrency=6, poll=0.1)
    worker.start()
    ready.release()
    done.wait()
    worker.stop()
    store.close()


def steps_a_second(url: str, workers: int) -> float:
    """Runs given to so many workers."""
    context = multiprocessing.get_context("spawn")
    ready, done = context.Semaphore(0), context.Event()
    processes = [context.Process(target=_work, args=(url, ready, done)) for _ in range(workers)]
    for process in processes:
        process.start()
    for _ in processes:
        ready.acquire()
    store = DbosStore(url)
    start = time.perf_counter()
    runs = [store.submit(agent(RUN_STEPS), "go") for _ in range(RUNS)]
    for run_id in runs:
        assert store.wait(run_id, 300).answer == "done"
    seconds = time.perf_counter() - start
    done.set()
    for process in processes:
        process.join()
    store.close()
    return RUNS * (RUN_STEPS + 1) / seconds


def of_waiting(url: str, seconds: float = 10.0) -> None:
    """A worker that has nothing to do."""
    store = DbosStore(url)
    worker = DbosWorker(store, [agent(1)], concurrency=10)
    worker.start()
    time.sleep(2)
    before = counted(store)
    time.sleep(seconds)
    after = counted(store)
    with store.database.reading() as sql:
        connections = sql.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()").fetchone()[0]
    worker.stop()
    store.close()
    rates = ", ".join(f"{(after[name] - before[name]) / seconds:.1f} {name}" for name in ("commits", "log bytes", "log flushes"))
    print(f"an idle worker, a second: {rates}; it has {connections} connections, this one included")


def main() -> None:
    """Print the figures."""
    try:
        with database() as url:
            print(f"{os.cpu_count()} processors")
            of_a_step(url)
            print(f"two bare transactions: {of_bare_postgres(url):.1f} ms")
            of_waiting(url)
            for workers in WORKERS:
                print(f"{workers} workers: {steps_a_second(url, workers):.0f} steps a second")
    except NoPostgresError as fault:
        print(f"not measured: {fault}")


if __name__ == "__main__":
    main()

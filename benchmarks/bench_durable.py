"""What keeping a run costs: a run whose every step has an effect that must not come twice, in memory and in a store.

    python -m benchmarks.bench_durable [FOLDER ...]

A step is three writes: the model's reply, the intent, the result. Two of them wait for the disk, so the same is measured for a bare
SQLite database with two such transactions a step: that is what the disk takes, whoever writes. The target of 1 ms a step is for a disk
that makes something durable in less than 0.2 ms (/dev/shm stands for one); elsewhere the disk decides, see "bare SQLite".
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from maymust import Agent, Budget, SqliteStore, tool
from maymust.models import Capabilities, ScriptedModel, call
from maymust.models.chat_model import ModelDelta, ModelReply, ModelRequest

STEPS = 200
REPEATS = 5
TARGET = 1.0


@tool(repeatable=True)
async def work(number: int) -> str:
    """Do a piece of work."""
    return f"done {number}"


class Worker:
    """A model that asks for so many steps, then answers."""

    name = "worker"
    capabilities = Capabilities()

    def __init__(self, steps: int) -> None:
        self._left = steps

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One more step."""
        self._left -= 1
        turn = call("work", number=self._left) if self._left >= 0 else call("final_answer", answer="done")
        return await ScriptedModel([turn]).complete(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        """The same."""
        yield await self.complete(request)


def seconds_of_run(store: SqliteStore | None, steps: int) -> tuple[float, float]:
    """One run: on the clock, and of the processor, which other work on the machine disturbs less."""
    agent = Agent(Worker(steps), tools=[work], budget=Budget(turns=None), store=store)
    start, used = time.perf_counter(), time.process_time()
    result = asyncio.run(agent.run("go"))
    assert len(result.steps) == steps + 1
    return time.perf_counter() - start, time.process_time() - used


def milliseconds(folder: Path | None, steps: int = STEPS) -> tuple[float, float]:
    """The best times of a step."""
    times = []
    for repeat in range(REPEATS):
        store = None if folder is None else SqliteStore(folder / f"runs-{steps}-{repeat}.db")
        times.append(seconds_of_run(store, steps))
        if store is not None:
            store.close()
    return min(wall for wall, _ in times) / steps * 1e3, min(used for _, used in times) / steps * 1e3


def of_bare_sqlite(folder: Path) -> float:
    """The best time of two transactions that wait for the disk and one that does not, with about as much data as a step has."""
    best = float("inf")
    for repeat in range(REPEATS):
        connection = sqlite3.connect(folder / f"bare-{repeat}.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t(a)")
        start = time.perf_counter()
        for _ in range(STEPS):
            for how in ("NORMAL", "FULL", "FULL"):
                connection.execute(f"PRAGMA synchronous={how}")
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO t VALUES(?)", ("x" * 1500,))
                connection.execute("COMMIT")
        best = min(best, (time.perf_counter() - start) / STEPS)
        connection.close()
    return best * 1e3


def main() -> None:
    """Print the table."""
    logging.disable(logging.CRITICAL)
    plain, plain_used = milliseconds(None)
    print(f"a run of {STEPS} steps, milliseconds a step (best of {REPEATS}); in memory {plain:.3f}, processor {plain_used:.3f}")
    print(f"{'folder':<16} {'in store':>9} {'store adds':>11} {'bare SQLite':>12} {'processor adds':>15}   target <= {TARGET:g}")
    for name in sys.argv[1:] or ["/dev/shm", tempfile.gettempdir()]:
        with tempfile.TemporaryDirectory(dir=name) as made:
            folder = Path(made)
            (kept, used), bare = milliseconds(folder), of_bare_sqlite(folder)
            print(f"{name:<16} {kept:>9.3f} {kept - plain:>11.3f} {bare:>12.3f} {used - plain_used:>15.3f}")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as made:
        (_, short), (_, long) = milliseconds(Path(made), 50), milliseconds(Path(made), 800)
        print(f"flat: a step of a run of 50 takes the processor {short:.3f}, of a run of 800 {long:.3f}")


if __name__ == "__main__":
    main()

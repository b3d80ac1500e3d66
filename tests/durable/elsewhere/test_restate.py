"""The page's adapter for Restate, on a server of its own: killed in the middle of an effect, the run ends, and nothing comes twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.durable.elsewhere.page import KILLS, asked, free_port, start, until, write_modules
from tests.durable.world import EFFECTS, READS, Oracle

pytest.importorskip("restate", reason="pip install restate-sdk hypercorn")
SERVER = os.environ.get("RESTATE_SERVER") or shutil.which("restate-server")
pytestmark = pytest.mark.skipif(SERVER is None, reason="the test needs restate-server (npm install -g @restatedev/restate-server)")

WORKER = """
import asyncio, sys
from hypercorn.asyncio import serve
from hypercorn.config import Config
from on_restate import app

config = Config()
config.bind = [f"127.0.0.1:{sys.argv[1]}"]
asyncio.run(serve(app, config))
"""


def post(url: str, data: Any, seconds: float = 30) -> Any:
    """Send JSON, and read JSON."""
    request = urllib.request.Request(url, json.dumps(data).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=seconds) as reply:
        text = reply.read()
    return json.loads(text) if text else None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses for runs and for administration."""
    folder = tmp_path_factory.mktemp("restate")
    ports = [free_port() for _ in range(3)]
    names = ("RESTATE_INGRESS__BIND_ADDRESS", "RESTATE_ADMIN__BIND_ADDRESS", "RESTATE_BIND_ADDRESS")
    environment = {**os.environ, **{name: f"127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)}}
    assert SERVER is not None
    command = [SERVER, "--base-dir", str(folder / "data"), "--node-name", "test", "--advertised-address", f"http://127.0.0.1:{ports[2]}/"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    ingress, admin = (f"http://127.0.0.1:{port}" for port in ports[:2])

    def is_up() -> bool:
        try:
            for address in (f"{admin}/health", f"{ingress}/restate/health"):
                urllib.request.urlopen(address, timeout=2).close()
        except OSError:
            return False
        return True

    until(is_up, folder)
    yield ingress, admin
    process.terminate()
    process.wait(30)


@pytest.mark.parametrize(("effect", "point"), KILLS)
def test_a_run_ends_and_nothing_comes_twice(server: tuple[str, str], tmp_path: Path, effect: str, point: str) -> None:
    ingress, admin = server
    write_modules(tmp_path)
    run_id, port = f"{effect}-{point.replace(' ', '-')}", free_port()
    workers = [start(tmp_path, WORKER, str(port), kill={"call_id": effect, "point": point})]

    def is_registered() -> bool:
        try:
            return bool(post(f"{admin}/deployments", {"uri": f"http://127.0.0.1:{port}", "force": True}))
        except OSError:
            return False

    def ended() -> Any:
        try:
            with urllib.request.urlopen(f"{ingress}/restate/workflow/runs/{run_id}/output", timeout=10) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError as fault:
            fault.close()
            return None

    until(is_registered, tmp_path)
    post(f"{ingress}/runs/{run_id}/run/send", "go")
    end = time.monotonic() + 120
    try:
        while (said := ended()) is None:
            assert time.monotonic() < end, (tmp_path / "log").read_text(encoding="utf-8")[-2000:]
            if workers[-1].poll() is not None:
                workers.append(start(tmp_path, WORKER, str(port)))
            for call_id, allow in asked(tmp_path, run_id):
                post(f"{ingress}/runs/{run_id}/decide/send", {"call_id": call_id, "allow": allow, "by": "Ada"})
            time.sleep(0.5)
        assert len(workers) == 2
    finally:
        for worker in workers:
            worker.kill()
            worker.wait(30)
    assert said == {"stop_reason": "final_answer", "answer": "done"}
    done = Counter(Oracle(tmp_path / "oracle").effects)
    assert all(done[name] == 1 for name in EFFECTS if name not in READS), done

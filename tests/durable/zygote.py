"""A process that makes processes: everything is imported once, and each run is a fork that can be killed for real.

    python -m tests.durable.zygote       commands and replies are lines of JSON

`spawn` forks, `wait` waits for a fork and tells how it ended, with what it has to say.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from maymust import SqliteStore
from tests.durable import broken
from tests.durable.dbos.shifts import agent_called, serve
from tests.durable.stores import address
from tests.durable.world import Deps, KillingDbosStore, KillingStore, KillPlan, Oracle, agent

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 30.0


class Zygote:
    """The process, for a test to talk to."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        command = [sys.executable, "-m", "tests.durable.zygote"]
        environment = {**os.environ, "PYTHONPATH": path}
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def spawn(self, folder: Path, **order: Any) -> int:
        """Start a run, or go on with one; gives the process id."""
        return int(self._say({"do": "spawn", "folder": str(folder), **order})["pid"])

    def wait(self, pid: int) -> dict[str, Any]:
        """How the process ended: `signal` (0 for none), and what it said: `stop_reason` or `error`."""
        return self._say({"do": "wait", "pid": pid})

    def run(self, folder: Path, **order: Any) -> dict[str, Any]:
        """`spawn` and `wait`. A kill plan `{"within": seconds}` kills from outside, wherever the process is by then."""
        within = order.get("kill", {}).get("within")
        pid = self.spawn(folder, **({**order, "kill": {}} if within is not None else order))
        return self._say({"do": "wait", "pid": pid, "within": within})

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._process.stdout.close()

    def _say(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        reply: dict[str, Any] = json.loads(self._process.stdout.readline())
        return reply


def work(order: dict[str, Any]) -> dict[str, Any]:
    """What a fork does."""
    if order.get("limit") is not None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["limit"], order["limit"]))
    if order.get("uid") is not None:
        os.setuid(order["uid"])
    if "worker" in order:
        return serve(order)
    folder = Path(order["folder"])
    plan = KillPlan(**order.get("kill", {}))
    broken.install(order.get("broken"))
    url, settings = address(folder), {"lease": order.get("lease", 30.0), "question_timeout": order.get("question_timeout")}
    store = KillingStore(folder / "runs.db", **settings) if url is None else KillingDbosStore(url, **settings)
    store.plan = plan
    shop, deps = agent_called(order.get("agent", "shop")), Deps(Oracle(folder / "oracle"), plan)
    shop.store = store
    decisions = order.get("decisions", {})
    try:
        if order.get("run_id") is None:
            result = asyncio.run(shop.run("go", deps=deps))
        else:
            result = asyncio.run(shop.resume(order["run_id"], decisions, deps=deps))
    except Exception as fault:
        return {"error": f"{type(fault).__name__}: {fault}", "trace": traceback.format_exc()}
    return {"stop_reason": result.stop_reason, "pending": [call.call_id for call in result.pending]}


def main() -> None:
    """Serve until there are no more commands."""
    with tempfile.TemporaryDirectory() as folder:
        # What is loaded at first use is loaded here, once.
        shop = agent(SqliteStore(Path(folder) / "runs.db"))
        asyncio.run(shop.run("go", deps=Deps(Oracle(Path(folder) / "oracle"), KillPlan())))
    for line in sys.stdin:
        order = json.loads(line)
        answer = _spawn(order) if order["do"] == "spawn" else _wait(order)
        print(json.dumps(answer), flush=True)


def _spawn(order: dict[str, Any]) -> dict[str, Any]:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            said = json.dumps(work(order))
            Path(order.get("says", order["folder"]), f"said-{os.getpid()}").write_text(said, encoding="utf-8")
            code = 0
        finally:
            os._exit(code)
    _FOLDERS[pid] = order.get("says", order["folder"])
    return {"pid": pid}


_FOLDERS: dict[int, str] = {}


def _wait(order: dict[str, Any]) -> dict[str, Any]:
    pid, end = order["pid"], time.monotonic() + PATIENCE
    kill_at = None if order.get("within") is None else time.monotonic() + order["within"]
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if kill_at is not None and time.monotonic() > kill_at:
            os.kill(pid, signal.SIGKILL)
            kill_at = None
        if time.monotonic() > end:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            return {"signal": -1, "error": "it took too long"}
        time.sleep(0.001)
    said: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError):
        said = json.loads(Path(_FOLDERS[pid], f"said-{pid}").read_text(encoding="utf-8"))
    return {"signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, "code": status, **said}


if __name__ == "__main__":
    main()

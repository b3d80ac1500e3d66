"""Runs measurements in the frameworks' virtualenvs, one process each, round after round, so that all meet the same disturbances."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers.versions import MAYMUST, PEERS, ROOT, python_of

QUIET = {
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}
"""Telemetry is switched off for all."""

SLOW = 5.0
"""A measurement that takes more processor seconds is made once."""


@dataclass
class Job:
    """One measurement: which framework, which task of the worker with which arguments, and the values so far.

    measure  what makes it; without it `worker`, in a process of the framework's virtualenv
    """

    name: str
    task: str
    given: dict[str, Any]
    used: float = 0.0
    found: list[dict[str, Any]] = field(default_factory=list)
    failed: str = ""
    measure: Callable[[str, str, dict[str, Any], float], dict[str, Any]] | None = None

    def once(self, limit: float) -> None:
        """Measure once more."""
        started = time.perf_counter()
        try:
            self.found.append((self.measure or worker)(self.name, self.task, self.given, limit))
            self.used = self.found[-1]["used"]
        except subprocess.TimeoutExpired:
            self.failed = f"stopped after {limit:.0f} s"
        except subprocess.CalledProcessError as error:
            self.failed = (error.stderr or "").strip().splitlines()[-1][:200] if error.stderr else f"exit code {error.returncode}"
        seconds = time.perf_counter() - started
        given = json.dumps(self.given)[:80]
        sys.stderr.write(f"  {self.name} {self.task} {given}: {seconds:.1f} s, {self.used:.1f} s of the processor {self.failed}\n")

    def row(self, *keys: str) -> dict[str, Any]:
        """The medians and spreads of some values."""
        row: dict[str, Any] = {"peer": self.name, **self.given, "repeats": len(self.found)}
        if self.failed:
            row["failed"] = self.failed
        for key in keys:
            values = [one[key] for one in self.found]
            if values:
                row[key] = {"median": round(statistics.median(values), 3), "low": round(min(values), 3), "high": round(max(values), 3)}
        return row


def environment_of(extra: dict[str, str] | None = None) -> dict[str, str]:
    """What a worker's process sees."""
    return {**os.environ, **QUIET, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), **(extra or {})}


def call(python: str, arguments: Sequence[str], limit: float) -> Any:
    """Run a module of the benchmarks in a virtualenv; its last line is JSON."""
    done = subprocess.run(
        [python, "-m", *arguments], capture_output=True, text=True, cwd=ROOT, env=environment_of(), timeout=limit, check=True
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def worker(name: str, task: str, given: dict[str, Any], limit: float) -> dict[str, Any]:
    """One measurement in a process of its own."""
    home = MAYMUST if name == MAYMUST else PEERS[name].home
    found: dict[str, Any] = call(python_of(home), ["benchmarks.peers.worker", name, task, json.dumps(given)], limit)
    return found


def rounds(jobs: list[Job], times: int, limit: float, at_once: int = 1) -> list[Job]:
    """All jobs, `times` times, in turns, so many at once; slow ones and failed ones once."""
    with ThreadPoolExecutor(at_once) as pool:
        for number in range(times):
            turn = number % max(len(jobs), 1)
            due = [job for job in jobs[turn:] + jobs[:turn] if number == 0 or (job.used < SLOW and not job.failed)]
            list(pool.map(lambda job: job.once(limit), due))
    return jobs

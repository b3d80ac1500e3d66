"""The parts of the comparison: each gives rows of plain data for the results, and is timed round after round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.run import Job, call, rounds
from benchmarks.peers.versions import AGENTS, MAYMUST, PEERS, ROOT, python_of

STEPS = (10, 100, 1000, 10_000)
GRID = [(tools, rules) for tools in (10, 100, 1000) for rules in (1, 10, 100)]
HISTORIES = (0, 10, 1000, 100_000)
LIMIT = 3000.0
"""Seconds after which a measurement is stopped."""


@dataclass(frozen=True)
class How:
    """How much is measured.

    repeats           how often a quick measurement is made; what takes more than 5 processor seconds is made once
    at_once           processes at a time
    longest_run       a run that would take more processor seconds is left out
    longest_decision  the same for one decision
    adversaries       runs for each kind of rule and way of trying
    """

    repeats: int = 5
    at_once: int = 1
    longest_run: float = 150.0
    longest_decision: float = 5.0
    adversaries: int = 36


FAST = How(repeats=2, at_once=2, longest_run=60.0, longest_decision=2.0, adversaries=8)
"""What fits into six minutes on two processors with nothing else to do."""


def loop(how: How, names: Sequence[str] = (MAYMUST, *AGENTS)) -> dict[str, Any]:
    """Runs of 10 to 10,000 steps."""
    rows: list[dict[str, Any]] = []
    known: dict[tuple[str, int], float] = {}
    runs = [(name, given) for name in names for given in ([{}, {"rules": 10}] if name == MAYMUST else [{}])]
    for place, steps in enumerate(STEPS):
        jobs = []
        for name, given in runs:
            guess = expected([known.get((f"{name}{given}", earlier)) for earlier in STEPS[:place]], steps)
            if guess is not None and guess > how.longest_run:
                rows.append({"peer": name, "steps": steps, **given, "left_out": True})
            else:
                jobs.append(Job(name, "loop", {"steps": steps, **given}))
        for job in rounds(jobs, how.repeats, LIMIT, how.at_once):
            rows.append(job.row("us_per_step", "peak_mb", "peak_mb_before"))
            given = {key: value for key, value in job.given.items() if key != "steps"}
            # What has failed is not tried with more steps either.
            known[f"{job.name}{given}", steps] = rows[-1]["us_per_step"]["median"] if job.found else float("inf")
    return {"longest_run": how.longest_run, "rows": rows}


def expected(known: list[float | None], steps: int) -> float | None:
    """Seconds that a run may take, from the time per step of shorter ones: the time per step goes on growing as it did."""
    if not known or known[-1] is None:
        return None if not known else float("inf")
    before = known[-2] if len(known) > 1 and known[-2] else known[-1]
    return known[-1] * max(1.0, known[-1] / before) * steps / 1e6


def many(how: How, names: Sequence[str] = (MAYMUST, *AGENTS)) -> dict[str, Any]:
    """1,000 runs of 3 steps in one process."""
    jobs = [Job(name, "many", {"runs": 1000, "steps": 3}) for name in names]
    return {"rows": [job.row("us_per_step", "peak_mb", "peak_mb_before") for job in rounds(jobs, how.repeats, LIMIT, how.at_once)]}


def permit(how: How) -> dict[str, Any]:
    """Full decisions over the grid, one process for each history. How long BeeAI takes is known from shorter histories: it walks them."""
    rows: list[dict[str, Any]] = []
    known: dict[tuple[int, int], float] = {}
    for place, history in enumerate(HISTORIES):
        factor = history / HISTORIES[place - 1] if place > 1 else 1
        guesses = {cell: known.get(cell, 0.0) * factor / 1e6 for cell in GRID}
        for cell, guess in guesses.items():
            if guess > how.longest_decision:
                rows.append({"peer": "beeai", "tools": cell[0], "requirements": cell[1], "history": history, "left_out": True})
        short = [cell for cell in GRID if guesses[cell] <= how.longest_decision]
        jobs = [
            Job(MAYMUST, "grid", {"cells": GRID, "history": history, "times": 2000}),
            Job("beeai", "grid", {"cells": short, "history": history, "times": 1 if history >= 1000 else 3}),
        ]
        for job in rounds([job for job in jobs if job.given["cells"]], how.repeats, LIMIT, how.at_once):
            for number, cell in enumerate(job.given["cells"]):
                values = spread([found["us"][number] for found in job.found])
                rows.append({"peer": job.name, "tools": cell[0], "requirements": cell[1], "history": history,
                             "repeats": len(job.found), "us": values})  # fmt: skip
                if job.name == "beeai":
                    known[cell] = values["median"]
    return {"longest_decision": how.longest_decision, "rows": rows}


def growth(how: How) -> dict[str, Any]:
    """A decision after 100,000 steps against one after 10."""
    (job,) = rounds([Job(MAYMUST, "growth", {"history": 100_000, "times": 1000})], how.repeats, LIMIT)
    return job.row("ratio")


def one_tool(how: How) -> dict[str, Any]:
    """One decision about one tool."""
    found: dict[str, list[float]] = {}
    for _ in range(how.repeats):
        for name, value in call(python_of("deciders"), ["benchmarks.peers.of_deciders"], 300).items():
            found.setdefault(name, []).append(value)
        job = Job(MAYMUST, "grid", {"cells": [(1, 1)], "history": 10, "times": 3000})
        job.once(300)
        found.setdefault(MAYMUST, []).append(job.found[0]["us"][0])
    return {"rows": [{"peer": name, "us": spread(values)} for name, values in found.items()]}


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and most."""
    ordered = sorted(values)
    return {"median": round(ordered[len(ordered) // 2], 3), "low": round(ordered[0], 3), "high": round(ordered[-1], 3)}


def imports(how: How) -> dict[str, Any]:
    """What is loaded and installed, and what 1,000 tools cost before the first request."""
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    python, often = python_of(MAYMUST), str(how.repeats + 1)
    own = sum(path.stat().st_size for path in (ROOT / "src" / "maymust").rglob("*") if path.is_file() and path.suffix != ".pyc") / 1e6
    rows = []
    for title, statement in (("maymust", "import maymust"), ("maymust, with `Agent`", "from maymust import Agent")):
        row = call(python, ["benchmarks._footprint", often, statement, *needs], 300)
        # maymust itself runs from the checkout and is not among what is installed.
        row.update(distributions=row["distributions"] + 1, mb=round(row["mb"] + own, 1))
        rows.append({"peer": MAYMUST, "title": title, "statement": statement, **row})
    for name in AGENTS:
        peer = PEERS[name]
        row = call(python_of(peer.home), ["benchmarks._footprint", often, peer.imports, peer.pin], 300)
        rows.append({"peer": name, "title": peer.title, "statement": peer.imports, **row})
    jobs = rounds([Job(MAYMUST, "register", {"tools": 1000})], how.repeats, LIMIT)
    return {"rows": rows, "register_1000": jobs[0].row("ms")}


def here(module: str, *arguments: str) -> Any:
    """A benchmark of ours in this Python, which has the extras."""
    return call(sys.executable, [module, *arguments], 3000)


def prompt(how: How) -> dict[str, Any]:
    """Bytes read anew in three runs of twenty turns."""
    return {"runs": here("benchmarks.prompt_bytes", "--json")}


def local(how: How) -> dict[str, Any]:
    """Seconds a turn with the local model."""
    found: dict[str, Any] = here("benchmarks.local_prompt", "--json")
    return found


def behaviour(how: How) -> dict[str, Any]:
    """Adversarial runs and odd replies."""
    jobs = rounds([Job(name, "behaviour", {"runs": how.adversaries}) for name in (MAYMUST, *AGENTS)], 1, LIMIT, how.at_once)
    found = {job.name: job.found[0] if job.found else {"failed": job.failed} for job in jobs}
    return {"runs_per_cell": how.adversaries, "peers": found}


def supervised(how: How) -> dict[str, Any]:
    """Runs that a model at random finishes."""
    found: dict[str, Any] = here("benchmarks.bench_supervised", "--json")
    return found


def profile(how: How) -> dict[str, Any]:
    """Where a step of our loop spends its time."""
    return {"rows": call(python_of(MAYMUST), ["benchmarks._profile"], 300)}


PARTS: dict[str, Callable[[How], dict[str, Any]]] = {
    "permit": permit,
    "growth": growth,
    "one_tool": one_tool,
    "loop": loop,
    "many": many,
    "imports": imports,
    "prompt": prompt,
    "local": local,
    "behaviour": behaviour,
    "supervised": supervised,
    "profile": profile,
}


def again(part: dict[str, Any], name: str, names: Sequence[str], how: How) -> dict[str, Any]:
    """A part in which some of the rows are measured anew."""
    found = {"loop": loop, "many": many}[name](how, names)
    kept = [row for row in part["rows"] if row["peer"] not in names]
    return {**part, "rows": [*found["rows"], *kept], "again": {"peers": list(names), "commit": commit()}}


def commit() -> str:
    """Which state of the code was measured."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT)
    return done.stdout.strip() or "unknown"


def quiet_loads() -> None:
    """Compiled files are written, whatever the shell says: else every import would be measured with a compiler in it."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def dumped(results: dict[str, Any]) -> str:
    """The results as they are committed."""
    return json.dumps(results, indent=1, ensure_ascii=False) + "\n"

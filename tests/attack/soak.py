"""Many seeds, on all processors: `python -m tests.attack.soak RUNS [FIRST]`; one seed in full: `python -m tests.attack.soak --seed N`.

A run is made of its seed alone, so a failing one is made again by its number.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from random import Random
from typing import Any

from tests.attack.checker import check
from tests.attack.play import Record, Unbuilt, play
from tests.attack.scenario import generate

SLICE = 500
REPEAT = "python -m tests.attack.soak --seed {seed}"


@dataclass
class Tally:
    """What came of many runs: how they ended, how many policies were refused, the failures; `work` is processor time of all workers."""

    runs: int = 0
    unbuilt: int = 0
    turns: int = 0
    bodies: int = 0
    seconds: float = 0.0
    work: float = 0.0
    ends: Counter[str] = field(default_factory=Counter)
    failures: dict[int, list[str]] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Take over the numbers of another tally."""
        self.runs += other.runs
        self.unbuilt += other.unbuilt
        self.turns += other.turns
        self.bodies += other.bodies
        self.work += other.work
        self.ends.update(other.ends)
        self.failures.update(other.failures)

    def words(self) -> str:
        """One paragraph."""
        rate = self.runs / self.seconds if self.seconds else 0
        lines = [
            f"{self.runs} runs in {self.seconds:.1f} s ({rate:.0f} a second), {self.work:.1f} s of processor time",
            f"{self.turns} turns, {self.bodies} bodies, {self.unbuilt} policies refused at construction",
            "ends: " + ", ".join(f"{end} {count}" for end, count in self.ends.most_common()),
        ]
        for seed, problems in sorted(self.failures.items())[:5]:
            lines += [f"seed {seed}: {problem}" for problem in problems[:3]]
            lines.append("    again: " + REPEAT.format(seed=seed))
        if self.failures:
            lines.append(f"{len(self.failures)} of {self.runs} runs break the design")
        return "\n".join(lines)


async def one(seed: int) -> tuple[dict[str, Any], Record, list[str]]:
    """The run of one seed, and its problems."""
    rng = Random(seed)
    scenario = generate(rng)
    record = await play(scenario, rng)
    return scenario, record, check(scenario, record)


def some(seeds: Iterable[int]) -> Tally:
    """The runs of these seeds, one after the other in one event loop."""
    logging.disable(logging.CRITICAL)
    return asyncio.run(_some(seeds))


async def _some(seeds: Iterable[int]) -> Tally:
    tally, begun = Tally(), time.process_time()
    for seed in seeds:
        try:
            _, record, problems = await one(seed)
        except Unbuilt:
            tally.unbuilt += 1
            continue
        except Exception as error:
            # Only errors of the library's own tree may come out of a run (design 4).
            tally.runs += 1
            tally.failures[seed] = [f"crashed: {type(error).__name__}: {error}"]
            continue
        tally.runs += 1
        tally.turns += len(record.replies)
        tally.bodies += len(record.bodies)
        tally.ends[record.end] += 1
        if problems:
            tally.failures[seed] = problems
    tally.work = time.process_time() - begun
    return tally


def many(runs: int, first: int = 0, *, workers: int | None = None) -> Tally:
    """So many seeds from `first` on, spread over processes."""
    started = time.perf_counter()
    slices = [range(start, min(start + SLICE, first + runs)) for start in range(first, first + runs, SLICE)]
    tally = Tally()
    workers = workers or min(len(slices), os.cpu_count() or 1)
    if workers == 1:
        for part in slices:
            tally.add(some(part))
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for done in pool.map(some, slices):
                tally.add(done)
    tally.seconds = time.perf_counter() - started
    return tally


def show(scenario: dict[str, Any], record: Record) -> str:
    """A scenario and its record, to read."""
    lines = [json.dumps({key: scenario[key] for key in ("tools", "later", "settings", "around", "crash")})]
    lines += [json.dumps(declared) for declared in scenario["requirements"]]
    steps = iter(record.steps)
    for number, reply in enumerate(record.replies, 1):
        permit = record.permits[number - 1] if number <= len(record.permits) else {}
        lines.append(f"turn {number}: {permit}")
        lines.append(f"    text {reply.text!r}")
        for made in reply.calls:
            step = next(steps, None)
            body = [body["ended"] for body in record.bodies if step is not None and body["call_id"] == step["call_id"]]
            lines.append(
                f"    {made.call_id!r} {made.name} {made.raw} -> {step and (step['call_id'], step['outcome'], step['text'])} body {body}"
            )
    lines += [f"question: {question}" for question in record.questions]
    lines += [f"around {call_id}: {plan}" for call_id, plan in record.around.items() if plan["does"] != "pass"]
    lines += [f"changes {body['call_id']}: {body}" for body in record.bodies if "added" in body or "removed" in body]
    lines += [f"pause: {pause}" for pause in record.pauses]
    for call_id, child in record.children.items():
        lines += [f"  child at {call_id}", *(f"  | {line}" for line in show(scenario["child"], child).splitlines())]
    lines.append(f"end {record.end} {record.said} answer {record.answer!r} counters {record.counters} unmet {record.unmet}")
    return "\n".join(lines)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=int(os.environ.get("MAYMUST_ATTACK_RUNS", "1000000")))
    parser.add_argument("first", nargs="?", type=int, default=0)
    parser.add_argument("--seed", type=int, help="show the run of this seed")
    parser.add_argument("--workers", type=int, default=None)
    given = parser.parse_args()
    if given.seed is not None:
        scenario, record, problems = asyncio.run(one(given.seed))
        sys.stdout.write("\n".join([show(scenario, record), *(f"PROBLEM {problem}" for problem in problems)]) + "\n")
        return bool(problems)
    tally = many(given.runs, given.first, workers=given.workers)
    sys.stdout.write(tally.words() + "\n")
    return bool(tally.failures)


if __name__ == "__main__":
    sys.exit(main())

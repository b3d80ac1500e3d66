"""What a step of the loop costs, from 10 to 10,000 steps, and with 1,000 runs at once.

    python -m benchmarks.bench_loop

A model without latency asks for one call of an async tool that does nothing. Each run is a process of its own; microseconds of its
processor time, and its memory at the most.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

STEPS = (10, 100, 1000, 10_000)
REPEATS = 3


def measured(task: str, **given: Any) -> dict[str, Any]:
    """The best of a few processes."""
    command = [sys.executable, "-m", "benchmarks.peers.worker", "maymust", task, json.dumps(given)]
    runs = [json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(REPEATS)]
    best: dict[str, Any] = min(runs, key=lambda one: one["us_per_step"])
    return best


def main() -> None:
    """Print a line for each."""
    for rules in (0, 10):
        for steps in STEPS:
            found = measured("loop", steps=steps, rules=rules)
            print(f"{steps:>6} steps, {rules:>2} requirements  {found['us_per_step']:>8.1f} µs a step  {found['peak_mb']:>6.0f} MB")
    found = measured("many", runs=1000, steps=10)
    print(f"1,000 runs of 10 steps at once  {found['us_per_step']:>8.1f} µs a step  {found['peak_mb']:>6.0f} MB")
    print("at most 60 µs a step at 1,000 steps, and flat to 10,000")


if __name__ == "__main__":
    main()

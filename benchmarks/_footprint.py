"""What an import loads and what an install brings: `python -m benchmarks._footprint REPEATS STATEMENT REQUIREMENT ...`.

Prints one line of JSON: processor milliseconds and modules of the statement, distributions that the requirements bring by their
metadata, and their size on disk in MB as installed, without compiled files.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

REPEATS = 7
CODE = """
import sys, time
before, started = set(sys.modules), time.process_time()
{statement}
took = time.process_time() - started
new = set(sys.modules) - before
known = sys.stdlib_module_names
print(took * 1e3, len(new), len([name for name in new if name.split(".")[0] not in known]))
"""


def canonical(name: str) -> str:
    """A distribution's name in its one spelling."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(requirement: str) -> tuple[str, set[str]] | None:
    """The name in a requirement, and its extras; None where its marker speaks of an extra, or of another machine."""
    from packaging.requirements import Requirement

    parsed = Requirement(requirement)
    if parsed.marker is not None and not parsed.marker.evaluate({"extra": ""}):
        return None
    return canonical(parsed.name), set(parsed.extras)


def closure(requirements: Iterable[str]) -> list[str]:
    """All distributions that the requirements bring, by the metadata of what is installed."""
    found: set[str] = set()
    waiting = [one for text in requirements if (one := required(text)) is not None]
    while waiting:
        name, _ = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [one for text in metadata.requires(name) or () if (one := required(text)) is not None]
    return sorted(found)


def megabytes(names: Iterable[str]) -> float:
    """Size of the files that came with the distributions."""
    total = 0
    for name in names:
        for file in metadata.files(name) or ():
            path = Path(str(file.locate()))
            if file.suffix != ".pyc" and path.is_file():
                total += path.stat().st_size
    return total / 1e6


def imported(statement: str, repeats: int = REPEATS) -> dict[str, Any]:
    """The median of several fresh interpreters; the first, which may compile, is left out."""
    runs = []
    for _ in range(repeats + 1):
        code = CODE.format(statement=statement)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        runs.append([float(word) for word in done.stdout.split()])
    times = sorted(run[0] for run in runs[1:])
    return {"ms": round(median(times), 1), "low": round(times[0], 1), "high": round(times[-1], 1), "modules": int(runs[-1][1])}


def main() -> None:
    """Print the line."""
    repeats, statement, *requirements = sys.argv[1:]
    names = closure(requirements)
    print(json.dumps({**imported(statement, int(repeats)), "distributions": len(names), "names": names, "mb": round(megabytes(names), 1)}))


if __name__ == "__main__":
    main()

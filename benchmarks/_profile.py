"""Where a step of the loop spends its time: own time per module, and the functions with the most. Prints one line of JSON."""

from __future__ import annotations

import asyncio
import cProfile
import json
import logging
import pstats
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.peers import of_maymust
from benchmarks.peers.brain import Walker

STEPS = 2000


def profiled() -> Any:
    """The profile of one run."""
    asyncio.run(of_maymust.loop(Walker(3), 3)())
    run, watch = of_maymust.loop(Walker(STEPS), STEPS), cProfile.Profile()

    async def main() -> None:
        watch.enable()
        await run()
        watch.disable()

    asyncio.run(main())
    return pstats.Stats(watch).stats  # type: ignore[attr-defined]


def place_of(file: str) -> str:
    """A file's name as a reader knows it."""
    parts = Path(file).parts
    if "maymust" in parts and file.endswith(".py"):
        return "/".join(parts[len(parts) - parts[::-1].index("maymust") :])
    if "pydantic" in file:
        return "pydantic"
    return "asyncio" if "asyncio" in parts else "Python's own functions" if file == "~" else parts[-1]


def main() -> None:
    """Print shares of the whole, in percent."""
    logging.disable(logging.CRITICAL)
    stats, by_file = profiled(), Counter[str]()
    for (file, _, _), (_, _, own, _, _) in stats.items():
        by_file[place_of(file)] += own
    whole = sum(by_file.values())
    calls = sum(count for _, count, _, _, _ in stats.values()) / STEPS
    files = [[name, round(100 * own / whole, 1)] for name, own in by_file.most_common(14)]
    print(json.dumps({"calls_per_step": round(calls), "files": files}))


if __name__ == "__main__":
    main()

"""One measurement of one framework, in that framework's own virtualenv: `python -m benchmarks.peers.worker NAME TASK JSON`.

Prints one line of JSON. Time is that of the processor, of all threads of the process, without what was spent on imports and on making
the agent; `used` is what the whole process took.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import logging
import resource
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.peers.brain import WAYS, Adversary, Call, Reply, Scripted, Stuck, Walker
from benchmarks.peers.world import KINDS, World


def peak() -> float:
    """The most memory this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def loop(peer: Any, steps: int, **options: Any) -> dict[str, Any]:
    """One run; a short one goes before it, so that nothing is done for the first time."""
    asyncio.run(peer.loop(Walker(3), 3, **options)())
    brain = Walker(steps)
    run = peer.loop(brain, steps, **options)
    before = peak()
    gc.collect()

    async def timed() -> float:
        start = time.process_time()
        await run()
        return time.process_time() - start

    took = asyncio.run(timed())
    assert brain.turn == steps + 1, f"{brain.turn} turns instead of {steps + 1}"
    return {"us_per_step": took / steps * 1e6, "peak_mb": peak(), "peak_mb_before": before}


def many(peer: Any, runs: int, steps: int) -> dict[str, Any]:
    """Many runs at once in one process: each waits one round of the event loop in every model call."""
    asyncio.run(peer.loop(Walker(3), 3)())
    before = peak()

    async def yields() -> None:
        await asyncio.sleep(0)

    async def timed() -> float:
        started = [peer.loop(Walker(steps), steps, yields) for _ in range(runs)]
        gc.collect()
        start = time.process_time()
        if peer.__name__.endswith("smolagents"):
            with ThreadPoolExecutor(runs) as pool:
                await asyncio.gather(*(asyncio.get_running_loop().run_in_executor(pool, asyncio.run, run()) for run in started))
        else:
            await asyncio.gather(*(run() for run in started))
        return time.process_time() - start

    took = asyncio.run(timed())
    return {"us_per_step": took / (runs * steps) * 1e6, "peak_mb": peak(), "peak_mb_before": before}


def grid(peer: Any, cells: list[tuple[int, int]], history: int, times: int) -> dict[str, Any]:
    """Full decisions about so many tools under so many requirements, over a history of one length: microseconds of one, by cell."""
    return {"us": [peer.decide(tools, requirements, history, times) for tools, requirements in cells]}


def growth(peer: Any, history: int, times: int) -> dict[str, Any]:
    """A decision after many steps against one after ten."""
    return {"ratio": peer.growth(history, times)}


def register(peer: Any, tools: int) -> dict[str, Any]:
    """From plain functions to the first request that offers them."""
    return {"ms": peer.register(tools)}


def adversarial(peer: Any, kind: str, way: str, runs: int, first: int = 0) -> dict[str, Any]:
    """Runs against an adversary: in how many the rule was broken, and how they ended."""
    broken, ends = 0, dict[str, int]()

    async def all_of_them() -> None:
        nonlocal broken
        for seed in range(first, first + runs):
            world = World()
            await peer.desk(Adversary(way, seed), world, kind)  # type: ignore[arg-type]
            broken += world.breaks(kind)
            end = "answered" if world.answered else world.broke or "no answer"
            ends[end] = ends.get(end, 0) + 1

    asyncio.run(all_of_them())
    return {"broken": broken, "runs": runs, "ends": ends}


ODD: dict[str, tuple[Reply, ...]] = {
    "usual": (Reply(calls=(Call("c1", "search", {"q": "x"}),)), Reply("done", answers=True)),
    "text": (Reply(calls=(Call("c1", "search", {"q": "x"}),)), Reply("It is done."), Reply("It is done.")),
    "unknown": (Reply(calls=(Call("c1", "serch", {"q": "x"}),)), Reply("done", answers=True)),
    "empty": (Reply(calls=(Call("c1", "search", {"q": "x"}),)), Reply(""), Reply("done", answers=True)),
}
"""What the model says: a call and an answer; a text in place of the answer; a tool that does not exist; nothing at all."""


def oddities(peer: Any) -> dict[str, Any]:
    """Model calls that each took, and how the run ended."""
    found: dict[str, Any] = {}
    for name, script in ODD.items():
        brain, world = Scripted(*script), World()
        try:
            asyncio.run(peer.desk(brain, world, None))
        except Stuck:
            world.broke = "Stuck"
        found[name] = {"calls": brain.asked, "end": "answered" if world.answered else world.broke or "no answer"}
    return found


def behaviour(peer: Any, runs: int) -> dict[str, Any]:
    """All kinds of rules against all ways of trying."""
    table = {kind: {way: adversarial(peer, kind, way, runs) for way in WAYS} for kind in KINDS if kind in peer.IDIOMS}
    return {"table": table, "oddities": oddities(peer), "idioms": peer.IDIOMS, "docs": peer.DOCS}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "loop": loop,
    "many": many,
    "grid": grid,
    "growth": growth,
    "register": register,
    "behaviour": behaviour,
}


def main() -> None:
    """Measure and print."""
    name, task, given = sys.argv[1:4]
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    module = importlib.import_module(f"benchmarks.peers.of_{name}")
    found = TASKS[task](module, **json.loads(given))
    print(json.dumps({**found, "used": time.process_time()}))


if __name__ == "__main__":
    main()

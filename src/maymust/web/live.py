"""Server-sent events: a run while it runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from maymust.web.follow import Follower
from maymust.web.shelf import Shelf

PAUSE = 0.25
"""Seconds between two looks at a file."""
_QUIET = 15.0
"""Seconds after which a silent connection gets a comment, so that a dead one is noticed."""


def event(name: str, data: Any) -> bytes:
    """One event as it is sent."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


async def events(shelf: Shelf, follower: Follower | None, stopping: Callable[[], bool]) -> AsyncIterator[bytes]:
    """What somebody is told who looks at a run, or at none: the list of runs, the run, and whatever becomes of both."""
    names: list[tuple[str, str]] | None = None
    mark: tuple[int, int, int] | None = None
    seen: object = None
    problem = ""
    silent = 0.0
    yield b"retry: 1000\n\n"
    while not stopping():
        told = False
        found = await asyncio.to_thread(shelf.names)
        if found != names:
            names, told = found, True
            yield event("runs", [{"id": key, "name": name} for key, name in found])
        if follower is not None:
            await asyncio.to_thread(follower.refresh)
            if follower.problem != problem:
                problem, told = follower.problem, True
                yield event("problem", problem)
            if (follower.generation, follower.version) != seen:
                seen = (follower.generation, follower.version)
                news = await asyncio.to_thread(follower.news, mark)
                if news is not None:
                    kind = "run" if mark is None or mark[0] != news[0][0] else "patch"
                    mark, told = news[0], True
                    yield await asyncio.to_thread(event, kind, news[1])
        silent = 0.0 if told else silent + PAUSE
        if silent >= _QUIET:
            silent = 0.0
            yield b": still here\n\n"
        await asyncio.sleep(PAUSE)

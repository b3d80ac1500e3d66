"""A process that answers requests one after the other, and is ended when an answer takes too long."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from typing import Any

_LONGEST = 64 * 1024 * 1024


class Worker:
    """Answers by `maymust.web.answers`, in a process that starts with the first request and again after each that was ended.

    seconds  how long an answer may take
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Start the process, so that the first answer does not wait for it."""
        async with self._turn:
            await self._running()

    async def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer. `{"error": ...}` when it took too long, or the process has ended."""
        async with self._turn:
            process = await self._running()
            try:
                answer = await asyncio.wait_for(self._exchange(process, request), self.seconds)
            except TimeoutError:
                await self._end()
                return {"error": f"this took more than {self.seconds:g} seconds, and was given up"}
            except (ConnectionError, ValueError, asyncio.IncompleteReadError):
                await self._end()
                return {"error": "the process that folds policies has ended; it takes more memory than it has, or a fault of maymust"}
            except BaseException:
                # Whoever asked has gone. The answer would be taken for that of the next request.
                await asyncio.shield(self._end())
                raise
            return answer

    async def _exchange(self, process: Process, request: Mapping[str, Any]) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        await process.stdin.drain()
        line = await process.stdout.readuntil(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def _running(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            command = (sys.executable, "-m", "maymust.web.answers")
            self._process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=_LONGEST)
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if process.stdin is not None:
            process.stdin.close()

    async def close(self) -> None:
        """End the process."""
        await self._end()

"""The proxy over standard input and output, in front of a server that it starts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

import anyio
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server.stdio import stdio_server

from maymust.core.policy import Policy
from maymust.errors import RunError
from maymust.mcp_proxy.relay import Relay

log: logging.Logger = logging.getLogger(__name__)

_CHUNK = 65536


async def serve(policy: Policy, command: Sequence[str], *, unlisted: bool = True, closed: bool = False, lenient: bool = False) -> bool:
    """Start the server, and stand between it and the client at standard input and output until one of them goes.

    True when the client went first, False when the server ended by itself. Whether a proxy can hold the policy is for `check_policy` to
    say. Raises RunError for a server that cannot be started.
    """
    # The client has set the environment up for the server.
    parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ), encoding_error_handler="replace")
    _end_on_signal()
    client_went = True
    async with contextlib.AsyncExitStack() as stack:
        try:
            server = await stack.enter_async_context(stdio_client(parameters, errlog=sys.stderr))
        except (OSError, ValueError) as error:
            raise RunError(f"the MCP server {command[0]} cannot be started: {error}") from error
        client = await stack.enter_async_context(_client())
        # What rules and handlers print has no place among the messages, now or when the interpreter ends.
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        client_went = await Relay(policy, client, server, unlisted=unlisted, closed=closed, lenient=lenient).run()
    return client_went  # noqa: RET504  a client that hangs up leaves it as it was


@contextlib.asynccontextmanager
async def _client() -> AsyncIterator[Any]:
    """The streams of the client. A client that hangs up while something is written to it has gone, and that is no error."""
    lines: Any = _Lines(sys.stdin.fileno())
    try:
        async with stdio_server(stdin=lines) as (read, write):
            try:
                yield read, write
            finally:
                lines.close()
                # What was sent is written to the end.
                await write.aclose()
                await read.aclose()
    except BaseExceptionGroup as group:
        _, rest = group.split((BrokenPipeError, anyio.BrokenResourceError))
        if rest is not None:
            raise rest from None


def _end_on_signal() -> None:
    task = asyncio.current_task()
    assert task is not None
    # Without this the server would be left behind.
    with contextlib.suppress(NotImplementedError, RuntimeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


class _Lines:
    """The lines of a descriptor. They are read in a thread that holds nobody up when the proxy ends: it may wait for a line for ever."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: asyncio.Queue[str | None] = asyncio.Queue(maxsize=1)
        self._closed = asyncio.Event()

    def close(self) -> None:
        """There will be no more lines for whoever iterates."""
        self._closed.set()

    def __aiter__(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="maymust-mcp-stdin", daemon=True).start()
        return self._lines()

    async def _lines(self) -> AsyncIterator[str]:
        closed = asyncio.create_task(self._closed.wait())
        try:
            while True:
                line = asyncio.create_task(self._queue.get())
                try:
                    await asyncio.wait({line, closed}, return_when=asyncio.FIRST_COMPLETED)
                    if closed.done() or (said := line.result()) is None:
                        return
                finally:
                    line.cancel()
                yield said
        finally:
            closed.cancel()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        begun: list[bytes] = []
        # The loop may be closed by the time a line comes.
        with contextlib.suppress(RuntimeError, OSError, CancelledError):
            while chunk := os.read(self._descriptor, _CHUNK):
                begun.append(chunk)
                # A long line is put together once, not with each piece.
                if b"\n" in chunk:
                    *lines, rest = b"".join(begun).split(b"\n")
                    begun = [rest]
                    for line in lines:
                        self._put(loop, line)
            self._put(loop, b"".join(begun))
            asyncio.run_coroutine_threadsafe(self._queue.put(None), loop).result()

    def _put(self, loop: asyncio.AbstractEventLoop, line: bytes) -> None:
        if line.strip():
            asyncio.run_coroutine_threadsafe(self._queue.put(line.decode("utf-8", "replace")), loop).result()

"""A connection to an MCP server that outlives any one task: it lives in a thread with an event loop of its own.

The SDK's client has to be left by the task that entered it, and its loop has to be running while tools are called.
A thread of its own gives both, also for `run_sync`, for several event loops, and for exit stacks that close elsewhere.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

T = TypeVar("T")


class Home:
    """The event loop in which a connection lives. `run` may be called from any loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine at home; cancelling the caller cancels it. Raises ConnectionError when home is gone."""
        loop = self._loop
        if loop is None or loop.is_closed():
            raise ConnectionError("the connection is closed")
        if loop is asyncio.get_running_loop():
            return await make()
        try:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), loop))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Nobody cancelled us, so home did: it closed while the call was under way.
            raise ConnectionError("the connection was closed during the call") from None

    async def open(self, connection: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        """Enter `connection`; raises what it raises."""
        raise NotImplementedError

    async def close(self) -> None:
        """Leave it again. Waits until it is left, also when cancelled."""
        raise NotImplementedError


class ThreadHome(Home):
    """A thread with a loop of its own; the connection is entered and left by one task in it."""

    def __init__(self) -> None:
        super().__init__()
        self._ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._gone: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._stop: asyncio.Event | None = None
        self._main: asyncio.Task[Any] | None = None
        self._thread: threading.Thread | None = None

    async def open(self, connection: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self._thread = threading.Thread(target=self._work, args=(connection,), name="maymust-mcp", daemon=True)
        self._thread.start()
        try:
            await asyncio.wrap_future(self._ready)
        except BaseException:
            await self.close()
            raise

    def _work(self, connection: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        try:
            asyncio.run(self._live(connection))
        except BaseException as error:
            # Whoever waits in `open` gets it; after that nobody is there to be told.
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            self._loop = None
            self._gone.set_result(None)

    async def _live(self, connection: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self._stop, self._main = asyncio.Event(), asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        async with connection():
            if not self._ready.cancelled():
                self._ready.set_result(None)
                await self._stop.wait()

    async def close(self) -> None:
        loop, stop, main = self._loop, self._stop, self._main
        if loop is not None and stop is not None and main is not None:
            established = self._ready.done() and not self._ready.cancelled()
            # A loop that has just closed needs no telling.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set if established else main.cancel)
        await uncancelled(asyncio.wrap_future(self._gone))
        if self._thread is not None:
            # Its last statement was to say so.
            self._thread.join()


class HereHome(Home):
    """The running loop, for a session that lives in it already."""

    def __init__(self) -> None:
        super().__init__()
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def open(self, connection: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self._loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = self._loop.create_future()
        self._task = asyncio.create_task(self._live(connection, ready))
        try:
            await ready
        except BaseException:
            self._task.cancel()
            await self.close()
            raise

    async def _live(self, connection: Callable[[], AbstractAsyncContextManager[Any]], ready: asyncio.Future[None]) -> None:
        try:
            async with connection():
                if not ready.cancelled():
                    ready.set_result(None)
                await self._stop.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)

    async def close(self) -> None:
        self._stop.set()
        self._loop = None
        if self._task is not None:
            await uncancelled(self._task)


async def uncancelled(work: asyncio.Future[None]) -> None:
    """Wait for `work` to the end; a cancellation that comes meanwhile is passed on afterwards."""
    cancelled = False
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


@contextlib.asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `work` beside the body, and cancel it when the body is done."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])

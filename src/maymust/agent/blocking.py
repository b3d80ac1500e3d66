"""Running a coroutine to its end for callers that are not async."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end in this thread, or in another one when this thread's event loop is running. Raises what `work` raises.

    An interrupt while it waits for the other thread cancels the work, and is passed on when that has ended.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    helper = _Helper(work)
    thread = threading.Thread(target=contextvars.copy_context().run, args=(helper.run,), name="maymust run_sync")
    thread.start()
    try:
        thread.join()
    except BaseException:
        helper.cancel()
        thread.join()
        raise
    if helper.fault is not None:
        raise helper.fault
    return helper.result


class _Helper(Generic[T]):
    """The work in a thread of its own, and what came of it."""

    result: T

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[T] | None = None
        self.fault: BaseException | None = None

    def run(self) -> None:
        """The body of the thread."""
        try:
            self.result = asyncio.run(self._main())
        except BaseException as fault:
            self.fault = fault

    async def _main(self) -> T:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        return await self._work

    def cancel(self) -> None:
        """End the work early, from another thread."""
        if self._loop is not None and self._task is not None:
            # A loop that has just closed has nothing to cancel.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)


def running_loop() -> asyncio.AbstractEventLoop:
    """The event loop that runs here. Raises RuntimeError when there is none: a run has to be somewhere."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError("a run starts in a running event loop, and there is none here; use agent.run_sync() or resume_sync()") from None

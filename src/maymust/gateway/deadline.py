"""What ends a request before its time: it takes too long, or its client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Deadline:
    """Stops what the current task does inside `with`: after so many seconds, or at once by `stop`. An error takes the place of that.

    seconds  how long it may take
    error    makes the error
    """

    __slots__ = ("_at", "_error", "_loop", "_others", "_task", "_timer", "_why")

    def __init__(self, seconds: float, error: Callable[[], Exception]) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("there is no task that could be stopped")
        self._task = task
        self._others = task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._why: Exception | None = None
        self._error = error
        self._at = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._at, self._check)

    def renew(self, seconds: float, error: Callable[[], Exception]) -> None:
        """Begin another time."""
        self._error = error
        self._at = self._loop.time() + seconds
        # A timer that is too early is set anew when it goes off, which it hardly ever does; setting one costs more than all the rest.
        if self._at < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(self._at, self._check)

    def _check(self) -> None:
        if self._loop.time() < self._at:
            self._timer = self._loop.call_at(self._at, self._check)
        else:
            self.stop(self._error())

    def stop(self, why: Exception) -> None:
        """Stop now, with this error."""
        if self._why is None:
            self._why = why
            self._task.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._timer.cancel()
        # Somebody else may have cancelled the task as well, and that goes on.
        if self._why is not None and self._task.uncancel() <= self._others and kind is asyncio.CancelledError:
            raise self._why from None

"""Changes of an MCP server's list of tools, and who listens to them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from maymust.tools.function_tool import Tool

logger: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """A change of a server's list. A tool whose description or schema changed is in both, as two `Tool` objects of one name."""

    added: tuple[Tool, ...]
    removed: tuple[Tool, ...]


Told = Callable[[ToolsChanged | None], None]
"""Hears of changes, in whatever thread; None when there will be no more."""


class Changes:
    """The listeners to one server's list."""

    def __init__(self) -> None:
        self._listeners: list[Told] = []

    def listen(self, listener: Told) -> Callable[[], None]:
        """Tell `listener` from now on; gives a function that ends this."""
        self._listeners.append(listener)

        def end() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return end

    def tell(self, change: ToolsChanged | None) -> None:
        """Tell everybody. One that raises is logged."""
        for listener in list(self._listeners):
            try:
                listener(change)
            except Exception:
                logger.exception("a listener for changes of an MCP server's tools failed")

    def iterate(self) -> AsyncIterator[ToolsChanged]:
        """The changes from now on, in the running event loop."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[ToolsChanged | None] = asyncio.Queue()
        end = self.listen(lambda change: _put(loop, queue, change))

        async def changes() -> AsyncIterator[ToolsChanged]:
            try:
                while (change := await queue.get()) is not None:
                    yield change
            finally:
                end()

        return changes()


def _put(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[ToolsChanged | None], change: ToolsChanged | None) -> None:
    # A loop that is closed has nobody left who waits.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(queue.put_nowait, change)

"""A client that does not take what is sent to it: it is cut off, or what waits for it would stay for as long as it likes."""

from __future__ import annotations

import asyncio

_LEAST = 16_384
"""So many bytes a client has to take in each time."""


class SlowReader:
    """Watches a transport that has more to send than it gets rid of.

    seconds  how long a client may take for 16 KiB
    """

    __slots__ = ("_left", "_loop", "_seconds", "_timer", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._transport = transport
        self._loop = loop
        self._seconds = seconds
        self._left = 0
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """If something waits to be sent, it has to get less from now on."""
        left = self._transport.get_write_buffer_size()
        if left and self._timer is None:
            self._left = left
            self._timer = self._loop.call_later(self._seconds, self._check)

    def stop(self) -> None:
        """Nothing waits any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        left = self._transport.get_write_buffer_size()
        if left and left > self._left - _LEAST:
            self._transport.abort()
        else:
            self.watch()

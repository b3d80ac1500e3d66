"""The server's side of a connection: how long it waits for its client, and how its answers are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from maymust.gateway.slow_reader import SlowReader

LEAVING = "maymust.leaving"

_MOST_GATHERED = 65_536


class GatheringTransport:
    """A transport that sends in one piece what is written within one step of the event loop.

    uvicorn writes the head, the pieces and the end of an answer one by one, and each would be a packet of its own. `closing` is called when
    it is closed.
    """

    __slots__ = ("_closing", "_gathered", "_loop", "_parts", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, closing: Callable[[], None] | None = None) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        self._gathered = 0
        self._closing = closing

    def write(self, data: bytes) -> None:
        """Send this soon."""
        if not data:
            return
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)
        self._gathered += len(data)
        if self._gathered > _MOST_GATHERED:
            self._send()

    def _send(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            self._gathered = 0
            self._transport.write(data)

    def close(self) -> None:
        """Send what is left, and close."""
        self._send()
        if self._closing is not None:
            self._closing()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class PatientProtocol(H11Protocol):
    """HTTP/1.1 of uvicorn, which waits only so long for the head of a request, and for a client to take what is sent to it. `seconds` and
    `write_seconds` are set for each server.

    The scope of a request has the extension `LEAVING`: a function that is given what to call when the client leaves, and returns what
    ends that. The way of ASGI would take a task of its own for each request, that waits for a message.
    """

    seconds: float = 10.0
    write_seconds: float = 30.0
    _deadline: asyncio.TimerHandle | None = None
    _reader: SlowReader | None = None
    _leaving: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._reader = SlowReader(transport, self.loop, self.write_seconds)
        self.transport = GatheringTransport(transport, self.loop, self._reader.watch)  # type: ignore[assignment]
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._stop_waiting()
        elif self._deadline is None and self.timeout_keep_alive_task is None:
            self._wait()

    def handle_events(self) -> None:
        super().handle_events()
        scope: Any = self.scope
        if scope is not None:
            # The application begins in a later step of the loop.
            scope.setdefault("extensions", {})[LEAVING] = self._when_leaving

    def _when_leaving(self, tell: Callable[[], None]) -> Callable[[], None]:
        self._leaving = tell
        # A long body may have stopped the reading, and then nobody would hear of it.
        self.flow.resume_reading()
        if self.transport.is_closing():
            tell()
        return partial(self._forget, tell)

    def _forget(self, tell: Callable[[], None]) -> None:
        # The next request of the connection may have begun before the last one has cleared up.
        if self._leaving is tell:
            self._leaving = None

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._reader is not None:
            self._reader.watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reader is not None and not self.transport.is_closing():
            self._reader.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if self._reader is not None:
            self._reader.stop()
        super().connection_lost(exc)
        if self._leaving is not None:
            self._leaving()
        scope: Any = self.scope
        if scope is not None:
            # The scope would keep the connection, and the connection keeps the scope.
            scope["extensions"].pop(LEAVING, None)

    def _wait(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()

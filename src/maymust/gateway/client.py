"""The way back to the client: an ASGI connection that is written to at most once from its beginning to its end."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]


class Client:
    """A client that waits for a response. `started`: the status is out, so that an error can only be told in the stream."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started: bool = False
        self.ended: bool = False
        self.status: int = 0

    async def start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Begin the response."""
        self.started = True
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": list(headers)})

    async def write(self, data: bytes) -> None:
        """Send a piece of the body."""
        if data:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece of the body."""
        self.ended = True
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def whole(self, status: int, headers: Sequence[tuple[bytes, bytes]], data: bytes) -> None:
        """Send a response in one piece."""
        await self.start(status, [*headers, (b"content-length", str(len(data)).encode())])
        await self.end(data)

    async def json(self, status: int, value: Any, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        """Send a value."""
        await self.whole(status, [(b"content-type", b"application/json"), *headers], json.dumps(value).encode())

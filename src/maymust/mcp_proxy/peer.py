"""One of the two that the proxy stands between: what is sent to it, and what it is asked by the proxy itself."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCResponse

from maymust.mcp_proxy.messages import CANCELLED, notification, request

_COURTESY_SECONDS = 1.0


class Gone(Exception):
    """The other side is not there any more."""


class Faulted(Exception):
    """The other side answered a request of ours with an error."""

    def __init__(self, error: ErrorData) -> None:
        super().__init__(error.message)
        self.error = error


class Peer:
    """A client or a server. `write` takes messages; `name` is for errors."""

    def __init__(self, name: str, write: Any) -> None:
        self.name = name
        self._write = write
        # No peer can guess them, so none can answer for another, and they never meet ids of theirs.
        self._prefix = f"maymust-{secrets.token_hex(8)}-"
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self._is_gone = False

    async def send(self, message: JSONRPCMessage) -> None:
        """Send a message. Raises Gone."""
        try:
            await self._write.send(SessionMessage(message))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise Gone(f"{self.name} is gone") from None

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Send a request of the proxy's own, and wait for its result. Raises Faulted, and Gone. Who is cancelled takes the request back."""
        if self._is_gone:
            raise Gone(f"{self.name} is gone")
        self._count += 1
        key = f"{self._prefix}{self._count}"
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[key] = answer
        try:
            await self.send(request(key, method, params))
            return await answer
        except asyncio.CancelledError:
            with anyio.move_on_after(_COURTESY_SECONDS, shield=True), contextlib.suppress(Gone):
                await self.send(notification(CANCELLED, {"requestId": key, "reason": "it is not needed any more"}))
            raise
        finally:
            self._asked.pop(key, None)

    def took(self, message: JSONRPCResponse | JSONRPCError) -> bool:
        """Take an answer to a request of ours; False when it is somebody else's."""
        if not isinstance(message.id, str) or not message.id.startswith(self._prefix):
            return False
        answer = self._asked.get(message.id)
        if answer is not None and not answer.done():
            if isinstance(message, JSONRPCError):
                answer.set_exception(Faulted(message.error))
            else:
                answer.set_result(message.result)
        return True

    def gone(self) -> None:
        """It has ended: whoever waits for it is told."""
        self._is_gone = True
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(Gone(f"{self.name} is gone"))

"""The official client on one side, the official server on the other, and the proxy between them: all of it in one process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server.mcpserver import MCPServer
from mcp.shared.memory import create_client_server_memory_streams
from mcp.types import CallToolResult, ElicitResult, TextContent

from maymust import Policy
from maymust.mcp_proxy.relay import Relay

HANDSHAKE, MODERN = "legacy", "2026-07-28"
ERAS = [pytest.param(HANDSHAKE, id="handshake"), pytest.param(MODERN, id="modern")]


@contextlib.asynccontextmanager
async def streams(kept: Any) -> AsyncIterator[Any]:
    """Streams that are there already, as a transport."""
    yield kept


@contextlib.asynccontextmanager
async def proxied(
    policy: Policy, server: MCPServer | Any, *, mode: str = HANDSHAKE, settings: dict[str, Any] | None = None, **client: Any
) -> AsyncIterator[Client]:
    """A client that is connected to a server through the proxy."""
    async with InMemoryTransport(server) as upstream, create_client_server_memory_streams() as (outer, inner):
        relay = asyncio.create_task(Relay(policy, inner, upstream, **(settings or {})).run())
        try:
            async with Client(streams(outer), mode=mode, cache=None, **client) as connected:
                yield connected
        finally:
            relay.cancel()
            await asyncio.gather(relay, return_exceptions=True)


def text(result: CallToolResult) -> str:
    """The text of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def names(client: Client) -> list[str]:
    """What the client is shown."""
    return [tool.name for tool in (await client.list_tools()).tools]


def run(main: Callable[[], Any]) -> Any:
    """Run a test, for not too long."""
    return asyncio.run(asyncio.wait_for(main(), 20))


def person(*answers: str, heard: list[str] | None = None) -> Any:
    """Somebody who answers questions, one after another."""
    left = list(answers)

    async def answer(context: Any, params: Any) -> ElicitResult:
        if heard is not None:
            heard.append(params.message)
        return ElicitResult(action=left.pop(0))  # type: ignore[arg-type]

    return answer


class Heard:
    """The notifications that reach a client."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.changed = asyncio.Event()

    async def __call__(self, message: Any) -> None:
        self.kinds.append(type(message).__name__)
        if type(message).__name__ == "ToolListChangedNotification":
            self.changed.set()

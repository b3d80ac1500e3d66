"""Answers leave in one packet where they are written in one step, in order, and nothing is lost at the end."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

import uvicorn
from uvicorn.server import ServerState

from maymust.gateway.options import Options
from maymust.gateway.protocol import LEAVING, GatheringTransport, PatientProtocol
from maymust.gateway.server import bind
from tests.gateway.in_a_loop import in_a_loop


class Recorded:
    """A transport that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.name = "a transport"

    def write(self, data: bytes) -> None:
        self.told.append(data)

    def close(self) -> None:
        self.told.append("closed")


def gathering() -> tuple[GatheringTransport, Recorded]:
    inner = Recorded()
    return GatheringTransport(cast("asyncio.Transport", inner), asyncio.get_running_loop()), inner


@in_a_loop
async def test_what_is_written_in_one_step_is_sent_in_one_piece() -> None:
    transport, inner = gathering()
    for data in (b"head", b"", b"body"):
        transport.write(data)
    assert inner.told == []
    await asyncio.sleep(0)
    transport.write(b"more")
    await asyncio.sleep(0)
    assert inner.told == [b"headbody", b"more"]
    assert transport.name == "a transport"


@in_a_loop
async def test_nothing_is_lost_when_it_closes() -> None:
    transport, inner = gathering()
    transport.write(b"the end")
    transport.close()
    await asyncio.sleep(0)
    assert inner.told == [b"the end", "closed"]


@in_a_loop
async def test_much_is_not_gathered() -> None:
    transport, inner = gathering()
    transport.write(b"a")
    transport.write(b"b" * 70_000)
    transport.write(b"c")
    assert inner.told == [b"a" + b"b" * 70_000]
    await asyncio.sleep(0)
    assert inner.told[1:] == [b"c"]


class Line(asyncio.Transport):
    """A connection that goes nowhere."""

    def is_closing(self) -> bool:
        return False

    def write(self, data: Any) -> None:
        """Nobody reads it."""

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """There is nothing to read."""

    def resume_reading(self) -> None:
        """There is nothing to read."""

    def close(self) -> None:
        """It is not open."""


@in_a_loop
async def test_the_end_of_one_request_does_not_keep_the_next_one_from_hearing_that_its_client_left() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        """It never comes to it."""

    protocol = PatientProtocol(uvicorn.Config(application, log_config=None), ServerState(), {})
    protocol.connection_made(Line())
    protocol.data_received(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
    when_leaving = cast("Any", protocol.scope)["extensions"][LEAVING]
    told: list[str] = []
    end_first = when_leaving(lambda: told.append("first"))
    end_second = when_leaving(lambda: told.append("second"))
    end_first()
    protocol.connection_lost(None)
    assert told == ["second"]
    end_second()
    await asyncio.sleep(0)


@in_a_loop
async def test_what_is_accepted_sends_without_waiting_for_an_acknowledgement() -> None:
    accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accepted.put(writer)

    with bind(Options(upstream="", port=0)) as listening:
        async with await asyncio.start_server(take, sock=listening):
            _, client = await asyncio.open_connection(*listening.getsockname())
            server = await accepted.get()
            assert server.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            for writer in (client, server):
                writer.close()
                await writer.wait_closed()

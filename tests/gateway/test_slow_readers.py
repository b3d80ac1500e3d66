"""A client that does not take its reply is cut off, one that is only slow gets all of it."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any

import httpx
import pytest

from maymust import Policy
from tests.gateway.asking import CHAT, counts, post
from tests.gateway.gateway_process import gateway
from tests.gateway.raw_upstream import Answer, RawUpstream, chat_chunks, chat_reply, stream, whole

FREE = Policy([], tools=["think", "search", "refund"])
TEXT = "x" * 60_000
LONG = "y" * 8_000_000


def connected(url: str, body: Any, room: int = 4096) -> socket.socket:
    """A client that has asked, with so much room for the answer."""
    host, _, port = url.removeprefix("http://").partition(":")
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    line.connect((host, int(port)))
    data = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    line.sendall(head.encode() + data)
    line.settimeout(20)
    return line


def taken(line: socket.socket) -> bytes:
    """What still comes until the connection ends."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while data := line.recv(65_536):
            got += data
    return got


ENDLESS = stream(chat_chunks({"content": TEXT}, finish=None), endless=True)
HELLO = whole(chat_reply("hello"))


def test_a_stream_that_nobody_reads_is_given_up_and_leaves_room_for_others() -> None:
    with (
        RawUpstream(ENDLESS, HELLO) as upstream,
        gateway(FREE, upstream.url, max_requests=1, write_timeout=0.5) as url,
        connected(url, {**CHAT, "stream": True}) as line,
    ):
        assert upstream.left.wait(15)
        assert 'maymust_gateway_requests_total{outcome="disconnected"' in counts(url, 'outcome="disconnected"')
        assert post(url, CHAT).status_code == 200
        assert not taken(line).endswith(b"0\r\n\r\n")


def test_a_stream_that_took_too_long_waits_for_nobody_to_read_of_it() -> None:
    with (
        RawUpstream(ENDLESS, HELLO) as upstream,
        gateway(FREE, upstream.url, max_requests=1, timeout=1.0, write_timeout=2.0) as url,
        connected(url, {**CHAT, "stream": True}),
    ):
        assert 'outcome="too_slow"' in counts(url, 'outcome="too_slow"')
        assert post(url, CHAT).status_code == 200


@pytest.mark.parametrize("answer", [whole(chat_reply(LONG)), whole(chat_reply(LONG), status=500)], ids=["reply", "error"])
def test_a_whole_reply_that_nobody_takes_is_dropped(answer: Answer) -> None:
    with RawUpstream(answer) as upstream, gateway(FREE, upstream.url, write_timeout=0.5) as url, connected(url, CHAT) as line:
        upstream.wait_for()
        time.sleep(2)
        assert len(taken(line)) < len(LONG)
        assert httpx.get(url + "/healthz", trust_env=False).status_code == 200


def test_who_reads_slowly_gets_the_whole_reply() -> None:
    with (
        RawUpstream(whole(chat_reply(LONG))) as upstream,
        gateway(FREE, upstream.url, write_timeout=0.5) as url,
        connected(url, CHAT, room=262_144) as line,
    ):
        length, began = 0, time.monotonic()
        while length < len(LONG):
            data = line.recv(131_072)
            assert data
            length += len(data)
            time.sleep(0.02)
    assert time.monotonic() - began > 1

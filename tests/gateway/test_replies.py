"""Bodies of the upstream are handed on as they come, decoded where they are compressed; closing the response is up to whoever asked."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator

import httpx
import pytest

from maymust.gateway import replies
from maymust.gateway.rejected import Rejected
from tests.gateway.in_a_loop import in_a_loop


class Body(httpx.AsyncByteStream):
    """A body in pieces, that knows whether it was closed."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    async def aclose(self) -> None:
        self.closed = True


@in_a_loop
async def test_the_response_is_still_open_when_the_last_piece_is_handed_on() -> None:
    body = Body(b"one", b"two")
    assert [piece async for piece in replies.pieces(httpx.Response(200, stream=body), 100)] == [b"one", b"two"]
    assert not body.closed


@in_a_loop
async def test_a_compressed_body_is_read() -> None:
    packed = gzip.compress(b"a text " * 20)
    response = httpx.Response(200, headers={"content-encoding": "gzip"}, stream=Body(packed[:9], packed[9:]))
    assert await replies.body(response, 1000) == b"a text " * 20


@in_a_loop
async def test_a_small_body_that_unpacks_to_a_large_one_is_rejected() -> None:
    response = httpx.Response(200, headers={"content-encoding": "gzip"}, stream=Body(gzip.compress(b"0" * 100_000)))
    with pytest.raises(Rejected, match="longer than 1000 bytes"):
        await replies.body(response, 1000)


@in_a_loop
async def test_a_body_that_is_not_packed_as_it_says_is_rejected() -> None:
    response = httpx.Response(200, headers={"content-encoding": "gzip"}, stream=Body(b"plain"))
    with pytest.raises(Rejected, match="cut off"):
        await replies.body(response, 1000)

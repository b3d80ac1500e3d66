"""Reading a response of the upstream."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

import httpx

from maymust.gateway.rejected import Rejected


async def pieces(response: httpx.Response, most: int) -> AsyncIterator[bytes]:
    """The body in pieces, as they come. Raises Rejected when it is cut off, or longer than `most` bytes."""
    length = 0
    try:
        async for piece in _read(response):
            length += len(piece)
            if length > most:
                raise Rejected(502, "upstream", f"the reply is longer than {most} bytes")
            yield piece
    except httpx.TimeoutException as error:
        raise Rejected(504, "upstream", "the upstream stopped in the middle of its reply") from error
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise Rejected(502, "upstream", f"the reply was cut off ({type(error).__name__})") from error


def _read(response: httpx.Response) -> AsyncIterable[bytes]:
    # Only a compressed body needs httpx to read it. It would close the response before the last piece is handed on, and a client would get
    # the end of its stream in a packet of its own; whoever has asked closes the response.
    if isinstance(response.stream, httpx.AsyncByteStream) and "content-encoding" not in response.headers:
        return response.stream
    return response.aiter_bytes()


async def body(response: httpx.Response, most: int) -> bytes:
    """The whole body. Raises what `pieces` raises."""
    return b"".join([piece async for piece in pieces(response, most)])


def kind(response: httpx.Response) -> str:
    """What the body is said to be, without parameters."""
    said: str = response.headers.get("content-type", "")
    return said.partition(";")[0].strip().lower()

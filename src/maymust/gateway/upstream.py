"""The way to the provider: what goes on of a request, and what comes back of a response."""

from __future__ import annotations

import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx

from maymust.errors import PolicyError
from maymust.gateway.rejected import Rejected

Headers = Sequence[tuple[bytes, bytes]]

_ONE = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=30.0)

_MOST_KNOWN = 256
"""Paths come from clients."""

_OF_A_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade".split()
)
_NOT_SENT = _OF_A_HOP | {b"content-length", b"host", b"expect", b"accept-encoding"}
_NOT_RETURNED = _OF_A_HOP | {b"content-length", b"content-encoding"}


def _named_in_connection(headers: Headers) -> frozenset[bytes]:
    """Headers that the sender meant for this hop only (RFC 9110, 7.6.1)."""
    words = (word.strip().lower() for key, value in headers if key.lower() == b"connection" for word in value.split(b","))
    return frozenset(words)


def sent_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers of a client that go on, keys among them. Replies have to be read, so none is asked for in compressed form."""
    left_out = _NOT_SENT | _named_in_connection(headers)
    return [*((key, value) for key, value in headers if key.lower() not in left_out), (b"accept-encoding", b"identity")]


def returned_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers of a response that go back."""
    left_out = _NOT_RETURNED | _named_in_connection(headers)
    return [(key.lower(), value) for key, value in headers if key.lower() not in left_out]


class Upstream:
    """A provider.

    url           its base, such as `https://api.openai.com`; a `/v1` at its end is not doubled
    read_timeout  seconds in which it has to go on
    connections   so many are kept for later requests

    Raises PolicyError for what is no http or https URL.
    """

    def __init__(self, url: str, *, read_timeout: float, connections: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
            raise PolicyError(f"upstream has to be the base URL of a provider, such as https://api.openai.com, got {url!r}")
        self.url: str = f"{parts.scheme}://{parts.netloc}"
        self._base = parts.path.rstrip("/")
        proxy = _proxy(parts.scheme, parts.hostname)
        # Certificates are read once, and not at all without TLS.
        trusted: Any = httpx.create_ssl_context() if parts.scheme == "https" or proxy is not None else False
        self._make = partial(httpx.AsyncHTTPTransport, verify=trusted, proxy=proxy, limits=_ONE)
        self._idle: list[httpx.AsyncHTTPTransport] = []
        self._known: dict[str, httpx.URL] = {}
        self._most_idle = connections
        self._timeout = {"connect": 10.0, "read": read_timeout, "write": 60.0, "pool": 30.0}

    @asynccontextmanager
    async def asked(self, method: str, path: str, query: bytes, headers: Headers, body: bytes) -> AsyncIterator[httpx.Response]:
        """Send a request; the body of the response is still to be read. What is not read by the end is given up. Raises Rejected."""
        # Transports alone: a client would keep cookies of one user for another, and follow redirects past the gateway. Each has one
        # connection, for the time a pool takes grows with the square of the requests under way.
        transport = self._idle.pop() if self._idle else self._make()
        try:
            response = await self._send(transport, method, path, query, headers, body)
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            if len(self._idle) < self._most_idle:
                self._idle.append(transport)
            else:
                await transport.aclose()

    async def _send(
        self, transport: httpx.AsyncHTTPTransport, method: str, path: str, query: bytes, headers: Headers, body: bytes
    ) -> httpx.Response:
        try:
            url = self._known.get(path) if not query else None
            if url is None:
                url = self._url(path, query)
            request = httpx.Request(method, url, headers=list(headers), content=body, extensions={"timeout": self._timeout})
            return await transport.handle_async_request(request)
        except httpx.TimeoutException as error:
            raise Rejected(504, "upstream", f"the upstream did not answer in time ({type(error).__name__})") from error
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise Rejected(502, "upstream", f"the upstream cannot be reached ({type(error).__name__})") from error

    def _url(self, path: str, query: bytes) -> httpx.URL:
        """Where a request goes. Reading a URL takes long and there are few, so it is kept, unless it has a query, in which a key may be."""
        base = self._base.removesuffix("/v1") if path.startswith("/v1/") else self._base
        made = httpx.URL(f"{self.url}{base}{path}" + (f"?{query.decode('latin-1')}" if query else ""))
        if not query:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[path] = made
        return made

    async def close(self) -> None:
        """Close its connections."""
        while self._idle:
            await self._idle.pop().aclose()


def _proxy(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for this host."""
    if urllib.request.proxy_bypass(host):
        return None
    found = urllib.request.getproxies()
    return found.get(scheme) or found.get("all")

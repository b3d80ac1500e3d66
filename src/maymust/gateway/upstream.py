"""The way to the provider: what goes on of a request, and what comes back of a response."""

from __future__ import annotations

import urllib.request
from collections.abc import Sequence
from urllib.parse import urlsplit

import httpx

from maymust.errors import PolicyError
from maymust.gateway.rejected import Rejected

Headers = Sequence[tuple[bytes, bytes]]

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

    Raises PolicyError for what is no http or https URL.
    """

    def __init__(self, url: str, *, read_timeout: float, connections: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
            raise PolicyError(f"upstream has to be the base URL of a provider, such as https://api.openai.com, got {url!r}")
        self.url: str = f"{parts.scheme}://{parts.netloc}"
        self._base = parts.path.rstrip("/")
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=30.0)
        # The transport alone: a client would keep cookies of one user for another, and follow redirects past the gateway.
        proxy = _proxy(parts.scheme, parts.hostname)
        # Without TLS there are no certificates to read.
        self._transport = httpx.AsyncHTTPTransport(limits=limits, proxy=proxy, verify=parts.scheme == "https" or proxy is not None)
        self._timeout = {"connect": 10.0, "read": read_timeout, "write": 60.0, "pool": 30.0}

    async def send(self, method: str, path: str, query: bytes, headers: Headers, body: bytes) -> httpx.Response:
        """Send a request; the body of the response is still to be read, and to be closed. Raises Rejected."""
        base = self._base.removesuffix("/v1") if path.startswith("/v1/") else self._base
        url = f"{self.url}{base}{path}" + (f"?{query.decode('latin-1')}" if query else "")
        try:
            request = httpx.Request(method, url, headers=list(headers), content=body, extensions={"timeout": self._timeout})
            return await self._transport.handle_async_request(request)
        except httpx.TimeoutException as error:
            raise Rejected(504, "upstream", f"the upstream did not answer in time ({type(error).__name__})") from error
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise Rejected(502, "upstream", f"the upstream cannot be reached ({type(error).__name__})") from error

    async def close(self) -> None:
        """Close its connections."""
        await self._transport.aclose()


def _proxy(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for this host."""
    if urllib.request.proxy_bypass(host):
        return None
    found = urllib.request.getproxies()
    return found.get(scheme) or found.get("all")

"""Who may talk to the server: pages of its own, under the names it has."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from maymust.errors import missing

try:
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.responses import PlainTextResponse
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as _fault:
    raise missing("maymust.web.guard needs starlette", "web", _fault) from _fault

_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Refuses requests under foreign names (a rebound DNS name) and from foreign pages, and adds the headers that keep the page closed.

    app     what is guarded
    host    the address it listens at; on loopback only loopback names are good, elsewhere addresses and the names of this machine too
    policy  the Content-Security-Policy
    """

    def __init__(self, app: ASGIApp, *, host: str, policy: str) -> None:
        self._app = app
        self._open = not is_loopback(host)
        self._names = {"localhost", host.lower(), *([socket.gethostname().lower()] if self._open else [])}
        self._headers = {**_HEADERS, "content-security-policy": policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def closed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        wrong = self._wrong(Headers(scope=scope), scope)
        if wrong:
            await PlainTextResponse(f"maymust: {wrong}\n", status_code=403)(scope, receive, closed)
        else:
            await self._app(scope, receive, closed)

    def _wrong(self, headers: Headers, scope: Scope) -> str | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return "this name is not the server's: open it by the address it has printed"
        origins = headers.getlist("origin")
        if any(urlsplit(origin).netloc.lower() != hosts[0].lower() or urlsplit(origin).scheme != scope["scheme"] for origin in origins):
            return "another site's page may not ask here"
        site = headers.get("sec-fetch-site", "none")
        opens_the_page = scope["path"] == "/" and scope["method"] == "GET" and headers.get("sec-fetch-mode", "navigate") == "navigate"
        if site not in ("none", "same-origin") and not opens_the_page:
            return "another site's page may not ask here"
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        if name is None:
            return False
        return name in self._names or (is_address(name) and (self._open or is_loopback(name)))


def is_address(name: str) -> bool:
    """Whether this is an IP address, which no DNS server can make stand for another one."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine gets there."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)

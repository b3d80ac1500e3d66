"""Taking a request in: what is refused before anything is read, and reading its body within limits."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from maymust.gateway.client import Receive
from maymust.gateway.rejected import Rejected, bad
from maymust.gateway.upstream import Headers

_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~:@-]+)+")
_LONGEST_HOST = 300
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Gone(Exception):
    """The client has left."""


def path_of(scope: Mapping[str, Any]) -> str:
    """The path as it was written. Raises Rejected for one that could be read in two ways."""
    raw = bytes(scope.get("raw_path") or b"").decode("latin-1")
    if not _PATH.fullmatch(raw):
        raise Rejected(404, "unknown_path", "the path has empty, relative or escaped parts")
    return raw


def check_host(headers: Headers, host: str, allowed: Collection[str]) -> None:
    """While only this machine is listened to, other names are those of pages in a browser that were led here. Raises Rejected."""
    if host not in LOOPBACK:
        return
    names = [value for key, value in headers if key == b"host"]
    found = _machine(names[0]) if len(names) == 1 and len(names[0]) <= _LONGEST_HOST else None
    if found is None or (found not in LOOPBACK and found not in allowed):
        raise Rejected(403, "bad_request", "the Host header names another machine; allow it with --allow-host")


@lru_cache(maxsize=64)
def _machine(host: bytes) -> str | None:
    """The machine that a Host header names."""
    try:
        return urlsplit(f"//{host.decode('latin-1')}").hostname
    except ValueError:
        return None


def check_headers(headers: Headers, most: int) -> None:
    """Raise Rejected for a body of another kind, too long a one, or one whose end could be read in two ways."""
    kinds: list[bytes] = []
    length: bytes | None = None
    chunked = False
    for key, value in headers:
        if key == b"content-type":
            kinds.append(value)
        elif key == b"content-length":
            length = value.strip()
        elif key == b"transfer-encoding":
            chunked = True
        elif key == b"content-encoding" and value.strip().lower() != b"identity":
            raise Rejected(415, "unsupported", "a compressed body is not read here: send it as it is")
    if chunked and length is not None:
        raise bad("the request has both a length and a transfer encoding, so its end could be read in two ways")
    if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != b"application/json":
        raise Rejected(415, "unsupported", "the body has to be application/json")
    if length is not None and length.isdigit() and int(length) > most:
        raise Rejected(413, "too_large", f"the body is longer than {most} bytes")


async def read_body(receive: Receive, most: int) -> bytes:
    """The body. Raises Rejected when it is too long, Gone when the client has left."""
    parts: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        part = message.get("body", b"")
        length += len(part)
        if length > most:
            raise Rejected(413, "too_large", f"the body is longer than {most} bytes")
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)

"""The settings of a gateway, as plain values that a worker process can be given."""

from __future__ import annotations

from dataclasses import dataclass

from maymust.gateway.checkpoint import MOST_ASKS

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a gateway runs.

    upstream           base URL of the provider
    host, port         where it listens; port 0 takes a free one
    workers            processes
    shadow             only report: requests and replies pass as they are
    max_body           the longest request in bytes
    max_reply          the longest reply in bytes
    max_requests       requests at once, in each worker
    timeout            seconds for a whole request, replies and approvals included
    read_timeout       seconds in which the upstream has to go on
    body_timeout       seconds in which a request has to be there
    header_timeout     seconds in which the head of a request has to be there
    write_timeout      seconds in which a client has to take 16 KiB of what waits for it
    asks               so many times at most the model is asked for one request
    approval_timeout   seconds that a person has
    approval_token     sent to the webhook as `Authorization: Bearer`
    allow_hosts        further names in the `Host` header that are answered while only this machine is listened to
    """

    upstream: str
    host: str = "127.0.0.1"
    port: int = 8808
    workers: int = 1
    shadow: bool = False
    max_body: int = 32 * MIB
    max_reply: int = 64 * MIB
    max_requests: int = 256
    timeout: float = 900.0
    read_timeout: float = 600.0
    body_timeout: float = 30.0
    header_timeout: float = 10.0
    write_timeout: float = 30.0
    asks: int = MOST_ASKS
    approval_timeout: float = 300.0
    approval_token: str | None = None
    allow_hosts: tuple[str, ...] = ()

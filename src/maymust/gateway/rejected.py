"""What a client reads in place of a reply: whose fault it is, what, and what to do."""

from __future__ import annotations

from typing import Literal

Fault = Literal[
    "bad_request",
    "unsupported",
    "truncated",
    "too_large",
    "too_slow",
    "busy",
    "no_lawful_step",
    "stalled",
    "policy_fault",
    "upstream",
    "unknown_path",
]
"""Why a request got no reply.

bad_request     the request cannot be read, or not in one way only
unsupported     it uses something under which the policy could not hold
truncated       a part of the run is not in the request
too_large       it is above the limit of size
too_slow        it, or its reply, took longer than the limit
busy            too many requests at once
no_lawful_step  the rules leave nothing to do here
stalled         the model kept doing what the rules do not allow
policy_fault    a requirement of the policy is at fault
upstream        the upstream cannot be reached, or sent what cannot be judged
unknown_path    the path is not one the gateway forwards
"""


class Rejected(Exception):
    """A request that gets an error of the gateway's own.

    status  the HTTP status. Nothing that would fail again in the same way gets a status that SDKs retry (408, 409, 429, 5xx)
    fault   whose fault it is, in a word
    """

    def __init__(self, status: int, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.fault: Fault = fault
        self.message = message


def bad(message: str) -> Rejected:
    """A request that cannot be read."""
    return Rejected(400, "bad_request", message)


def unsupported(message: str) -> Rejected:
    """A request under which the policy could not hold."""
    return Rejected(400, "unsupported", message)

"""From the command line to policies: which file, by which way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from maymust.core.policy import Policy
from maymust.errors import PolicyError
from maymust.gateway.served import Route, Routes, Served
from maymust.policyfile.gateway_terms import GatewayTerms

Found = Callable[[str], tuple[Policy, GatewayTerms]]
"""Reads a policy by what the command line calls it."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way as the command line writes it: `VALUE=POLICY`."""

    by: Literal["path", "header", "model"]
    text: str


def load_routes(policy: str, ways: Sequence[Way], find: Found) -> Routes:
    """The policies of a gateway. Raises PolicyError for ways that cannot be read, and what `find` raises."""
    met: dict[str, Served] = {}

    def served(text: str) -> Served:
        if text not in met:
            met[text] = Served(text, *find(text))
        return met[text]

    return Routes(served(policy), tuple(_route(way, served) for way in ways))


def _route(way: Way, served: Callable[[str], Served]) -> Route:
    value, equals, policy = way.text.rpartition("=")
    if not equals or not value or not policy:
        raise PolicyError(f"--by-{way.by} has to be VALUE=POLICY, got {way.text!r}")
    if way.by == "path" and (not value.startswith("/") or value.endswith("/")):
        raise PolicyError(f"--by-path has to begin with a path such as /finance, got {value!r}")
    if way.by == "header":
        name, colon, content = value.partition(":")
        if not colon or not name.strip() or not content.strip() or not value.isascii():
            raise PolicyError(f"--by-header has to begin with `name: value`, got {value!r}")
    return Route(way.by, value, served(policy))

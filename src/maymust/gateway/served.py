"""A policy as the gateway serves it, and which policy a request falls under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from maymust.adapters.limits import check_rules
from maymust.core.policy import Policy
from maymust.gateway.rejected import bad
from maymust.policyfile.gateway_terms import GatewayTerms


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """A policy with the terms of its file.

    name   what it is called in metrics and headers
    known  the names of its tools

    Raises UnsupportedRuleError for rules that need an agent loop.
    """

    name: str
    policy: Policy
    terms: GatewayTerms = field(default_factory=GatewayTerms)
    known: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        check_rules("the gateway", self.policy, {}, strict=True)
        # The policy's own texts: what was folded over a list of tools is found again by their identity.
        object.__setattr__(self, "known", {name: name for name in self.policy.tools})


@dataclass(frozen=True, slots=True)
class Route:
    """One way to another policy.

    by     what is looked at: the beginning of the path, a header, or the name of the model
    value  `/finance`, `x-team: finance` or `gpt-5*`
    """

    by: Literal["path", "header", "model"]
    value: str
    served: Served

    def fits(self, path: str, headers: Sequence[tuple[bytes, bytes]], model: str) -> bool:
        """Whether a request takes this way. Raises Rejected for a header that is there twice with different values."""
        if self.by == "path":
            return path.startswith(f"{self.value}/")
        if self.by == "model":
            return fnmatchcase(model, self.value)
        name, _, value = self.value.partition(":")
        wanted = name.strip().lower().encode("latin-1")
        found = {content.strip() for key, content in headers if key == wanted}
        if len(found) > 1:
            raise bad(f"the header {name.strip()} is there more than once, and decides about the policy")
        return value.strip().encode("latin-1") in found


@dataclass(frozen=True, slots=True)
class Routes:
    """The policies of a gateway: the first way that fits counts, in the order of path, header and model; else `default`."""

    default: Served
    ways: tuple[Route, ...] = ()

    def stripped(self, path: str) -> str:
        """The path without the part that only chooses a policy."""
        for way in self.ways:
            if way.by == "path" and path.startswith(f"{way.value}/"):
                return path[len(way.value) :]
        return path

    def find(self, path: str, headers: Sequence[tuple[bytes, bytes]], model: str) -> Served:
        """The policy of a request. Raises Rejected."""
        for by in ("path", "header", "model"):
            for way in self.ways:
                if way.by == by and way.fits(path, headers, model):
                    return way.served
        return self.default

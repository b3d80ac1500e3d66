"""What the requests of one worker share. None of it is about any run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from maymust.gateway.approvals import Webhook
from maymust.gateway.metrics import Metrics
from maymust.gateway.options import Options
from maymust.gateway.served import Routes
from maymust.gateway.upstream import Headers, Upstream

_MOST_MODELS = 256


class Lost:
    """Abilities that the provider has refused, by protocol and model: asked for again, each request would cost one that fails."""

    def __init__(self) -> None:
        self._by_model: dict[tuple[str, str], frozenset[str]] = {}

    def of(self, protocol: str, model: str) -> Collection[str]:
        """What this model was found not to take."""
        return self._by_model.get((protocol, model), frozenset())

    def add(self, protocol: str, model: str, ability: str) -> None:
        """Take note of one more."""
        if len(self._by_model) >= _MOST_MODELS:
            # Names come from clients; forgetting costs one failed request.
            self._by_model.clear()
        self._by_model[protocol, model] = frozenset({*self.of(protocol, model), ability})


@dataclass(frozen=True, slots=True)
class Parts:
    """What the requests of one worker share."""

    options: Options
    routes: Routes
    upstream: Upstream
    webhook: Webhook
    metrics: Metrics
    lost: Lost = field(default_factory=Lost)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request of a client: where it goes, its headers, its body as it came."""

    method: str
    path: str
    query: bytes
    headers: Headers
    body: bytes = b""

"""What is counted, for Prometheus. Labels have few values: nothing that a client writes becomes one."""

from __future__ import annotations

import os
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the folder in which several workers keep their counts together. It is read when prometheus_client is imported."""

M = TypeVar("M", Counter, Histogram)

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The counts of a gateway."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._children: dict[tuple[Any, ...], Any] = {}
        self._requests = Counter("maymust_gateway_requests", "Requests of clients.", ["protocol", "policy", "outcome"], registry=registry)
        self._asks = Counter("maymust_gateway_asks", "Times a model was asked.", ["policy"], registry=registry)
        self._refused = Counter("maymust_gateway_refused_calls", "Calls that no client has seen.", ["policy"], registry=registry)
        self._nudges = Counter("maymust_gateway_refused_texts", "Texts that were no lawful end.", ["policy"], registry=registry)
        self._unmet = Counter("maymust_gateway_unmet", "Replies for which an obligation was given up.", ["policy"], registry=registry)
        self._shadow = Counter(
            "maymust_gateway_shadow", "What would have been done, under --shadow.", ["policy", "would"], registry=registry
        )
        self._seconds = Histogram("maymust_gateway_seconds", "Time a request took.", ["protocol"], buckets=_SECONDS, registry=registry)
        self._in_flight = Gauge("maymust_gateway_in_flight", "Requests under way.", multiprocess_mode="livesum", registry=registry)

    def began(self) -> None:
        """A request is under way."""
        self._in_flight.inc()

    def finished(self, protocol: str, policy: str, outcome: str, seconds: float) -> None:
        """It came to its end: `passed`, `changed`, `upstream_error`, `disconnected`, or the fault it was rejected for."""
        self._in_flight.dec()
        self._child(self._seconds, protocol).observe(seconds)
        self._child(self._requests, protocol, policy, outcome).inc()

    def judged(self, policy: str, *, asks: int, refused: int, nudges: int, unmet: bool) -> None:
        """What it took to get a reply."""
        self._child(self._asks, policy).inc(asks)
        if refused:
            self._refused.labels(policy).inc(refused)
        if nudges:
            self._nudges.labels(policy).inc(nudges)
        if unmet:
            self._unmet.labels(policy).inc()

    def would(self, policy: str, what: str) -> None:
        """What would have been done: `pass`, `change`, `refuse_call`, `refuse_text`, or `reject`."""
        self._shadow.labels(policy, what).inc()

    def _child(self, metric: M, *labels: str) -> M:
        """The part of a metric with these labels. There are few, and finding one takes longer than counting."""
        key = (metric, *labels)
        found: M | None = self._children.get(key)
        if found is None:
            found = self._children[key] = metric.labels(*labels)
        return found

    def text(self) -> bytes:
        """All counts in the text format of Prometheus; of all workers where there are several."""
        if SHARED not in os.environ:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)

    @staticmethod
    def gone(pid: int) -> None:
        """Leave a worker that ended out of the requests under way."""
        mark_process_dead(pid)  # type: ignore[no-untyped-call]

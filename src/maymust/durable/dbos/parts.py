"""The state of a run as parts that fit into the record of a step: what a step has changed, and all of them together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from maymust.agent.state import RunState
from maymust.durable.changes import LOGS, write_changes
from maymust.durable.migrations import Document
from maymust.durable.sealing import Sealer
from maymust.durable.store import StoreError

Parts = dict[str, Document]
"""Heads with their logs, by path."""
Change = list[Any]


def changes(run_id: str, sealer: Sealer, old: RunState | None, new: RunState) -> list[Change]:
    """What makes the parts of `new` out of those of `old`. Raises StoreError for what has no JSON form."""
    gathered = _Gathered()
    try:
        write_changes(gathered, sealer, old, new)
    except (TypeError, ValueError) as fault:
        raise StoreError(f"run {run_id} cannot be stored, for something in it has no JSON form: {fault}") from fault
    return gathered.changes


def fold(parts: Parts, changed: Iterable[Change]) -> None:
    """Bring the parts up to date."""
    for word, path, *rest in changed:
        if word == "head":
            head, fixed = rest
            if fixed is not None:
                logs: Document = {name: [] for name in LOGS.values()}
                parts[path] = {**(parts.get(path) or logs), **head, **fixed}
            else:
                parts[path].update(head)
        elif word == "clear":
            parts[path][LOGS[rest[0]]] = []
        elif word == "items":
            log, items = rest
            parts[path][LOGS[log]].extend(items)
        else:
            for known in [one for one in parts if one == path or one.startswith(f"{path}/")]:
                del parts[known]


class _Gathered:
    """Keeps changed parts as plain data."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def head(self, path: str, head: Document, fixed: Document | None) -> None:
        self.changes.append(["head", path, head, fixed])

    def clear(self, path: str, log: str) -> None:
        self.changes.append(["clear", path, log])

    def item(self, path: str, log: str, place: int, data: Any) -> None:
        last = self.changes[-1]
        if last[:3] == ["items", path, log]:
            last[3].append(data)
        else:
            self.changes.append(["items", path, log, [data]])

    def gone(self, path: str) -> None:
        self.changes.append(["gone", path])

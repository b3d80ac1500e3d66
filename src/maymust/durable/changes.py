"""What an event has changed of a run's state, in parts that any store can keep.

A state is its head, which does not grow, four logs, which only grow, and the states of child agents, at the path of their call. A store
gets the parts that are new; put together again they are the document that `RunState.to_dict` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from maymust.agent.state import RunState
from maymust.durable.migrations import DOCUMENTS, Document, migrate_document
from maymust.durable.sealing import Sealer, sealed_calls
from maymust.durable.store import StoreError

_FIXED = ("system", "policy", "metadata", "before", "said")
"""Parts of a head that are the same objects from event to event."""
_LOGS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("m", "messages", lambda message: message.to_dict()),
    ("h", "history", lambda step: step.to_dict()),
    ("t", "turns", lambda turn: turn.to_dict()),
    ("p", "past_children", lambda pair: [pair[0], pair[1].to_dict()]),
)
LOGS: Mapping[str, str] = {log: name for log, name, _ in _LOGS}
"""The logs, by the letter they are kept under."""


class Keeper(Protocol):
    """Where changed parts go, in this order."""

    def head(self, path: str, head: Document, fixed: Document | None) -> None:
        """The head of the state at a path. `fixed` is None when it is as before."""
        ...

    def clear(self, path: str, log: str) -> None:
        """The log begins anew."""
        ...

    def item(self, path: str, log: str, place: int, data: Any) -> None:
        """One more item of a log."""
        ...

    def gone(self, path: str) -> None:
        """The child at this path is no more, nor are its own."""
        ...


def write_changes(keeper: Keeper, sealer: Sealer, old: RunState | None, new: RunState, path: str = "") -> None:
    """Give the parts of `new` that differ from `old`; all of them where there is no old one. Raises RunError for secrets without a key."""
    head = new.head()
    fixed = {name: head.pop(name) for name in _FIXED}
    if secrets := sealed_calls(new.calls, sealer):
        for call in head["calls"]:
            if call["call_id"] in secrets:
                call["secret"] = secrets[call["call_id"]]
    same = old is not None and all(getattr(old, name) is getattr(new, name) for name in _FIXED)
    keeper.head(path, head, None if same else fixed)
    for log, name, as_data in _LOGS:
        before, after = None if old is None else getattr(old, name), getattr(new, name)
        start = len(before) if before is not None and after.grew_from(before) else 0
        if before is not None and not start and len(before):
            keeper.clear(path, log)
        for place in range(start, len(after)):
            keeper.item(path, log, place, as_data(after[place]))
    children: Mapping[str, RunState] = {} if old is None else old.children
    for call_id, child in new.children.items():
        if child is not children.get(call_id):
            write_changes(keeper, sealer, children.get(call_id), child, f"{path}/{call_id}")
    for call_id in children:
        if call_id not in new.children:
            keeper.gone(f"{path}/{call_id}")


def assemble(
    run_id: str,
    parts: Mapping[str, Document],
    sealer: Sealer,
    migrations: Mapping[int, Callable[[Document], Document]] = DOCUMENTS,
) -> Document:
    """The document that heads and logs by path make, in the present version. Changes the heads. Raises StoreError for damaged ones."""
    try:
        for document in parts.values():
            document["children"] = {}
            for call in document["calls"]:
                _unseal(call, sealer)
        for path in sorted(parts, key=len, reverse=True):
            if path:
                parent = max((one for one in parts if one != path and path.startswith(f"{one}/")), key=len)
                parts[parent]["children"][path[len(parent) + 1 :]] = parts[path]
        return migrate_document(parts[""], migrations)
    except (KeyError, ValueError, LookupError, TypeError) as fault:
        raise damaged(run_id, fault) from fault


def damaged(run_id: str, fault: Exception) -> StoreError:
    """The error for a run that cannot be read."""
    return StoreError(f"run {run_id} is damaged in the store: {type(fault).__name__} {fault}")


def _unseal(call: dict[str, Any], sealer: Sealer) -> None:
    secret = call.pop("secret", None)
    raw = None if secret is None else sealer.unseal(secret, tool=call["name"])
    if raw is not None:
        call["shown"], call["raw_arguments"] = call["raw_arguments"], raw
        call.pop("sealed", None)

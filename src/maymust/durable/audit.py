"""The audit trail: what happened to a run, when, and who did it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maymust.agent.actions import (
    CallPending,
    Cancelled,
    ChildEvent,
    Decided,
    Event,
    Interrupted,
    MessageSent,
    ModelReplied,
    ToolFinished,
    ToolStarted,
)
from maymust.agent.state import RunState
from maymust.durable.connection import Connection
from maymust.durable.store import AuditEntry
from maymust.tools.output import json_text


@dataclass(frozen=True, slots=True)
class Told:
    """What is to be told of an event."""

    kind: str
    call_id: str | None
    by: str | None
    detail: Mapping[str, Any]


def write_audit(
    connection: Connection, at: float, run_id: str, kind: str, *, by: str | None = None, call_id: str | None = None, **detail: Any
) -> None:
    """Add an entry."""
    row = (at, run_id, kind, by, call_id, json_text({key: value for key, value in detail.items() if value is not None}))
    connection.execute("INSERT INTO audit(at, run_id, kind, by, call_id, detail) VALUES(?, ?, ?, ?, ?, ?)", row)


def audit_event(connection: Connection, at: float, state: RunState, event: Event, run_id: str) -> None:
    """The entry of an event of the run, if it is one to tell."""
    told = tell(state, event)
    if told is not None:
        write_audit(connection, at, run_id, told.kind, by=told.by, call_id=told.call_id, **told.detail)


def tell(state: RunState, event: Event, path: str = "") -> Told | None:
    """What is to be told of an event; None for nothing. Those of child agents are under `parent/child`."""
    if isinstance(event, ChildEvent):
        return tell(state.children[event.call_id], event.event, f"{path}{event.call_id}/")
    if isinstance(event, ToolStarted):
        return _told("intent", path + event.call_id, tool=tool_of(state, event.call_id))
    if isinstance(event, ToolFinished):
        return _told("result", path + event.call_id, tool=tool_of(state, event.call_id), outcome=str(event.outcome))
    if isinstance(event, Decided):
        return _told("answered", path + event.call_id, event.by, allow=event.allow, reason=event.reason)
    if isinstance(event, ModelReplied):
        return _told("reply", path or None, turn=len(state.turns))
    if isinstance(event, Interrupted | CallPending):
        return _told("waits", path + event.call_id, interrupted=isinstance(event, Interrupted))
    if isinstance(event, Cancelled):
        return _told("stopped", path or None)
    if isinstance(event, MessageSent) and event.number is None:
        # One that was sent to the store is told of when it is sent, and when it has come to the run.
        return _told("message", path or None, event.by)
    return None


def _told(kind: str, call_id: str | None, by: str | None = None, **detail: Any) -> Told:
    return Told(kind, call_id, by, {key: value for key, value in detail.items() if value is not None})


def tool_of(state: RunState, call_id: str) -> str | None:
    """The tool that a call of the last turn is for."""
    record = next((one for one in state.calls if one.call_id == call_id), None)
    if record is not None or not state.turns:
        return None if record is None else record.name
    # The turn is closed already.
    steps = state.history[-max(len(state.turns[-1].call_ids), 1) :]
    return next((step.tool for step in steps if step.call_id == call_id), None)


def read_audit(connection: Connection, run_id: str) -> list[AuditEntry]:
    """The entries of a run, oldest first."""
    rows = connection.execute("SELECT * FROM audit WHERE run_id = ? ORDER BY id", (run_id,)).fetchall()
    return [AuditEntry(row["at"], row["run_id"], row["kind"], row["by"], row["call_id"], json.loads(row["detail"])) for row in rows]


def when(at: float | None) -> str:
    """A time in words."""
    return "an unknown time" if at is None else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))

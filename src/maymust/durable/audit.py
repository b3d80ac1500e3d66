"""The audit trail: what happened to a run, when, and who did it."""

from __future__ import annotations

import json
import sqlite3
import time
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
from maymust.durable.store import AuditEntry
from maymust.tools.output import json_text


def write_audit(
    connection: sqlite3.Connection, at: float, run_id: str, kind: str, *, by: str | None = None, call_id: str | None = None, **detail: Any
) -> None:
    """Add an entry."""
    row = (at, run_id, kind, by, call_id, json_text({key: value for key, value in detail.items() if value is not None}))
    connection.execute("INSERT INTO audit(at, run_id, kind, by, call_id, detail) VALUES(?, ?, ?, ?, ?, ?)", row)


def audit_event(connection: sqlite3.Connection, at: float, state: RunState, event: Event, run_id: str, path: str = "") -> None:
    """The entry of an event of the run, if it is one to tell. Those of child agents are under `parent/child`."""
    if isinstance(event, ChildEvent):
        audit_event(connection, at, state.children[event.call_id], event.event, run_id, f"{path}{event.call_id}/")
    elif isinstance(event, ToolStarted):
        write_audit(connection, at, run_id, "intent", call_id=path + event.call_id, tool=tool_of(state, event.call_id))
    elif isinstance(event, ToolFinished):
        tool = tool_of(state, event.call_id)
        write_audit(connection, at, run_id, "result", call_id=path + event.call_id, tool=tool, outcome=str(event.outcome))
    elif isinstance(event, Decided):
        write_audit(connection, at, run_id, "answered", by=event.by, call_id=path + event.call_id, allow=event.allow, reason=event.reason)
    elif isinstance(event, ModelReplied):
        write_audit(connection, at, run_id, "reply", call_id=path or None, turn=len(state.turns))
    elif isinstance(event, Interrupted | CallPending):
        write_audit(connection, at, run_id, "waits", call_id=path + event.call_id, interrupted=isinstance(event, Interrupted))
    elif isinstance(event, Cancelled | MessageSent):
        write_audit(connection, at, run_id, "stopped" if isinstance(event, Cancelled) else "message", call_id=path or None)


def tool_of(state: RunState, call_id: str) -> str | None:
    """The tool that a call of the last turn is for."""
    record = next((one for one in state.calls if one.call_id == call_id), None)
    if record is not None or not state.turns:
        return None if record is None else record.name
    # The turn is closed already.
    steps = state.history[-max(len(state.turns[-1].call_ids), 1) :]
    return next((step.tool for step in steps if step.call_id == call_id), None)


def read_audit(connection: sqlite3.Connection, run_id: str) -> list[AuditEntry]:
    """The entries of a run, oldest first."""
    rows = connection.execute("SELECT * FROM audit WHERE run_id = ? ORDER BY id", (run_id,)).fetchall()
    return [AuditEntry(row["at"], row["run_id"], row["kind"], row["by"], row["call_id"], json.loads(row["detail"])) for row in rows]


def when(at: float | None) -> str:
    """A time in words."""
    return "an unknown time" if at is None else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))

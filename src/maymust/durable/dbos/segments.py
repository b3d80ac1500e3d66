"""A run in DBOS's tables: segments, each a workflow `run:number`, whose steps hold what the run's events have changed.

The input of segment 0 holds the state the run begins with. A segment that has come to its end holds the state in its output; one that has
not is what the segment before it came to, and its own steps.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

from maymust.agent.actions import Cancelled
from maymust.agent.reducer import apply
from maymust.agent.state import RunState
from maymust.durable.changes import assemble, damaged
from maymust.durable.dbos.parts import Parts, fold
from maymust.durable.dbos.sql import Sql
from maymust.durable.sealing import Sealer
from maymust.durable.store import AuditEntry
from maymust.errors import RunError

WORKFLOW = "maymust.segment"
LIVE = ("PENDING", "ENQUEUED", "DELAYED")
"""DBOS's words for a workflow that somebody works on, or will."""


def workflow_id(run_id: str, number: int) -> str:
    """The id of a segment."""
    return f"{run_id}:{number}"


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment as DBOS knows it. `status` is None for one that is not there."""

    run_id: str
    number: int
    status: str | None
    executor: str | None = None
    owner: str | None = None


def read_segment(sql: Sql, run_id: str, number: int) -> Segment:
    """One segment."""
    query = "SELECT status, executor_id, owner_xid FROM workflow_status WHERE workflow_uuid = ?"
    row = sql.execute(query, (workflow_id(run_id, number),)).fetchone()
    return Segment(run_id, number, None) if row is None else Segment(run_id, number, row[0], row[1], row[2])


def read_order(sql: Sql, run_id: str, number: int) -> dict[str, Any]:
    """What a segment was asked to do; empty for one that is not there."""
    row = sql.execute("SELECT inputs FROM workflow_input WHERE workflow_uuid = ?", (workflow_id(run_id, number),)).fetchone()
    arguments = [] if row is None or row[0] is None else json.loads(row[0])["positionalArgs"]
    return dict(arguments[0]) if arguments else {}


def read_steps(sql: Sql, run_id: str, number: int) -> list[tuple[str, dict[str, Any]]]:
    """The names and records of a segment's steps."""
    query = "SELECT function_name, output FROM operation_outputs WHERE workflow_uuid = ? ORDER BY function_id"
    rows = sql.execute(query, (workflow_id(run_id, number),)).fetchall()
    return [(row[0], json.loads(row[1])) for row in rows if row[1] is not None]


def read_parts(sql: Sql, run_id: str, number: int) -> Parts:
    """The state that a segment has come to, or is at. Raises RunError when there is none."""
    try:
        return _read_parts(sql, run_id, number)
    except (KeyError, ValueError, TypeError, IndexError) as fault:
        raise damaged(run_id, fault) from fault


def _read_parts(sql: Sql, run_id: str, number: int) -> Parts:
    later: list[list[Any]] = []
    while number >= 0:
        row = sql.execute("SELECT output FROM workflow_output WHERE workflow_uuid = ?", (workflow_id(run_id, number),)).fetchone()
        parts = None if row is None or row[0] is None else (json.loads(row[0]) or {}).get("state")
        if parts is None:
            later += [record["changes"] for _, record in reversed(read_steps(sql, run_id, number))]
            parts = read_order(sql, run_id, number).get("state")
        if parts is not None:
            for changed in reversed(later):
                fold(parts, changed)
            return dict(parts)
        number -= 1
    raise RunError(f"there is no state of run {run_id!r} in the store")


def state_of(run_id: str, parts: Parts, sealer: Sealer) -> RunState:
    """The state that the parts make. Raises StoreError for damaged ones."""
    return RunState.from_dict(assemble(run_id, copy.deepcopy(parts), sealer))


def stopped(state: RunState) -> RunState:
    """The state of a run that was cancelled while nobody worked on it. Tools it was about to add belong to an agent, which is not here."""
    state.exposure = ()
    return state if state.phase == "ended" else apply(state, Cancelled())


def read_events(sql: Sql, run_id: str, last: int) -> list[AuditEntry]:
    """The audit trail that is in the steps of all segments."""
    entries = []
    for number in range(last + 1):
        for _, record in read_steps(sql, run_id, number):
            entries += [AuditEntry(at, run_id, kind, by, call_id, detail) for at, kind, by, call_id, detail in record["events"]]
    return entries

"""Statements about the index of runs: rows of `runs`, who works on them, and the next segment of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dbos import DBOSClient
from dbos._error import DBOSException

from maymust.agent.state import RunState
from maymust.durable.audit import when
from maymust.durable.dbos.segments import LIVE, WORKFLOW, Segment, read_segment, workflow_id
from maymust.durable.dbos.sql import Row, Sql
from maymust.durable.owner import is_free
from maymust.durable.store import RunRow, RunTakenError, Status
from maymust.errors import RunError

_SHOWN = 200
_NOBODY = "-"
"""The tenant of runs that have none: a queue with limits per tenant wants one for every run."""


def existing(sql: Sql, run_id: str, where: object, *, lock: bool = False) -> Row:
    """The row of a run. Raises RunError when it is not there. `lock` keeps others from changing it until the transaction ends."""
    row = sql.execute("SELECT * FROM runs WHERE run_id = ?" + (sql.for_update if lock else ""), (run_id,)).fetchone()
    if row is None:
        raise RunError(f"there is no run {run_id!r} in {where}")
    return cast("Row", row)


def living(sql: Sql, run_id: str, where: object) -> Row:
    """The row of a run, locked. Raises RunError when it is not there, or was cancelled."""
    row = existing(sql, run_id, where, lock=True)
    if row["cancelled_at"] is not None:
        raise RunError(f"run {run_id} was cancelled by {row['cancelled_by'] or 'somebody'} at {when(row['cancelled_at'])}")
    return row


def remove_run(sql: Sql, row: Row) -> None:
    """Remove the run of this row, and all that is known of it."""
    for number in range(row["segment"] + 1):
        for table in ("operation_outputs", "workflow_input", "workflow_output", "workflow_status"):
            sql.execute(f"DELETE FROM {table} WHERE workflow_uuid = ?", (workflow_id(row["run_id"], number),))
    for table in ("runs", "questions", "audit", "messages"):
        sql.execute(f"DELETE FROM {table} WHERE run_id = ?", (row["run_id"],))


def add_run(sql: Sql, state: RunState, *, tenant: str | None, queue: str, timeout: float | None, status: str, owner: str | None) -> None:
    """Note a new run. Raises RunError when it is there already."""
    said = next((one.text for one in reversed(state.messages) if one.role == "user"), "")
    names = "run_id, segment, status, agent, tenant, queue, input, question_timeout, owner, created_at, updated_at"
    values = (state.run_id, 0, status, state.agent, tenant, queue, said[:_SHOWN], timeout, owner)
    marks = ", ".join("?" * len(values))
    done = sql.execute(f"INSERT INTO runs({names}) VALUES({marks}, {sql.clock}, {sql.clock}) ON CONFLICT(run_id) DO NOTHING", values)
    if done.rowcount != 1:
        raise RunError(f"run {state.run_id} is in the store already; go on with it by agent.resume({state.run_id!r})")


def set_run(sql: Sql, run_id: str, **fields: Any) -> None:
    """Change a run's row."""
    names = ", ".join(f"{name} = ?" for name in fields)
    sql.execute(f"UPDATE runs SET {names}, updated_at = {sql.clock} WHERE run_id = ?", (*fields.values(), run_id))


def enqueue(sql: Sql, client: DBOSClient, row: Mapping[str, Any], number: int, order: dict[str, Any]) -> None:
    """Make a segment for whoever listens to the run's queue, in this transaction. Raises RunTakenError when it is there already."""
    key = workflow_id(row["run_id"], number)
    options: Any = {
        "workflow_name": WORKFLOW,
        "queue_name": row["queue"],
        "workflow_id": key,
        "workflow_id_reuse_policy": "reject",
        "queue_partition_key": row["tenant"] or _NOBODY,
        "app_version": "maymust-1",
    }
    try:
        client.enqueue_in_transaction(sql.connection, options, order)
    except DBOSException as fault:
        raise RunTakenError(f"run {row['run_id']} has gone on already: somebody else decided about it at the same time") from fault


def order_for(run_id: str, number: int, why: str, **more: Any) -> dict[str, Any]:
    """What a segment is asked to do."""
    return {"segment": workflow_id(run_id, number), "why": why, **more}


def worker_of(sql: Sql, row: Row, segment: Segment) -> dict[str, Any] | None:
    """Who has the run, in the words of `maymust.durable.owner`; None for nobody."""
    executor = segment.executor if segment.status == "PENDING" else row["owner"] if segment.status is None else None
    if executor is None:
        return None
    found = sql.execute("SELECT * FROM executors WHERE executor_id = ?", (executor,)).fetchone()
    if found is None:
        return None
    until = found["beat_at"] + found["lease"]
    return {**found.to_dict(), "owner": executor, "lease_until": until, "run_id": row["run_id"]}


def is_at_work(worker: dict[str, Any] | None, now: float) -> bool:
    """Whether that executor is alive."""
    return worker is not None and not is_free(worker, now)


def seal(sql: Sql, segment: Segment) -> None:
    """Take a segment that nobody works on from whoever might still write to it. Raises RunTakenError when somebody was faster."""
    if segment.status not in LIVE:
        return
    where, values = "status = ?", [segment.status]
    if segment.status == "PENDING" and segment.executor is not None:
        where = f"{where} AND executor_id = ?"
        values.append(segment.executor)
    done = sql.execute(
        f"""UPDATE workflow_status SET status = 'CANCELLED', owner_xid = NULL, queue_name = NULL, started_at_epoch_ms = NULL
        WHERE workflow_uuid = ? AND {where}""",
        (workflow_id(segment.run_id, segment.number), *values),
    )
    if done.rowcount != 1:
        raise RunTakenError(f"run {segment.run_id} was taken by another process at the same time; look at it in the store")


def run_row(sql: Sql, row: Row, now: float) -> RunRow:
    """A row as what it says; whether a process is at work is found out now."""
    segment = read_segment(sql, row["run_id"], row["segment"])
    worker = worker_of(sql, row, segment)
    working = is_at_work(worker, now)
    waiting = "run_id = ? AND answer IS NULL AND (expires_at IS NULL OR expires_at > ?)"
    found = sql.execute(f"SELECT count(*) FROM questions WHERE {waiting}", (row["run_id"], now)).fetchone()
    return RunRow(
        run_id=row["run_id"],
        status=_status(row, segment, working),
        agent=row["agent"],
        input=row["input"],
        seq=row["segment"],
        open=found[0],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        stop_reason=row["stop_reason"],
        answer=row["answer"],
        error=row["error"],
        pid=worker["pid"] if worker is not None and working else None,
        host=worker["host"] if worker is not None and working else None,
        cancelled_by=row["cancelled_by"],
    )


def _status(row: Row, segment: Segment, working: bool) -> Status:
    if working and row["status"] not in ("paused", "ended", "stopped"):
        return "running"
    if row["cancelled_at"] is not None:
        return "cancelled"
    if segment.status in ("ENQUEUED", "DELAYED"):
        return "queued"
    if row["status"] in ("running", "queued"):
        return "interrupted"
    return cast("Status", row["status"])

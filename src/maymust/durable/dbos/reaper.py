"""What one worker at a time does for all: it gives the segments of executors that have ended to others, and answers questions in time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from maymust.durable import questions
from maymust.durable.audit import write_audit
from maymust.durable.dbos.index import existing
from maymust.durable.dbos.journal import go_on
from maymust.durable.dbos.segments import WORKFLOW
from maymust.durable.dbos.sql import Sql
from maymust.durable.owner import is_free
from maymust.durable.store import RunTakenError

if TYPE_CHECKING:
    from maymust.durable.dbos.process import Process
    from maymust.durable.dbos.store import DbosStore

_LOCK = 0x6D61_7976
"""Postgres' advisory lock for sweeping; in SQLite a transaction that writes is alone anyway."""


def sweep(store: DbosStore, process: Process) -> int:
    """Give up what is dead, and go on with what has waited for too long; gives how many segments were recovered. One at a time."""
    with store.database.writing() as sql:
        if sql.is_postgres and not sql.execute(f"SELECT pg_try_advisory_xact_lock({_LOCK})").fetchone()[0]:
            return 0
        _bury(sql, process)
        recovered = _recover(sql)
    _expire(store)
    return recovered


def _bury(sql: Sql, process: Process) -> None:
    """Forget executors that have ended. After a time in which nobody could say that he is alive, silence means nothing for a while."""
    steady = time.monotonic() - process.steady_since > process.lease
    now = sql.now()
    for row in sql.execute("SELECT * FROM executors WHERE executor_id <> ?", (process.executor,)).fetchall():
        seen = {**row.to_dict(), "owner": row["executor_id"], "lease_until": row["beat_at"] + row["lease"]}
        if is_free(seen if steady else {**seen, "lease_until": now + 1}, now):
            sql.execute("DELETE FROM executors WHERE executor_id = ? AND beat_at = ?", (row["executor_id"], row["beat_at"]))


def _recover(sql: Sql) -> int:
    """Put segments that nobody works on back into the queue of their agent. A zombie that writes to one is refused."""
    dead = sql.execute(
        """SELECT workflow_uuid, executor_id FROM workflow_status WHERE name = ? AND status = 'PENDING'
        AND NOT EXISTS (SELECT 1 FROM executors WHERE executors.executor_id = workflow_status.executor_id)""",
        (WORKFLOW,),
    ).fetchall()
    count = 0
    for key, executor in [(row[0], row[1]) for row in dead]:
        run_id = key.rpartition(":")[0]
        row = sql.execute("SELECT queue, tenant FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        if row is None:
            continue
        done = sql.execute(
            """UPDATE workflow_status SET status = 'ENQUEUED', owner_xid = NULL, started_at_epoch_ms = NULL, queue_name = ?,
            queue_partition_key = ? WHERE workflow_uuid = ? AND status = 'PENDING' AND executor_id = ?""",
            (row["queue"], row["tenant"] or "-", key, executor),
        )
        count += done.rowcount
        if done.rowcount:
            write_audit(sql, sql.now(), run_id, "recovered", taken_from=executor)
    return count


def _expire(store: DbosStore) -> None:
    """Questions that nobody has answered in time are a no, and their runs go on."""
    with store.database.reading() as sql:
        late = f"answer IS NULL AND used = 0 AND expires_at <= {sql.clock}"
        rows = sql.execute(f"SELECT DISTINCT run_id FROM questions WHERE {late} LIMIT 100").fetchall()
    for run_id in [row[0] for row in rows]:
        with store.database.writing() as sql:
            row = existing(sql, run_id, store.database, lock=True)
            questions.expire(sql, run_id, sql.now())
            if row["status"] != "paused" or row["cancelled_at"] is not None:
                continue
            try:
                go_on(sql, store, row.to_dict(), "timeout")
            except RunTakenError:
                continue

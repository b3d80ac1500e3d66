"""The index made anew from DBOS's tables alone: what a backup was taken without, or somebody has deleted, is nothing that was lost."""

from __future__ import annotations

import json
from typing import Any

from maymust.agent.pending import pending_calls
from maymust.durable import questions
from maymust.durable.dbos.index import add_run, set_run
from maymust.durable.dbos.journal import ANSWER
from maymust.durable.dbos.segments import WORKFLOW, read_order, read_parts, state_of, workflow_id
from maymust.durable.dbos.sql import Row, Sql
from maymust.durable.sealing import Sealer


def rebuild(sql: Sql, sealer: Sealer) -> int:
    """Make the rows of runs, and of questions that are open, anew; gives the number of runs. The audit trail stays as it is."""
    if sql.is_postgres:
        sql.execute("LOCK TABLE runs, questions IN EXCLUSIVE MODE")
    sql.execute("DELETE FROM runs")
    sql.execute("DELETE FROM questions WHERE used = 0")
    rows = sql.execute(
        "SELECT workflow_uuid, status, executor_id, created_at, updated_at FROM workflow_status WHERE name = ?", (WORKFLOW,)
    ).fetchall()
    segments: dict[str, dict[int, Row]] = {}
    for row in rows:
        run_id, _, number = row["workflow_uuid"].rpartition(":")
        segments.setdefault(run_id, {})[int(number)] = row
    for run_id, found in segments.items():
        _rebuild_run(sql, sealer, run_id, found)
    return len(segments)


def _rebuild_run(sql: Sql, sealer: Sealer, run_id: str, found: dict[int, Row]) -> None:
    last = max(found)
    first, order = read_order(sql, run_id, 0), read_order(sql, run_id, last)
    state = state_of(run_id, read_parts(sql, run_id, last), sealer)
    begun = state_of(run_id, first["state"], sealer)
    add_run(sql, begun, tenant=first["tenant"], queue=first["queue"], timeout=first["timeout"], status="running", owner=None)
    fields = {"segment": last, **_outcome(sql, run_id, found, last)}
    # Messages that wait are in the index only, so they stay; their numbers go on.
    waits = sql.execute("SELECT max(number) FROM messages WHERE run_id = ?", (run_id,)).fetchone()[0]
    fields["mail"] = max(state.received, waits or 0)
    if order["why"] == "cancelled":
        fields.update(cancelled_at=found[last]["updated_at"] / 1000, cancelled_by=order["by"], status="stopped", stop_reason="aborted")
    set_run(sql, run_id, **fields)
    sql.execute("UPDATE runs SET created_at = ? WHERE run_id = ?", (found[0]["created_at"] / 1000, run_id))
    if state.phase == "ended" or order["why"] == "cancelled":
        return
    questions.ask(sql, run_id, pending_calls(state), found[last]["updated_at"] / 1000, first["timeout"])
    for answer in order.get("answers", ()):
        names = [name for name in ANSWER if name != "call_id"]
        marks = ", ".join(f"{name} = ?" for name in names)
        values = [answer[name] for name in names]
        sql.execute(f"UPDATE questions SET {marks} WHERE run_id = ? AND call_id = ? AND used = 0", (*values, run_id, answer["call_id"]))


def _outcome(sql: Sql, run_id: str, found: dict[int, Row], last: int) -> dict[str, Any]:
    """What became of the last segment that came to an end of its own, or what the last one is doing."""
    status = found[last]["status"]
    if status in ("ENQUEUED", "DELAYED"):
        return {"status": "queued"}
    if status == "PENDING":
        return {"status": "running", "owner": found[last]["executor_id"]}
    for number in sorted(found, reverse=True):
        row = sql.execute("SELECT output FROM workflow_output WHERE workflow_uuid = ?", (workflow_id(run_id, number),)).fetchone()
        output = json.loads(row[0]) if row is not None and row[0] is not None else {}
        if output.get("status") in ("paused", "ended", "stopped"):
            return {name: output[name] for name in ("status", "stop_reason", "answer", "error")}
        if output.get("status") == "refused":
            return {"status": "stopped", "error": output["error"]}
        if number == last and found[number]["status"] == "CANCELLED" and read_order(sql, run_id, number)["why"] != "cancelled":
            break
    return {"status": "running"}

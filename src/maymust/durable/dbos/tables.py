"""The index of runs beside DBOS's tables, in versions; `SERIAL` stands for a key that the database counts up."""

from __future__ import annotations

LAYOUT: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE index_layout(version INTEGER NOT NULL)",
        """CREATE TABLE runs(run_id TEXT PRIMARY KEY, segment INTEGER NOT NULL, status TEXT NOT NULL, agent TEXT, tenant TEXT,
        queue TEXT NOT NULL, input TEXT NOT NULL, stop_reason TEXT, answer TEXT, error TEXT, created_at DOUBLE PRECISION NOT NULL,
        updated_at DOUBLE PRECISION NOT NULL, owner TEXT, question_timeout DOUBLE PRECISION, cancelled_at DOUBLE PRECISION,
        cancelled_by TEXT)""",
        "CREATE INDEX runs_by_age ON runs(created_at)",
        "CREATE INDEX runs_to_stop ON runs(run_id) WHERE cancelled_at IS NOT NULL AND status = 'running'",
        """CREATE TABLE questions(id SERIAL, run_id TEXT NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL, arguments TEXT NOT NULL,
        requirements TEXT NOT NULL, reasons TEXT NOT NULL, interrupted INTEGER NOT NULL, asked_at DOUBLE PRECISION NOT NULL,
        expires_at DOUBLE PRECISION, answer TEXT, output TEXT, reason TEXT, by TEXT, remember INTEGER NOT NULL DEFAULT 0,
        decided_at DOUBLE PRECISION, used INTEGER NOT NULL DEFAULT 0)""",
        "CREATE UNIQUE INDEX open_question ON questions(run_id, call_id) WHERE used = 0",
        "CREATE INDEX questions_that_wait ON questions(id) WHERE answer IS NULL",
        """CREATE TABLE audit(id SERIAL, at DOUBLE PRECISION NOT NULL, run_id TEXT NOT NULL, kind TEXT NOT NULL, by TEXT, call_id TEXT,
        detail TEXT NOT NULL)""",
        "CREATE INDEX audit_of_run ON audit(run_id, id)",
        """CREATE TABLE executors(executor_id TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, born TEXT,
        beat_at DOUBLE PRECISION NOT NULL, lease DOUBLE PRECISION NOT NULL)""",
    ),
    (
        "ALTER TABLE runs ADD COLUMN mail INTEGER NOT NULL DEFAULT 0",
        """CREATE TABLE messages(run_id TEXT NOT NULL, number INTEGER NOT NULL, message TEXT NOT NULL, by TEXT,
        sent_at DOUBLE PRECISION NOT NULL, PRIMARY KEY(run_id, number))""",
    ),
)
"""The statements that make layout n+1 out of layout n; a new database goes through all of them."""

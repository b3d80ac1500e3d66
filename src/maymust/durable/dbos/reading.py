"""What is known of runs from outside, without the agents they belong to."""

from __future__ import annotations

from maymust.agent.reducer import hear
from maymust.agent.state import RunState
from maymust.durable import messages, questions
from maymust.durable.audit import read_audit
from maymust.durable.dbos import segments
from maymust.durable.dbos.database import DbosDatabase
from maymust.durable.dbos.index import existing, run_row
from maymust.durable.sealing import Sealer
from maymust.durable.store import AuditEntry, Question, RunRow


class Reader:
    """Looks at the runs in a database."""

    def __init__(self, database: DbosDatabase, sealer: Sealer) -> None:
        self.database: DbosDatabase = database
        self.sealer: Sealer = sealer

    def knows(self, run_id: str) -> bool:
        """See `Store`."""
        with self.database.reading() as sql:
            return sql.execute("SELECT 1 FROM runs WHERE run_id = ?", (run_id,)).fetchone() is not None

    def runs(self, *, limit: int = 100) -> list[RunRow]:
        """The runs, newest first."""
        with self.database.reading() as sql:
            rows = sql.execute("SELECT * FROM runs ORDER BY created_at DESC, run_id LIMIT ?", (limit,)).fetchall()
            now = sql.now()
            return [run_row(sql, row, now) for row in rows]

    def find(self, beginning: str, *, limit: int = 10) -> list[str]:
        """Ids of runs that begin so."""
        query = "SELECT run_id FROM runs WHERE substr(run_id, 1, ?) = ? ORDER BY run_id LIMIT ?"
        with self.database.reading() as sql:
            return [row["run_id"] for row in sql.execute(query, (len(beginning), beginning, limit)).fetchall()]

    def run(self, run_id: str) -> RunRow:
        """One run. Raises RunError when it is not there."""
        with self.database.reading() as sql:
            return run_row(sql, existing(sql, run_id, self.database), sql.now())

    def state(self, run_id: str) -> RunState:
        """The state of a run, to look at, with messages that wait. Raises RunError when it is not there."""
        with self.database.reading() as sql:
            row = existing(sql, run_id, self.database)
            state = segments.state_of(run_id, segments.read_parts(sql, run_id, row["segment"]), self.sealer)
            state = hear(state, messages.unread(sql, run_id, state.received))
        return segments.stopped(state) if row["cancelled_at"] is not None and row["status"] == "stopped" else state

    def questions(self, run_id: str | None = None, *, waiting: bool = True) -> list[Question]:
        """The questions of a run or of all runs, oldest first: those that wait, or all there ever were."""
        with self.database.reading() as sql:
            found, now = questions.read_questions(sql, run_id=run_id, open_only=waiting), sql.now()
        return [one for one in found if not waiting or one.expires_at is None or one.expires_at > now]

    def audit(self, run_id: str) -> list[AuditEntry]:
        """What happened to a run, oldest first."""
        with self.database.reading() as sql:
            row = sql.execute("SELECT segment FROM runs WHERE run_id = ?", (run_id,)).fetchone()
            entries = read_audit(sql, run_id)
            entries += segments.read_events(sql, run_id, row["segment"]) if row is not None else []
        return sorted(entries, key=lambda entry: entry.at)

"""`SqliteStore`: runs in a SQLite database, on one host."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict

from maymust.agent.actions import Cancelled
from maymust.agent.journal import Answer, Claimed
from maymust.agent.reducer import apply, hear
from maymust.agent.resuming import checked
from maymust.agent.state import RunState
from maymust.durable import messages, questions, reading
from maymust.durable.audit import read_audit, when, write_audit
from maymust.durable.claim import SqliteJournal
from maymust.durable.database import Database
from maymust.durable.documents import StateWriter, read_document
from maymust.durable.owner import LEASE, Owner, is_free, taken
from maymust.durable.renewal import Renewal
from maymust.durable.sealing import Sealer
from maymust.durable.store import AuditEntry, Question, RunRow
from maymust.errors import RunError
from maymust.models.message import Message

_SHOWN = 200


class SqliteStore:
    """Keeps runs in a file, so that they outlive their process. One host; one process at a time works on a run, any number on the file.

    path              the file; made when it is not there. Not on a network file system: SQLite's locks do not hold there
    key               encrypts secrets among the arguments of calls (`maymust.durable.sealing.new_key()` makes one)
    question_timeout  seconds after which a question that nobody has answered is a no; None waits for ever
    lease             seconds after which a process that does not answer loses its runs; one that has ended loses them at once

    A step waits for the disk twice: before an effect, and after one that must not come twice. Raises StoreError.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: str | bytes | None = None,
        question_timeout: float | None = None,
        lease: float = LEASE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if question_timeout is not None and not question_timeout > 0:
            raise ValueError(f"question_timeout={question_timeout!r}: give seconds above 0, or None")
        if not lease > 0:
            raise ValueError(f"lease={lease!r}: give seconds above 0")
        self.database: Database = Database(path)
        self.question_timeout: float | None = question_timeout
        self.lease: float = lease
        self.clock: Callable[[], float] = clock
        self._sealer = Sealer(key)
        self._renewal = Renewal(self)

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.database.path)!r})"

    # --- for agents ---
    def begin(self, state: RunState) -> SqliteJournal:
        """See `Store`."""
        owner, now, said = Owner(), self.clock(), next((one.text for one in reversed(state.messages) if one.role == "user"), "")
        writer = StateWriter(state.run_id, self._sealer)
        with self.database.writing() as connection:
            if self._row(connection, state.run_id) is not None:
                raise RunError(f"run {state.run_id} is in the store already; go on with it by agent.resume({state.run_id!r})")
            connection.execute(
                """INSERT INTO runs(run_id, seq, status, agent, input, created_at, updated_at, owner, host, pid, born, lease_until)
                VALUES(?, 0, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
                (state.run_id, state.agent, said[:_SHOWN], now, now, *_columns(owner), now + self.lease),
            )
            writer.write(connection, state)
            write_audit(connection, now, state.run_id, "started", pid=owner.pid)
        writer.kept = state
        return self._journal(state.run_id, owner, 0, writer)

    def knows(self, run_id: str) -> bool:
        """See `Store`."""
        with self.database.reading() as connection:
            return self._row(connection, run_id) is not None

    def claim(self, run_id: str, answers: Mapping[str, Answer]) -> Claimed:
        """See `Store`."""
        owner, now = Owner(), self.clock()
        with self.database.writing() as connection:
            row = self._existing(connection, run_id)
            if row["cancelled_at"] is not None:
                raise RunError(f"run {run_id} was cancelled by {row['cancelled_by'] or 'somebody'} at {when(row['cancelled_at'])}")
            if not is_free(row, now):
                raise taken(row, now)
            state = RunState.from_dict(read_document(connection, run_id, self._sealer))
            questions.decide(connection, run_id, answers, None, now)
            questions.expire(connection, run_id, now)
            given = questions.answers_of(connection, run_id)
            said = messages.unread(connection, run_id, state.received)
            claimed = (*_columns(owner), now + self.lease, run_id)
            # The swap that makes a zombie's next write fail.
            connection.execute(
                "UPDATE runs SET seq = seq + 1, owner = ?, host = ?, pid = ?, born = ?, lease_until = ? WHERE run_id = ?", claimed
            )
            before = row["pid"] if row["owner"] is not None else None
            write_audit(connection, now, run_id, "claimed", pid=owner.pid, taken_from=before)
        writer = StateWriter(run_id, self._sealer)
        return Claimed(state, given, self._journal(run_id, owner, row["seq"] + 1, writer, given), said)

    def decide(self, run_id: str, answers: Mapping[str, bool | Answer], *, by: str | None = None) -> Sequence[Question]:
        """Note decisions about calls that wait, from any process; the run goes on when it is resumed.

        The first decision about a call counts. Gives the questions as they are decided now: an equal decision that was there first
        stays with its author. Raises DecisionError for one that contradicts it, or comes too late; none is noted then.
        """
        given = {call_id: checked(call_id, answer) for call_id, answer in answers.items()}
        fault: RunError | None = None
        with self.database.writing() as connection:
            self._existing(connection, run_id)
            connection.execute("SAVEPOINT answers")
            try:
                return questions.decide(connection, run_id, given, by, self.clock())
            except RunError as raised:
                # What was tried is kept in the audit trail, the answers are not.
                fault = raised
                connection.execute("ROLLBACK TO answers")
                for call_id, answer in given.items():
                    said = {"by": answer.by or by, "call_id": call_id, "answer": questions.word_of(answer)}
                    write_audit(connection, self.clock(), run_id, "too late", **said)
        raise fault

    def send(self, run_id: str, message: str | Message, *, by: str | None = None) -> None:
        """Say something to a run, from any process. It comes to the run once, and the model reads it in the turn that is planned next.

        A run that a process works on gets it within a second, as by `Run.send`; any other when it is resumed: one that waits for a
        person still waits. What comes while the last reply is made is not read: the run's last state has it, for `previous=`.
        Raises RunError for an empty message, and for a run that has its answer or was cancelled; TypeError for what is no message.
        """
        said = messages.checked(message)
        with self.database.writing() as connection:
            messages.send(connection, self._existing(connection, run_id), said, by, self.clock())

    def cancel(self, run_id: str, *, by: str | None = None, reason: str | None = None) -> None:
        """End a run for good. One that is being worked on, here or in another process, stops within a second."""
        now = self.clock()
        with self.database.writing() as connection:
            row = self._existing(connection, run_id)
            if row["cancelled_at"] is not None:
                raise RunError(f"run {run_id} was cancelled by {row['cancelled_by'] or 'somebody'} at {when(row['cancelled_at'])} already")
            if row["status"] == "ended":
                raise RunError(f"run {run_id} has ended with its answer, so there is nothing to cancel")
            connection.execute("UPDATE runs SET cancelled_at = ?, cancelled_by = ? WHERE run_id = ?", (now, by, run_id))
            write_audit(connection, now, run_id, "cancelled", by=by, reason=reason)
            if is_free(row, now):
                self._end(connection, row, now)
        claim = self._renewal.of_run(run_id)
        if claim is not None:
            claim.cancel()

    def _end(self, connection: sqlite3.Connection, row: sqlite3.Row, now: float) -> None:
        """End a run that nobody works on. Tools it was about to add belong to an agent, which is not here."""
        state = RunState.from_dict(read_document(connection, row["run_id"], self._sealer))
        state.exposure = ()
        if state.phase != "ended":
            state = apply(state, Cancelled())
        StateWriter(row["run_id"], self._sealer).write(connection, state)
        questions.withdraw(connection, row["run_id"], now)
        connection.execute(
            "UPDATE runs SET seq = seq + 1, status = 'stopped', stop_reason = ?, updated_at = ?, owner = NULL WHERE run_id = ?",
            (state.stop_reason, now, row["run_id"]),
        )

    def delete(self, run_id: str) -> None:
        """Remove a run and all that is known of it. Raises RunTakenError while a process works on it."""
        with self.database.writing() as connection:
            row = self._existing(connection, run_id)
            if not is_free(row, self.clock()):
                raise taken(row, self.clock())
            for table in ("runs", "states", "items", "questions", "audit", "messages", "blob_uses"):
                connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
            connection.execute("DELETE FROM blobs WHERE hash NOT IN (SELECT hash FROM blob_uses)")

    # --- to look at ---
    def runs(self, *, limit: int = 100) -> list[RunRow]:
        """The runs, newest first."""
        with self.database.reading() as connection:
            return reading.read_runs(connection, self.clock(), limit)

    def find(self, beginning: str, *, limit: int = 10) -> list[str]:
        """Ids of runs that begin so."""
        query = "SELECT run_id FROM runs WHERE substr(run_id, 1, ?) = ? ORDER BY run_id LIMIT ?"
        with self.database.reading() as connection:
            return [row["run_id"] for row in connection.execute(query, (len(beginning), beginning, limit)).fetchall()]

    def run(self, run_id: str) -> RunRow:
        """One run. Raises RunError when it is not there."""
        with self.database.reading() as connection:
            return reading.row_of(connection, self._existing(connection, run_id), self.clock())

    def state(self, run_id: str) -> RunState:
        """The state of a run, to look at, with messages that wait. Raises RunError when it is not there."""
        with self.database.reading() as connection:
            self._existing(connection, run_id)
            state = RunState.from_dict(read_document(connection, run_id, self._sealer))
            return hear(state, messages.unread(connection, run_id, state.received))

    def questions(self, run_id: str | None = None, *, waiting: bool = True) -> list[Question]:
        """The questions of a run or of all runs, oldest first: those that wait, or all there ever were."""
        with self.database.reading() as connection:
            found = questions.read_questions(connection, run_id=run_id, open_only=waiting)
        now = self.clock()
        return [one for one in found if not waiting or one.expires_at is None or one.expires_at > now]

    def audit(self, run_id: str) -> list[AuditEntry]:
        """What happened to a run, oldest first."""
        with self.database.reading() as connection:
            return read_audit(connection, run_id)

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        self.database.close()

    # --- for journals ---
    def forget(self, claim: SqliteJournal) -> None:
        """The claim is over."""
        self._renewal.drop(claim)

    def _journal(self, run_id: str, owner: Owner, seq: int, writer: StateWriter, given: Iterable[str] = ()) -> SqliteJournal:
        claim = SqliteJournal(self, run_id, owner, seq, writer, given=given)
        self._renewal.add(claim)
        return claim

    def _row(self, connection: sqlite3.Connection, run_id: str) -> sqlite3.Row | None:
        row: sqlite3.Row | None = connection.execute("SELECT * FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        return row

    def _existing(self, connection: sqlite3.Connection, run_id: str) -> sqlite3.Row:
        row = self._row(connection, run_id)
        if row is None:
            raise RunError(f"there is no run {run_id!r} in {self.database.path}")
        return row


def _columns(owner: Owner) -> tuple[str, str, int, str | None]:
    columns = asdict(owner)
    return columns["token"], columns["host"], columns["pid"], columns["born"]

"""`DbosStore`: runs on any number of hosts, kept by DBOS."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from maymust.agent.agent import Agent
from maymust.agent.inputs import Input
from maymust.agent.journal import Answer, Claimed
from maymust.agent.pending import pending_calls
from maymust.agent.resuming import checked
from maymust.agent.state import RunState
from maymust.durable import messages, questions
from maymust.durable.audit import when, write_audit
from maymust.durable.dbos import segments
from maymust.durable.dbos.database import DbosDatabase
from maymust.durable.dbos.index import add_run, enqueue, existing, is_at_work, living, order_for, remove_run, seal, set_run, worker_of
from maymust.durable.dbos.journal import TURNS, DbosJournal, Start, go_on
from maymust.durable.dbos.parts import changes, fold
from maymust.durable.dbos.process import Process, end_process, process_for, process_here
from maymust.durable.dbos.reading import Reader
from maymust.durable.dbos.rebuilding import rebuild
from maymust.durable.dbos.scribe import Scribe
from maymust.durable.dbos.sql import Row, Sql
from maymust.durable.owner import LEASE, taken
from maymust.durable.sealing import Sealer
from maymust.durable.store import Question, RunRow
from maymust.errors import RunError
from maymust.models.message import Message

_LOOK = 0.2


class DbosStore(Reader):
    """Keeps runs in Postgres, for any number of hosts, or in one SQLite file. DBOS does the work: `pip install 'maymust[dbos]'`.

    url               postgresql://USER:PASSWORD@HOST/DATABASE, or sqlite:///FILE; the tables are made when they are not there
    key               encrypts secrets among the arguments of calls (`maymust.durable.sealing.new_key()` makes one)
    question_timeout  seconds after which a question that nobody has answered is a no; None waits for ever
    lease             seconds after which a process that does not answer loses its runs; one of this host that has ended, at once
    queue             where workers look for the runs of this store; the agent's name is added to it

    Runs begin in the process that starts them, or (`submit`) with a worker; a run that was decided about goes on with a worker, if there
    is one before somebody resumes it. While the database is away, what has to be kept waits for it. Raises StoreError.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | bytes | None = None,
        question_timeout: float | None = None,
        lease: float = LEASE,
        queue: str = "maymust",
    ) -> None:
        if question_timeout is not None and not question_timeout > 0:
            raise ValueError(f"question_timeout={question_timeout!r}: give seconds above 0, or None")
        if not lease > 0:
            raise ValueError(f"lease={lease!r}: give seconds above 0")
        super().__init__(DbosDatabase(url), Sealer(key))
        self.question_timeout: float | None = question_timeout
        self.lease: float = lease
        self.queue: str = queue
        self.taken: dict[str, tuple[Process, Scribe]] = {}

    def __repr__(self) -> str:
        return f"DbosStore({str(self.database)!r})"

    # --- for agents ---
    def begin(self, state: RunState) -> DbosJournal:
        """See `Store`."""
        process = process_for(self.database, self.lease)
        order = self._first_order(state, None)
        with self.database.writing() as sql:
            self._add(sql, state, None, "running", process.executor)
        scribe = Scribe(state.run_id, 0, order)
        self._start(process, scribe, "interrupted")
        return self._journal(process, scribe, Start(state, order["state"], {}))

    def claim(self, run_id: str, answers: Mapping[str, Answer]) -> Claimed:
        """See `Store`."""
        if run_id in self.taken:
            process, scribe = self.taken.pop(run_id)
            return self.database.patiently(lambda: self._claimed(process, scribe, "running", None, TURNS))
        process = process_for(self.database, self.lease)
        with self.database.writing() as sql:
            row = living(sql, run_id, self.database)
            segment, now = segments.read_segment(sql, run_id, row["segment"]), sql.now()
            worker = worker_of(sql, row, segment)
            if worker is not None and is_at_work(worker, now):
                raise taken(worker, now)
            questions.decide(sql, run_id, answers, None, now)
            seal(sql, segment)
            number = row["segment"] + 1
            set_run(sql, run_id, status="running", segment=number, owner=process.executor)
        scribe = Scribe(run_id, number, order_for(run_id, number, "resume"))
        self._start(process, scribe, row["status"])
        try:
            return self._claimed(process, scribe, row["status"], worker)
        except BaseException:
            scribe.finish({"status": "released"})
            self._give_back(run_id, row["status"])
            raise

    def _claimed(
        self, process: Process, scribe: Scribe, before: str, worker: Mapping[str, Any] | None, turns: int | None = None
    ) -> Claimed:
        """The run of a segment that is ours."""
        run_id = scribe.run_id
        with self.database.writing() as sql:
            for _, record in scribe.recorded:
                # An earlier attempt may not have come so far as to note it.
                sql.executemany("UPDATE questions SET used = 1 WHERE id = ?", [(key,) for key in record.get("used", ())])
            now = sql.now()
            questions.expire(sql, run_id, now)
            parts = segments.read_parts(sql, run_id, scribe.number)
            state = segments.state_of(run_id, parts, self.sealer)
            waiting = {call.call_id for call in pending_calls(state)}
            answers = {call_id: answer for call_id, answer in questions.answers_of(sql, run_id).items() if call_id in waiting}
            rows = sql.execute(
                "SELECT id, call_id FROM questions WHERE run_id = ? AND used = 0 AND answer IS NOT NULL", (run_id,)
            ).fetchall()
            messages.settle(sql, run_id, state.received, now)
            said = messages.unread(sql, run_id, state.received)
            set_run(sql, run_id, status="running", owner=process.executor)
            before_us = worker["pid"] if worker is not None else None
            write_audit(sql, now, run_id, "claimed", pid=process.owner.pid, taken_from=before_us)
        given = {row["call_id"]: row["id"] for row in rows if row["call_id"] in answers}
        return Claimed(state, answers, self._journal(process, scribe, Start(state, parts, given, before), turns), said)

    def decide(self, run_id: str, answers: Mapping[str, bool | Answer], *, by: str | None = None) -> Sequence[Question]:
        """Note decisions about calls that wait, from any process; a worker goes on with the run, or whoever resumes it.

        The first decision about a call counts. Gives the questions as they are decided now: an equal decision that was there first
        stays with its author. Raises DecisionError for one that contradicts it, or comes too late; none is noted then.
        """
        given = {call_id: checked(call_id, answer) for call_id, answer in answers.items()}
        try:
            with self.database.writing() as sql:
                row = existing(sql, run_id, self.database, lock=True)
                decided = questions.decide(sql, run_id, given, by, sql.now())
                if row["cancelled_at"] is None and row["status"] == "paused":
                    go_on(sql, self, row.to_dict(), "decision")
                return decided
        except RunError:
            # What was tried is kept in the audit trail, the answers are not.
            with self.database.writing() as sql:
                if sql.execute("SELECT 1 FROM runs WHERE run_id = ?", (run_id,)).fetchone() is not None:
                    questions.expire(sql, run_id, sql.now())
                    for call_id, answer in given.items():
                        said = {"by": answer.by or by, "call_id": call_id, "answer": questions.word_of(answer)}
                        write_audit(sql, sql.now(), run_id, "too late", **said)
            raise

    def send(self, run_id: str, message: str | Message, *, by: str | None = None) -> None:
        """Say something to a run, from any host. It comes to the run once, and the model reads it in the turn that is planned next.

        A run that is worked on gets it within seconds, as by `Run.send`; any other when it goes on. A message alone begins no segment:
        a run that waits for a person still waits, the decision is owed, and one that was stopped waits for `resume` or `requeue`.
        What comes while the last reply is made is not read: the run's last state has it, for `previous=`.
        Raises RunError for an empty message, and for a run that has its answer or was cancelled; TypeError for what is no message.
        """
        said = messages.checked(message)
        with self.database.writing() as sql:
            messages.send(sql, existing(sql, run_id, self.database, lock=True), said, by, sql.now())

    def cancel(self, run_id: str, *, by: str | None = None, reason: str | None = None) -> None:
        """End a run for good. One that is being worked on, here or on another host, stops within seconds."""
        with self.database.writing() as sql:
            row = existing(sql, run_id, self.database, lock=True)
            if row["cancelled_at"] is not None:
                raise RunError(f"run {run_id} was cancelled by {row['cancelled_by'] or 'somebody'} at {when(row['cancelled_at'])} already")
            if row["status"] == "ended":
                raise RunError(f"run {run_id} has ended with its answer, so there is nothing to cancel")
            now, segment = sql.now(), segments.read_segment(sql, run_id, row["segment"])
            set_run(sql, run_id, cancelled_at=now, cancelled_by=by)
            write_audit(sql, now, run_id, "cancelled", by=by, reason=reason)
            if not is_at_work(worker_of(sql, row, segment), now):
                seal(sql, segment)
                self._end(sql, row, by)
        process = process_here(self.database)
        claim = process.claims.get(run_id) if process is not None else None
        if claim is not None:
            claim.cancel()

    def end_cancelled(self, run_id: str) -> None:
        """End a cancelled run that a worker was about to begin with."""
        with self.database.writing() as sql:
            row = existing(sql, run_id, self.database, lock=True)
            if row["status"] != "stopped":
                self._end(sql, row, row["cancelled_by"])

    def _end(self, sql: Sql, row: Row, by: str | None) -> None:
        """End a run that nobody works on: by a last segment that nobody will begin, so that DBOS's tables alone say so too."""
        run_id, number = row["run_id"], row["segment"] + 1
        enqueue(sql, self.database.client(), row.to_dict(), number, order_for(run_id, number, "cancelled", by=by))
        seal(sql, segments.Segment(run_id, number, "ENQUEUED"))
        state = segments.stopped(segments.state_of(run_id, segments.read_parts(sql, run_id, row["segment"]), self.sealer))
        questions.withdraw(sql, run_id, sql.now())
        set_run(sql, run_id, status="stopped", segment=number, stop_reason=state.stop_reason, owner=None)

    def delete(self, run_id: str) -> None:
        """Remove a run and all that is known of it. Raises RunTakenError while a process works on it."""
        with self.database.writing() as sql:
            row = existing(sql, run_id, self.database, lock=True)
            segment, now = segments.read_segment(sql, run_id, row["segment"]), sql.now()
            worker = worker_of(sql, row, segment)
            if worker is not None and is_at_work(worker, now):
                raise taken(worker, now)
            remove_run(sql, row)

    # --- for workers ---
    def submit(self, agent: Agent[Any], input: Input, *, tenant: str | None = None, **settings: Any) -> str:
        """Give a new run to the workers of this agent, and return its id. `tenant` is whose limits count.

        Takes what `Agent.start` takes, without `deps` and `middleware`: those are the worker's. Returns at once; see `wait`.
        """
        state = agent.first_state(input, **settings)
        order = self._first_order(state, tenant)
        with self.database.writing() as sql:
            self._add(sql, state, tenant, "queued", None)
            row = existing(sql, state.run_id, self.database)
            enqueue(sql, self.database.client(), row.to_dict(), 0, order)
        return state.run_id

    def requeue(self, run_id: str, *, by: str | None = None) -> None:
        """Let a worker go on with a run that was stopped or interrupted. Raises RunError for one that has ended or is under way."""
        with self.database.writing() as sql:
            row = living(sql, run_id, self.database)
            segment, now = segments.read_segment(sql, run_id, row["segment"]), sql.now()
            worker = worker_of(sql, row, segment)
            if worker is not None and is_at_work(worker, now):
                raise taken(worker, now)
            if segment.status == "ENQUEUED" or row["status"] == "ended":
                said = "has ended" if row["status"] == "ended" else "waits for a worker already"
                raise RunError(f"run {run_id} {said}")
            seal(sql, segment)
            go_on(sql, self, row.to_dict(), "requeued", by=by)

    def wait(self, run_id: str, timeout: float | None = None) -> RunRow:
        """Wait until nobody works on a run any more: it has ended, or waits for a person. Raises TimeoutError."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            row = self.database.patiently(lambda: self.run(run_id))
            if row.status not in ("queued", "running", "interrupted"):
                return row
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"run {run_id} is {row.status} after {timeout:g} seconds")
            time.sleep(_LOOK)

    def rebuild(self) -> int:
        """Make the index of runs and open questions anew from DBOS's tables, and give the number of runs. The audit trail stays."""
        with self.database.writing() as sql:
            return rebuild(sql, self.sealer)

    def queue_of(self, agent: str | None) -> str:
        """The queue of an agent's runs."""
        return f"{self.queue}/{agent or 'agent'}"

    def close(self) -> None:
        """End what runs in this process for this store, and close the connections; both begin again when they are needed.

        Runs that are under way here are left to others.
        """
        process = process_here(self.database)
        if process is not None:
            for claim in list(process.claims.values()):
                claim.cancel()
            end_process(process)
        self.database.close()

    def _first_order(self, state: RunState, tenant: str | None) -> dict[str, Any]:
        parts: dict[str, Any] = {}
        fold(parts, changes(state.run_id, self.sealer, None, state))
        where = {"queue": self.queue_of(state.agent), "tenant": tenant, "timeout": self.question_timeout}
        return order_for(state.run_id, 0, "start", agent=state.agent, state=parts, **where)

    def _add(self, sql: Sql, state: RunState, tenant: str | None, status: str, owner: str | None) -> None:
        queue, timeout = self.queue_of(state.agent), self.question_timeout
        add_run(sql, state, tenant=tenant, queue=queue, timeout=timeout, status=status, owner=owner)
        write_audit(sql, sql.now(), state.run_id, "started" if owner is not None else "submitted", tenant=tenant)

    def _start(self, process: Process, scribe: Scribe, before: str) -> None:
        try:
            process.start(scribe)
        except BaseException:
            self._give_back(scribe.run_id, before)
            raise

    def _give_back(self, run_id: str, before: str) -> None:
        with self.database.writing() as sql:
            set_run(sql, run_id, status=before, owner=None)

    def _journal(self, process: Process, scribe: Scribe, start: Start, turns: int | None = None) -> DbosJournal:
        journal = DbosJournal(self, process, scribe, start, turns=turns)
        process.claims[scribe.run_id] = journal
        return journal

"""A run that is under way on DBOS: what its events have changed is kept as steps of its segment, before anything else comes of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maymust.agent.actions import (
    CallPending,
    ChildEvent,
    Decided,
    Event,
    Interrupted,
    MessagesCompacted,
    MessageSent,
    ModelReplied,
    RulesGiven,
    ToolStarted,
)
from maymust.agent.call_record import PendingCall
from maymust.agent.pending import pending_calls
from maymust.agent.reducer import apply, hear
from maymust.agent.state import RunState
from maymust.durable import messages, questions
from maymust.durable.audit import tell, write_audit
from maymust.durable.dbos.index import enqueue, existing, order_for, set_run
from maymust.durable.dbos.parts import Parts, changes, fold
from maymust.durable.dbos.scribe import LostError, Scribe
from maymust.durable.dbos.segments import read_segment
from maymust.durable.dbos.sql import Sql
from maymust.durable.store import RunTakenError
from maymust.errors import MaymustError, RunError

if TYPE_CHECKING:
    from maymust.durable.dbos.process import Process
    from maymust.durable.dbos.store import DbosStore

log: logging.Logger = logging.getLogger(__name__)

ANSWER = ("call_id", "answer", "output", "reason", "by", "remember", "decided_at")
"""What is kept of an answer with the segment that it leads to."""
TURNS = 50
"""Turns after which a worker makes another segment, so that a recovery never has long to read, and other runs get their turn."""


class SegmentFullError(RunError):
    """The segment has enough turns; the run goes on in the next one."""


@dataclass(frozen=True, slots=True)
class Start:
    """What a journal starts from: the state that is kept, its parts, and the questions whose answers the run is given."""

    state: RunState | None
    parts: Parts
    given: Mapping[str, int]
    before: str = "running"


class DbosJournal:
    """The journal of one segment. After the first thing that could not be kept it keeps nothing more: the run breaks off in memory only."""

    def __init__(self, store: DbosStore, process: Process, scribe: Scribe, start: Start, *, turns: int | None = None) -> None:
        self.run_id: str = scribe.run_id
        self._store, self._process, self._scribe = store, process, scribe
        self._kept, self._parts, self._given, self._before = start.state, start.parts, start.given, start.before
        self._events: list[list[Any]] = []
        self._turns_left = turns
        self._broken = self._full = self._gone = False
        self.letterbox: messages.Letterbox = messages.Letterbox()
        self._cancel: Callable[[], None] | None = None
        self._cancelled = False

    def note(self, kind: str, **detail: Any) -> None:
        """Something for the audit trail, with the next step."""
        self._events.append([time.time(), kind, None, None, detail])

    def fold(self, state: RunState, event: Event) -> RunState:
        """See `Journal`."""
        new = apply(state, event)
        if self._broken:
            return new
        try:
            if new.phase == "ended" and new.answer is not None:
                # What came too late to be read goes on into the next run of the conversation.
                new = hear(new, self._unread(new))
            self._keep(new, event)
            self._count(new, event)
        except LostError as fault:
            self._broken = self._gone = True
            raise self._lost() from fault
        except BaseException as fault:
            self._broken, self._gone = True, isinstance(fault, RunTakenError)
            raise
        return new

    def take(self, state: RunState) -> None:
        """See `Journal`."""
        try:
            self._record("taken", state, used=list(self._given.values()))
        except LostError as fault:
            raise self._lost() from fault
        if self._given:
            self._patiently(lambda sql: use(sql, self._given.values()))
        self.letterbox.received = state.received

    def on_cancel(self, cancel: Callable[[], None]) -> None:
        """See `Journal`."""
        self._cancel = cancel
        if self._cancelled:
            cancel()

    def on_message(self, hear: Callable[[MessageSent], None]) -> None:
        """See `Journal`."""
        self.letterbox.hear = hear

    def cancel(self) -> None:
        """Somebody has cancelled the run."""
        self._cancelled = True
        if self._cancel is not None:
            self._cancel()

    def leave(self) -> None:
        """The process ends: keep nothing more, others go on."""
        self._broken = self._gone = True
        self.cancel()

    def release(self) -> None:
        """See `Journal`."""
        self._over()

        def give_back(sql: Sql) -> None:
            row = existing(sql, self.run_id, self._store.database, lock=True)
            if row["segment"] == self._scribe.number:
                set_run(sql, self.run_id, status="paused" if self._before == "queued" else self._before, owner=None)

        self._patiently(give_back)
        self._scribe.finish({"status": "released"})
        self._wait()

    def close(self, state: RunState, pending: Sequence[PendingCall]) -> None:
        """See `Journal`."""
        self._over()
        try:
            if self._full and self._kept is not None:
                state, pending = self._kept, ()
            elif self._gone:
                self._scribe.leave()
                return
            elif self._broken:
                # What could not be kept ends the segment where it was; the run is ours no more, and may be resumed.
                self._before = "running"
                self.release()
                return
            output = ending(state, bool(pending))
            self._record("end", state, end=output)
            end_segment(self._store, self._scribe, output, pending_calls(state) if pending else ())
            self._scribe.finish({**output, "state": self._parts})
            self._wait()
        except LostError:
            self._scribe.leave()
            log.error("run %s: %s", self.run_id, self._lost())
        except MaymustError as fault:
            self._scribe.leave()
            log.error("run %s: its process has finished with it, and that could not be stored: %s", self.run_id, fault)

    def _count(self, new: RunState, event: Event) -> None:
        """After the last turn that the segment has room for, the run is broken off here, and goes on in the next segment."""
        if self._turns_left is None:
            return
        self._turns_left -= isinstance(event, ModelReplied)
        if self._turns_left <= 0 and new.phase in ("plan", "model") and not _can_wait(event):
            self._full = True
            raise SegmentFullError(f"run {self.run_id} goes on in another segment")

    def _keep(self, new: RunState, event: Event) -> None:
        told = tell(new, event)
        if told is not None:
            self._events.append([time.time(), told.kind, told.by, told.call_id, told.detail])
        if _can_wait(event) and new.phase != "ended":
            return
        self._record(told.kind if told is not None else "event", new)
        if isinstance(event, ToolStarted | ChildEvent) and time.monotonic() > self._process.lease_until:
            # The process was stopped for longer than its lease just now: the body must not run in a run that others have.
            self._verify()
        if isinstance(event, CallPending | Interrupted):
            self._patiently(lambda sql: self._ask(sql, pending_calls(new)))
        elif isinstance(event, Decided) and event.requirement is None:
            self._patiently(lambda sql: questions.settle(sql, self.run_id, event, sql.now()))

    def _record(self, name: str, new: RunState, **more: Any) -> None:
        changed = changes(self.run_id, self._store.sealer, self._kept, new)
        self._scribe.record(name, {"changes": changed, "events": self._events, **more})
        fold(self._parts, changed)
        kept, self._kept, self._events = self._kept, new, []
        if kept is None or kept.received != new.received:
            # Whoever takes the run next does it for a process that ends here.
            settle = messages.settle
            self._patiently(lambda sql: settle(sql, self.run_id, new.received, sql.now(), ended=new.answer is not None))

    def _unread(self, state: RunState) -> Sequence[MessageSent]:
        def read() -> Sequence[MessageSent]:
            with self._store.database.reading() as sql:
                return messages.unread(sql, self.run_id, state.received)

        return self._store.database.patiently(read)

    def _verify(self) -> None:
        def check(sql: Sql) -> None:
            if read_segment(sql, self.run_id, self._scribe.number).owner != self._scribe.owner:
                raise self._lost()

        self._patiently(check)

    def _ask(self, sql: Sql, calls: Sequence[PendingCall]) -> None:
        timeout = existing(sql, self.run_id, self._store.database)["question_timeout"]
        questions.ask(sql, self.run_id, calls, sql.now(), timeout)

    def _patiently(self, work: Callable[[Sql], object]) -> None:
        def once() -> None:
            with self._store.database.writing() as sql:
                work(sql)

        self._store.database.patiently(once)

    def _over(self) -> None:
        self._process.claims.pop(self.run_id, None)

    def _wait(self) -> None:
        if self._scribe.outcome is not None:
            self._scribe.outcome()

    def _lost(self) -> RunTakenError:
        return RunTakenError(
            f"run {self.run_id} is not this process's any more: its lease ran out, and another process went on with it. "
            "Nothing of what happened here since is stored; look at the run in the store"
        )


def use(sql: Sql, keys: Any) -> None:
    """The run has gone on with the answers to these questions. Others may have come since it was given them; they are for the next time."""
    sql.executemany("UPDATE questions SET used = 1 WHERE id = ?", [(key,) for key in keys])


def ending(state: RunState, paused: bool) -> dict[str, Any]:
    """What became of a segment."""
    word = "paused" if paused else "more" if state.phase != "ended" else "ended" if state.answer is not None else "stopped"
    return {"status": word, "stop_reason": state.stop_reason, "answer": state.answer, "error": state.error}


def end_segment(store: DbosStore, scribe: Scribe, output: Mapping[str, Any], pending: Sequence[PendingCall]) -> None:
    """Note in the index what became of a segment. A run that waits, and whose answers have come meanwhile, goes on."""

    def once() -> None:
        with store.database.writing() as sql:
            row = existing(sql, scribe.run_id, store.database, lock=True)
            if row["segment"] != scribe.number:
                return
            now, word = sql.now(), output["status"]
            fields = {name: output[name] for name in ("stop_reason", "answer", "error")}
            set_run(sql, scribe.run_id, status="running" if word == "more" else word, owner=None, **fields)
            if word in ("ended", "stopped"):
                questions.withdraw(sql, scribe.run_id, now)
            questions.ask(sql, scribe.run_id, pending, now, row["question_timeout"])
            answered = questions.answers_of(sql, scribe.run_id)
            if (word == "paused" and answered and row["cancelled_at"] is None) or word == "more":
                go_on(sql, store, row.to_dict(), "decision" if word == "paused" else "more")

    store.database.patiently(once)


def go_on(sql: Sql, store: DbosStore, row: Mapping[str, Any], why: str, **more: Any) -> None:
    """Make the next segment of a run that nobody works on, for a worker. The row is locked."""
    number = row["segment"] + 1
    # The answers go on in DBOS's tables too: the index follows from those.
    query = f"SELECT {', '.join(ANSWER)} FROM questions WHERE run_id = ? AND used = 0 AND answer IS NOT NULL ORDER BY id"
    answers = [answer.to_dict() for answer in sql.execute(query, (row["run_id"],)).fetchall()]
    order = order_for(row["run_id"], number, why, answers=answers, **more)
    enqueue(sql, store.database.client(), row, number, order)
    set_run(sql, row["run_id"], status="queued", segment=number)
    write_audit(sql, sql.now(), row["run_id"], "queued", why=why)


def _can_wait(event: Event) -> bool:
    """Whether the event may be kept with the next one: nothing has happened in the world that would be lost with it."""
    while isinstance(event, ChildEvent):
        event = event.event
    return isinstance(event, RulesGiven | ModelReplied | MessagesCompacted)

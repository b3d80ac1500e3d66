"""A run that is under way, as the store sees it: every event is kept before anything else comes of it."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from maymust.agent.actions import (
    CallPending,
    Cancelled,
    ChildEvent,
    Decided,
    Event,
    Interrupted,
    MessageSent,
    ToolFinished,
    ToolStarted,
)
from maymust.agent.call_record import PendingCall
from maymust.agent.pending import pending_calls
from maymust.agent.reducer import apply, hear
from maymust.agent.state import RunState
from maymust.durable import messages, questions
from maymust.durable.audit import audit_event, tool_of
from maymust.durable.documents import StateWriter
from maymust.durable.owner import Owner
from maymust.durable.store import RunTakenError
from maymust.errors import MaymustError

if TYPE_CHECKING:
    from maymust.durable.sqlite_store import SqliteStore

log: logging.Logger = logging.getLogger(__name__)


class SqliteJournal:
    """The journal of one claim. After the first thing that could not be kept it keeps nothing more: the run breaks off in memory only."""

    def __init__(self, store: SqliteStore, run_id: str, owner: Owner, seq: int, writer: StateWriter, *, given: Iterable[str] = ()) -> None:
        self.run_id: str = run_id
        self.owner: Owner = owner
        self._given = tuple(given)
        self._store, self._seq, self._writer = store, seq, writer
        self._lease_until = store.clock() + store.lease
        self._broken = False
        self.letterbox: messages.Letterbox = messages.Letterbox()
        self._cancel: Callable[[], None] | None = None
        self._cancelled = False

    def fold(self, state: RunState, event: Event) -> RunState:
        """See `Journal`."""
        new = apply(state, event)
        if self._broken:
            return new
        try:
            self._keep(new, event)
            if isinstance(event, ToolStarted) and self._store.clock() > self._lease_until:
                # The process was stopped for longer than its lease just now: the body must not run in a run that others have.
                self._verify()
        except Exception:
            self._broken = True
            raise
        # The last one was kept with what had been said too late to be read.
        return self._writer.kept or new if new.phase == "ended" else new

    def take(self, state: RunState) -> None:
        """See `Journal`."""
        with self._store.database.writing() as connection:
            self._advance(connection, state)
            questions.use(connection, self.run_id, self._given)
        self._writer.kept = state
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

    def renewed(self, until: float) -> None:
        """The lease goes on."""
        self._lease_until = until

    def release(self) -> None:
        """See `Journal`."""
        self._store.forget(self)
        with self._store.database.writing() as connection:
            self._let_go(connection)

    def close(self, state: RunState, pending: Sequence[PendingCall]) -> None:
        """See `Journal`."""
        self._store.forget(self)
        try:
            now = self._store.clock()
            with self._store.database.writing() as connection:
                if not self._broken:
                    self._advance(connection, state, "paused" if pending else None)
                    questions.ask(connection, self.run_id, pending_calls(state) if pending else (), now, self._store.question_timeout)
                self._let_go(connection)
        except MaymustError as fault:
            log.error("run %s: its process has finished with it, and that could not be stored: %s", self.run_id, fault)

    def _keep(self, new: RunState, event: Event) -> None:
        now = self._store.clock()
        with self._store.database.writing(sync=must_sync(new, event)) as connection:
            if new.phase == "ended" and new.answer is not None:
                # After this nothing can be sent any more; what came too late goes on into the next run of the conversation.
                new = hear(new, messages.unread(connection, self.run_id, new.received))
            self._advance(connection, new)
            audit_event(connection, now, new, event, self.run_id)
            if isinstance(event, CallPending | Interrupted):
                questions.ask(connection, self.run_id, pending_calls(new), now, self._store.question_timeout)
            elif isinstance(event, Decided) and event.requirement is None:
                questions.settle(connection, self.run_id, event, now)
        self._writer.kept = new

    def _advance(self, connection: sqlite3.Connection, new: RunState, status: str | None = None) -> None:
        """Compare and swap, then the state. Raises RunTakenError when the run is not ours any more."""
        now = self._store.clock()
        ended = new.phase == "ended"
        word = status or ("running" if not ended else "ended" if new.answer is not None else "stopped")
        until = now + self._store.lease
        done = connection.execute(
            """UPDATE runs SET seq = seq + 1, status = ?, stop_reason = ?, answer = ?, error = ?, updated_at = ?, lease_until = ?
            WHERE run_id = ? AND seq = ? AND owner = ?""",
            (word, new.stop_reason, new.answer, new.error, now, until, self.run_id, self._seq, self.owner.token),
        )
        if done.rowcount != 1:
            raise self._lost()
        kept = self._writer.kept
        self._writer.write(connection, new)
        if kept is None or kept.received != new.received:
            messages.settle(connection, self.run_id, new.received, now, ended=new.answer is not None)
        if ended:
            questions.withdraw(connection, self.run_id, now)
        self._seq, self._lease_until = self._seq + 1, until

    def _let_go(self, connection: sqlite3.Connection) -> None:
        mine = (self.run_id, self.owner.token)
        connection.execute("UPDATE runs SET owner = NULL, lease_until = NULL WHERE run_id = ? AND owner = ?", mine)

    def _verify(self) -> None:
        with self._store.database.writing() as connection:
            mine = connection.execute("SELECT 1 FROM runs WHERE run_id = ? AND owner = ?", (self.run_id, self.owner.token)).fetchone()
            if mine is None:
                raise self._lost()

    def _lost(self) -> RunTakenError:
        return RunTakenError(
            f"run {self.run_id} is not this process's any more: its lease ran out, and another process went on with it. "
            "Nothing of what happened here since is stored; look at the run in the store"
        )


def must_sync(state: RunState, event: Event) -> bool:
    """Whether losing the event with the machine would do harm: an effect might come twice, or a word of a person be lost.

    A result is as good as lost with the machine when the call may be repeated, so only that of an effect that may not be is waited for.
    """
    if isinstance(event, ChildEvent):
        return must_sync(state.children[event.call_id], event.event)
    if isinstance(event, ToolStarted):
        return _effect(state, event.call_id) != "read"
    if isinstance(event, ToolFinished):
        return state.phase == "ended" or _effect(state, event.call_id) == "once"
    return isinstance(event, CallPending | Interrupted | Decided | MessageSent | Cancelled)


def _effect(state: RunState, call_id: str) -> str:
    name = tool_of(state, call_id)
    return next((tool.effect for tool in state.tools if tool.name == name), "once")

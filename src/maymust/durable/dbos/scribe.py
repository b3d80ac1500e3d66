"""One segment that this process works on: the workflow's thread, which writes the steps that the run's thread asks for.

DBOS's functions belong to the thread (the context) of their workflow, and must not be called where an event loop runs. Tools must not find
themselves inside a workflow either: what they do with DBOS would count as steps of the run.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from dbos import DBOS
from dbos._error import DBOSUnexpectedStepError, DBOSWorkflowCancelledError, DBOSWorkflowConflictIDError

from maymust.durable.dbos.database import DbosDatabase
from maymust.durable.dbos.segments import read_segment, read_steps, workflow_id

_LOOK = 1.0
"""Seconds between two looks whether the process is about to end."""


class LeftError(BaseException):
    """The process leaves the segment to others. No Exception: DBOS would take it for the workflow's outcome."""


class LostError(Exception):
    """Another process has the segment now."""


@dataclass
class Scribe:
    """Writes the steps of a segment.

    order     what the segment was asked to do
    recorded  the steps that earlier attempts have written, once `opened`
    owner     DBOS's token for this attempt
    outcome   waits until DBOS has kept the segment's end; None for a segment from a queue
    """

    run_id: str
    number: int
    order: dict[str, Any]
    recorded: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    owner: str | None = None
    opened: Future[None] = field(default_factory=Future)
    outcome: Callable[[], object] | None = None
    _asked: queue.SimpleQueue[tuple[str, Any, Future[None] | None]] = field(default_factory=queue.SimpleQueue)
    _fault: BaseException | None = None

    @property
    def workflow_id(self) -> str:
        """The segment's id."""
        return workflow_id(self.run_id, self.number)

    # --- in the run's thread ---
    def record(self, name: str, record: dict[str, Any]) -> None:
        """Write a step, and wait until it is kept; for as long as the database is away. Raises LostError."""
        written: Future[None] = Future()
        self._asked.put((name, record, written))
        written.result()

    def finish(self, output: dict[str, Any]) -> None:
        """The segment has come to its end."""
        self._asked.put(("", output, None))

    def leave(self) -> None:
        """Write nothing more; others go on with the segment."""
        self._asked.put(("", None, None))

    # --- in the workflow's thread ---
    def serve(self, database: DbosDatabase) -> dict[str, Any]:
        """The body of the workflow: earlier steps again, then what is asked for."""
        try:
            self._open(database)
        except BaseException as fault:
            self.opened.set_exception(fault if isinstance(fault, Exception) else LostError())
            raise
        self.opened.set_result(None)
        while True:
            try:
                name, record, written = self._asked.get(timeout=_LOOK)
            except queue.Empty:
                if not threading.main_thread().is_alive():
                    raise LeftError from None
                continue
            if written is None:
                if self._fault is not None:
                    raise self._fault
                if record is None:
                    raise LeftError
                return dict(record)
            self._write(name, record, written)

    def _open(self, database: DbosDatabase) -> None:
        def read() -> None:
            with database.reading() as sql:
                self.recorded = read_steps(sql, self.run_id, self.number)
                self.owner = read_segment(sql, self.run_id, self.number).owner

        database.patiently(read)
        for name, _ in self.recorded:
            # DBOS counts the steps; a recorded one is not done again.
            DBOS.run_step({"name": name}, _never)

    def _write(self, name: str, record: dict[str, Any], written: Future[None]) -> None:
        done = False

        def step() -> dict[str, Any]:
            nonlocal done
            done = True
            return record

        try:
            if self._fault is not None:
                raise LostError
            DBOS.run_step({"name": name}, step)
            if not done:
                self._fault = DBOSWorkflowConflictIDError(self.workflow_id)
                raise LostError
        except (DBOSWorkflowConflictIDError, DBOSWorkflowCancelledError) as fault:
            self._fault = fault
            written.set_exception(LostError(str(fault)))
        except DBOSUnexpectedStepError as fault:
            # Another process has written a step of another name in this place.
            self._fault = DBOSWorkflowConflictIDError(self.workflow_id)
            written.set_exception(LostError(str(fault)))
        except BaseException as fault:
            written.set_exception(fault)
        else:
            written.set_result(None)


def _never() -> dict[str, Any]:
    raise LostError("a step that was read a moment ago is gone")

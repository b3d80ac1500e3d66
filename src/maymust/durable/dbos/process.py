"""DBOS in this process: one executor with an id of its own, which says all the time that it is alive.

There is one DBOS in a process, so all stores here share it; it works on one database at a time.
"""

from __future__ import annotations

import contextvars
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from dbos import DBOS, SetWorkflowID
from dbos import _dbos as dbos_module
from dbos._error import DBOSException, DBOSWorkflowIDInUseError

from maymust.durable import messages
from maymust.durable.dbos.database import NAME, DbosDatabase
from maymust.durable.dbos.scribe import Scribe
from maymust.durable.dbos.segments import WORKFLOW
from maymust.durable.dbos.serializer import SERIALIZER
from maymust.durable.owner import Owner
from maymust.durable.store import RunTakenError, StoreError

log: logging.Logger = logging.getLogger(__name__)

VERSION = "maymust-1"
"""The version that DBOS knows all executors by: a segment may be worked on by any of them, whatever they have been upgraded to."""
_ATTEMPTS = 20
"""How often a segment is recovered before it is left alone: it may be what ends the processes."""
_CONNECTIONS = 16
"""Connections for the runs of a process, at most. A run needs one for the milliseconds of a write, and is with its model between them."""
_BEAT = 1.0
"""Seconds between two signs of life, at most."""


class Performer(Protocol):
    """Works on segments that come from a queue."""

    def perform(self, scribe: Scribe) -> None:
        """Begin to work on a segment, in another thread."""
        ...


class Claim(Protocol):
    """A run that is under way here."""

    run_id: str
    letterbox: messages.Letterbox

    def cancel(self) -> None: ...
    def leave(self) -> None: ...


@dataclass
class _Queue:
    name: str
    settings: Mapping[str, Any]


class Process:
    """This process as an executor of DBOS, while it is open."""

    def __init__(self, database: DbosDatabase, lease: float) -> None:
        # Its own connections: those of a store may be closed at any time.
        self.database: DbosDatabase = DbosDatabase(database.url)
        self.lease: float = lease
        self.owner: Owner = Owner()
        self.executor: str = f"{self.owner.host}:{self.owner.pid}:{self.owner.token}"
        self.claims: dict[str, Claim] = {}
        self.performer: Performer | None = None
        self.on_beat: list[Callable[[], None]] = []
        self.steady_since: float = time.monotonic()
        self.lease_until: float = self.steady_since
        self._expected: dict[str, Scribe] = {}
        self._stop = threading.Event()
        self._heart = threading.Thread(target=self._live, name="maymust heart", daemon=True)
        # DBOS wants to be called from where no event loop runs.
        self._caller = ThreadPoolExecutor(1, "maymust dbos")

    def launch(self, queues: Sequence[_Queue] = (), concurrency: int = 0) -> None:
        """Start DBOS, and listen to these queues. Raises StoreError."""
        self._caller.submit(contextvars.Context().run, self._launch, queues, concurrency).result()

    def _launch(self, queues: Sequence[_Queue], concurrency: int) -> None:
        # Its log is of interest when something is wrong.
        settings: Any = {
            "name": NAME,
            "system_database_url": self.database.url_for_dbos,
            "executor_id": self.executor,
            "application_version": VERSION,
            "serializer": SERIALIZER,
            "log_level": "WARNING",
            "run_migrations": False,
            "sys_db_pool_size": min(concurrency, _CONNECTIONS) + 4,
        }
        self._beat()
        try:
            DBOS(config=settings)
            DBOS.listen_queues([queue.name for queue in queues])
            self._workflow = DBOS.workflow(name=WORKFLOW, max_recovery_attempts=_ATTEMPTS)(self._work_on())
            DBOS.launch()
            for queue in queues:
                DBOS.register_queue(queue.name, on_conflict="always_update", **queue.settings)
        except Exception as fault:
            DBOS.destroy(destroy_registry=True)
            raise StoreError(f"DBOS cannot work on {self.database}: {fault}") from fault
        self._heart.start()

    def start(self, scribe: Scribe) -> None:
        """Begin a segment in this process. Raises RunTakenError when somebody else has begun it."""
        self._caller.submit(contextvars.Context().run, self._start, scribe).result()

    def _start(self, scribe: Scribe) -> None:
        key = scribe.workflow_id
        self._expected[key] = scribe
        try:
            with SetWorkflowID(key, workflow_id_reuse_policy="reject"):
                handle = DBOS.start_workflow(self._workflow, scribe.order)
        except DBOSWorkflowIDInUseError as fault:
            self._expected.pop(key, None)
            raise RunTakenError(f"run {scribe.run_id} was taken by another process at the same time; look at it in the store") from fault
        except DBOSException as fault:
            self._expected.pop(key, None)
            raise StoreError(f"the store {self.database} failed: {fault}") from fault
        scribe.opened.result()
        scribe.outcome = handle.get_result

    def _work_on(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def segment(order: dict[str, Any]) -> dict[str, Any]:
            scribe = self._expected.pop(str(DBOS.workflow_id), None)
            if scribe is None:
                run_id, _, number = str(DBOS.workflow_id).rpartition(":")
                scribe = Scribe(run_id, int(number), order)
                assert self.performer is not None, "only workers listen to queues"
                self.performer.perform(scribe)
            return scribe.serve(self.database)

        return segment

    # --- alive ---
    def _live(self) -> None:
        pause = min(_BEAT, self.lease / 5)
        while not self._stop.wait(pause):
            try:
                self._beat()
                self._look()
                for work in self.on_beat:
                    work()
            except StoreError as fault:
                log.warning("this process could not say that it is alive: %s", fault)
            except Exception:
                log.exception("this process could not look after its runs")

    def _beat(self) -> None:
        begun = time.monotonic()
        with self.database.writing() as sql:
            done = sql.execute(f"UPDATE executors SET beat_at = {sql.clock} WHERE executor_id = ?", (self.executor,))
            if not done.rowcount:
                row = (self.executor, self.owner.host, self.owner.pid, self.owner.born, self.lease)
                names = "executor_id, host, pid, born, lease, beat_at"
                sql.execute(f"INSERT INTO executors({names}) VALUES(?, ?, ?, ?, ?, {sql.clock})", row)
        if begun > self.lease_until or time.monotonic() - begun > self.lease / 2:
            # Others may have been cut off for as long, and need the time of a lease to say that they are alive.
            self.steady_since = time.monotonic()
        self.lease_until = begun + self.lease

    def _look(self) -> None:
        """Hear of cancellations and messages."""
        if not self.claims:
            return
        with self.database.reading() as sql:
            rows = sql.execute("SELECT run_id FROM runs WHERE cancelled_at IS NOT NULL AND status = 'running'").fetchall()
            said = messages.unread_by(sql, list(self.claims))
        for row in rows:
            claim = self.claims.get(row[0])
            if claim is not None:
                claim.cancel()
        for run_id, sent in said.items():
            claim = self.claims.get(run_id)
            if claim is not None:
                claim.letterbox.bring(sent)

    def pause(self) -> None:
        """Take no more segments from queues."""
        dbos = dbos_module._dbos_global_instance
        if dbos is not None:
            for event in dbos.background_thread_stop_events:
                event.set()

    def close(self) -> None:
        """End DBOS here. What is under way is left to others at once."""
        self._caller.submit(contextvars.Context().run, self._close).result()
        self._caller.shutdown()

    def _close(self) -> None:
        DBOS.destroy(destroy_registry=True)
        self._stop.set()
        if self._heart.is_alive():
            self._heart.join()
        try:
            with self.database.writing() as sql:
                # What is still under way is free for others at once.
                sql.execute("DELETE FROM executors WHERE executor_id = ?", (self.executor,))
        except StoreError as fault:
            log.warning("others have to wait for the end of this process's lease: %s", fault)
        self.database.close()


_LOCK = threading.Lock()
_HERE: list[Process] = []


def process_for(database: DbosDatabase, lease: float) -> Process:
    """The executor of this process for a database; started when it is not there. Raises StoreError where that cannot be."""
    with _LOCK:
        return _HERE[0] if _usable(database) else _launched(database, lease, (), 0)


def start_worker(
    database: DbosDatabase, lease: float, performer: Performer, queues: Mapping[str, Mapping[str, Any]], slots: int
) -> Process:
    """The executor of this process, listening to queues. Raises StoreError where there is one already."""
    with _LOCK:
        if _usable(database):
            raise StoreError("this process has a run under way already; start the worker first, or in a process of its own")
        return _launched(database, lease, [_Queue(name, settings) for name, settings in queues.items()], slots, performer)


def end_process(process: Process) -> None:
    """End the executor of this process."""
    with _LOCK:
        if process in _HERE:
            _HERE.remove(process)
            if process.owner.pid == os.getpid():
                process.close()


def process_here(database: DbosDatabase) -> Process | None:
    """The executor that works on this database in this process, if there is one."""
    with _LOCK:
        return _HERE[0] if _HERE and _HERE[0].database.url == database.url else None


def _usable(database: DbosDatabase) -> bool:
    if not _HERE:
        if dbos_module._dbos_global_instance is not None:
            raise StoreError("this process has a DBOS of its own, and there is one in a process; run maymust's runs in another process")
        return False
    here = _HERE[0]
    if here.owner.pid != os.getpid():
        raise StoreError("DBOS was started before this process was forked, and does not survive that; start it in the child only")
    if here.database.url == database.url:
        return True
    if here.claims or here.performer is not None:
        raise StoreError(f"this process works on {here.database}, and DBOS works on one database in a process")
    _HERE.remove(here)
    here.close()
    return False


def _launched(database: DbosDatabase, lease: float, queues: Sequence[_Queue], slots: int, performer: Performer | None = None) -> Process:
    process = Process(database, lease)
    process.performer = performer
    process.launch(queues, slots)
    _HERE.append(process)
    return process

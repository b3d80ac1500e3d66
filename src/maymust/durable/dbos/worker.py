"""`DbosWorker`: works on the runs of some agents, as one of any number of processes on any number of hosts."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from maymust.agent.agent import Agent
from maymust.durable.dbos.index import existing, set_run
from maymust.durable.dbos.journal import SegmentFullError, end_segment
from maymust.durable.dbos.process import Process, end_process, start_worker
from maymust.durable.dbos.reaper import sweep
from maymust.durable.dbos.scribe import LostError, Scribe
from maymust.durable.dbos.segments import read_parts
from maymust.durable.dbos.store import DbosStore
from maymust.durable.store import RunTakenError
from maymust.errors import MaymustError, PolicyError

log: logging.Logger = logging.getLogger(__name__)

_POLL = 1.0
"""Seconds between two looks into a queue."""


class DbosWorker:
    """Takes runs from the queues of these agents, and works on them until `stop`.

    store        where the runs are
    agents       agents of different names; a store of their own is left aside
    concurrency  runs that are worked on here at a time
    limit        runs of one agent that are worked on at a time by all workers together; None for no limit
    tenant_limit runs of one tenant and agent at a time by all workers together; None for no limit
    deps         gives the `deps` of a run, or is them
    allow_policy_change  go on with runs that were started under another policy

    Raises PolicyError for two agents of one name.
    """

    def __init__(
        self,
        store: DbosStore,
        agents: Iterable[Agent[Any]],
        *,
        concurrency: int = 10,
        limit: int | None = None,
        tenant_limit: int | None = None,
        deps: Any = None,
        allow_policy_change: bool = False,
        poll: float = _POLL,
    ) -> None:
        self.store: DbosStore = store
        self.concurrency: int = concurrency
        self._agents: dict[str, Agent[Any]] = {}
        for agent in agents:
            queue = store.queue_of(agent.plan.agent)
            if queue in self._agents:
                raise PolicyError(f"two agents are called {agent.plan.agent!r}; give them names, Agent(name=...)")
            self._agents[queue] = copy.copy(agent)
            self._agents[queue].store = store
        self._settings = {
            "worker_concurrency": concurrency if limit is None else min(concurrency, limit),
            "global_concurrency": limit,
            "partition_concurrency": tenant_limit if limit is None or tenant_limit is None else min(tenant_limit, limit),
            "polling_interval_sec": poll,
        }
        self._deps, self._allow = deps, allow_policy_change
        self._lanes = _Lanes(concurrency)
        self._process: Process | None = None
        self._swept = 0.0

    @property
    def executor(self) -> str:
        """The id that DBOS knows this worker by; empty before `start`."""
        return self._process.executor if self._process is not None else ""

    def start(self) -> None:
        """Begin to work, in threads. Raises StoreError."""
        queues = dict.fromkeys(self._agents, self._settings)
        self._process = start_worker(self.store.database, self.store.lease, self, queues, self.concurrency)
        self._process.on_beat.append(self._sweep)

    def stop(self, grace: int = 0) -> None:
        """Take no more runs, wait so many seconds for those that are under way, and leave the rest to others."""
        if self._process is None:
            return
        process, self._process = self._process, None
        end = time.monotonic() + grace
        process.pause()
        while process.claims and time.monotonic() < end:
            time.sleep(0.05)
        for claim in list(process.claims.values()):
            claim.leave()
        self._lanes.close()
        end_process(process)

    # --- for the process ---
    def perform(self, scribe: Scribe) -> None:
        """See `Performer`."""
        self._lanes.run(lambda: self._perform(scribe))

    async def _perform(self, scribe: Scribe) -> None:
        try:
            await asyncio.to_thread(scribe.opened.result)
            process = self._process
            if process is None:
                scribe.leave()
                return
            patiently = self.store.database.patiently
            if not await asyncio.to_thread(patiently, lambda: self._is_open(scribe)):
                return
            agent = self._agents[await asyncio.to_thread(patiently, lambda: self._queue_of(scribe))]
            self.store.taken[scribe.run_id] = (process, scribe)
            deps = self._deps() if callable(self._deps) else self._deps
            await agent.resume(scribe.run_id, deps=deps, allow_policy_change=self._allow)
        except (SegmentFullError, LostError, RunTakenError):
            pass
        except MaymustError as fault:
            log.warning("run %s: %s", scribe.run_id, fault)
            await asyncio.to_thread(self._note, scribe, fault)
        except BaseException:
            scribe.leave()
            raise
        finally:
            self.store.taken.pop(scribe.run_id, None)

    def _is_open(self, scribe: Scribe) -> bool:
        """Whether there is something to do; else the segment is brought to its end: it has come there already, or the run was cancelled."""
        database = self.store.database
        last = scribe.recorded[-1][1] if scribe.recorded else {}
        with database.reading() as sql:
            row = existing(sql, scribe.run_id, database)
            parts = read_parts(sql, scribe.run_id, scribe.number) if "end" in last else None
        if parts is not None:
            # The attempt before this one ended between its last step and its outcome.
            end_segment(self.store, scribe, last["end"], ())
            scribe.finish({**last["end"], "state": parts})
        elif row["segment"] != scribe.number:
            scribe.finish({"status": "superseded"})
        elif row["cancelled_at"] is not None:
            self.store.end_cancelled(scribe.run_id)
            scribe.finish({"status": "superseded"})
        else:
            return True
        return False

    def _note(self, scribe: Scribe, fault: MaymustError) -> None:
        """A run that could not be gone on with says why; what broke off in its course has said it in its state."""

        def write() -> None:
            with self.store.database.writing() as sql:
                row = existing(sql, scribe.run_id, self.store.database, lock=True)
                if row["segment"] == scribe.number and row["status"] in ("running", "queued"):
                    set_run(sql, scribe.run_id, status="stopped", owner=None, error=str(fault))

        self.store.database.patiently(write)
        scribe.finish({"status": "refused", "error": str(fault)})

    def _queue_of(self, scribe: Scribe) -> str:
        with self.store.database.reading() as sql:
            return str(existing(sql, scribe.run_id, self.store.database)["queue"])

    def _sweep(self) -> None:
        process = self._process
        if process is not None and time.monotonic() - self._swept > min(process.lease / 3, 5.0):
            self._swept = time.monotonic()
            recovered = sweep(self.store, process)
            if recovered:
                log.warning("%d runs of workers that have ended go on with others", recovered)


class _Lanes:
    """Threads with an event loop each, for one run at a time: connections of models belong to a loop, and are used again in it."""

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, "maymust run")
        self._local = threading.local()

    def run(self, work: Callable[[], Any]) -> None:
        """Run a coroutine function in the next free lane, outside of any workflow."""
        self._pool.submit(contextvars.Context().run, self._in_lane, work)

    def _in_lane(self, work: Callable[[], Any]) -> None:
        runner = getattr(self._local, "runner", None)
        if runner is None:
            runner = self._local.runner = asyncio.Runner()
        try:
            runner.run(work())
        except Exception:
            log.exception("a run broke off")

    def close(self) -> None:
        """Take no more work, and wait for what is under way."""
        self._pool.shutdown(wait=True)

"""The thread that keeps the leases of a store's runs, and hears when one of them is cancelled, or spoken to, from outside."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from maymust.durable import messages
from maymust.errors import MaymustError

if TYPE_CHECKING:
    from maymust.durable.claim import SqliteJournal
    from maymust.durable.sqlite_store import SqliteStore

log: logging.Logger = logging.getLogger(__name__)

_LOOK = 0.5
"""Seconds between two looks for cancellations and messages."""


class Renewal:
    """Runs while there are claims. Not asyncio: a run whose event loop is blocked by a slow body keeps its lease."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._claims: dict[str, SqliteJournal] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, claim: SqliteJournal) -> None:
        """Keep this claim's lease from now on."""
        with self._lock:
            self._claims[claim.owner.token] = claim
            # After a fork the object is there, and the thread is not.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="maymust leases", daemon=True)
                self._thread.start()

    def drop(self, claim: SqliteJournal) -> None:
        """This claim is over."""
        with self._lock:
            self._claims.pop(claim.owner.token, None)
            if not self._claims:
                self._wake.set()

    def of_run(self, run_id: str) -> SqliteJournal | None:
        """The claim of a run in this process."""
        with self._lock:
            return next((claim for claim in self._claims.values() if claim.run_id == run_id), None)

    def _work(self) -> None:
        renewed = self._store.clock()
        while True:
            self._wake.wait(min(_LOOK, self._store.lease / 4))
            with self._lock:
                claims = list(self._claims.values())
                self._wake.clear()
                if not claims:
                    self._thread = None
                    return
            try:
                now = self._store.clock()
                if now - renewed >= self._store.lease / 3:
                    self._renew(claims, now)
                    renewed = now
                self._look(claims)
            except MaymustError as fault:
                log.warning("the leases of %d runs could not be renewed: %s", len(claims), fault)

    def _renew(self, claims: list[SqliteJournal], now: float) -> None:
        until = now + self._store.lease
        with self._store.database.writing(sync=False) as connection:
            for claim in claims:
                mine = (until, claim.run_id, claim.owner.token)
                done = connection.execute("UPDATE runs SET lease_until = ? WHERE run_id = ? AND owner = ?", mine)
                if done.rowcount:
                    claim.renewed(until)

    def _look(self, claims: list[SqliteJournal]) -> None:
        with self._store.database.reading() as connection:
            rows = connection.execute("SELECT run_id FROM runs WHERE cancelled_at IS NOT NULL AND owner IS NOT NULL").fetchall()
            said = messages.unread_by(connection, [claim.run_id for claim in claims])
        cancelled = {row["run_id"] for row in rows}
        for claim in claims:
            if claim.run_id in cancelled:
                claim.cancel()
            claim.letterbox.bring(said.get(claim.run_id, ()))

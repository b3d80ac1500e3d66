"""The runs that a server shows: files that were named, and what stands in directories."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from maymust.trace.reader import is_trace
from maymust.web.follow import Follower
from maymust.web.known import Known

MOST = 500
"""How many runs of a directory are shown, the newest ones."""
_FRESH = 0.5
"""Seconds for which a listing of a directory holds."""


class Shelf:
    """Runs by their ids. An id is made from the path here, and never a path from an id: nobody can ask for another file.

    sources  traces (or states as JSON) and directories with traces
    policy   the policy of the runs, where they do not say what it was
    """

    def __init__(self, sources: Iterable[str], policy: Known | None = None) -> None:
        self._policy = policy
        self._sources = [Path(source) for source in sources]
        self._runs: dict[str, Follower] = {}
        self._listed: tuple[float, list[tuple[str, str]]] | None = None
        self._lock = threading.Lock()

    def names(self) -> list[tuple[str, str]]:
        """(id, name) of every run: as they were named, those of a directory with the newest first."""
        with self._lock:
            now = time.monotonic()
            if self._listed is None or now - self._listed[0] > _FRESH:
                self._listed = now, [self._known(path, name) for source in self._sources for path, name in _found(source)]
            return self._listed[1]

    def get(self, key: str) -> Follower | None:
        """A run by its id."""
        self.names()
        with self._lock:
            return self._runs.get(key)

    def _known(self, path: Path, name: str) -> tuple[str, str]:
        key = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
        if key not in self._runs:
            self._runs[key] = Follower(path, name, self._policy)
        return key, name


def _found(source: Path) -> list[tuple[Path, str]]:
    if not source.is_dir():
        return [(source, str(source))]
    inside = os.path.realpath(source)
    try:
        # A link could stand for a file that somebody else put elsewhere.
        entries = [one for one in os.scandir(source) if os.path.dirname(os.path.realpath(one.path)) == inside and is_trace(one.path)]
        found = sorted(((one.stat().st_mtime, Path(one.path), one.name) for one in entries), key=lambda one: (-one[0], one[2]))
    except OSError:
        return []  # it is gone, or a file of it went while it was looked at
    return [(path, name) for _, path, name in found[:MOST]]

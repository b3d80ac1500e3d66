"""The calls of some tools in one run: read once, as they come, and right for every version of the history."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from maymust.core.history import History
from maymust.core.step import Step


class StepLog:
    """Reads each call once. It grows with the steps, so older versions of a history see only the first entries.

    tools     whose calls are read
    failures  failed calls are read as well as successful ones
    kept      what readers made of the calls they saw last, with the number of calls it stands for
    """

    def __init__(self, tools: Iterable[str], *, failures: bool = False) -> None:
        self._failures = failures
        self._lock = threading.Lock()
        self._read = dict.fromkeys(tools, 0)
        self._places: list[int] = []
        self._asked = (-1, 0)
        self.kept: dict[object, tuple[int, Any]] = {}

    def calls(self, history: History) -> int:
        """How many of these calls there are in this version of the history. O(1) at the newest one."""
        length = len(history)
        asked = self._asked
        if asked[0] == length:
            return asked[1]
        places = history.tally(self._failures).places
        for tool, read in self._read.items():
            known = places.get(tool)
            if known is not None and len(known) > read and known[read] < length:
                self._grow(history)
                break
        mine = self._places
        calls = len(mine) if not mine or mine[-1] < length else bisect_left(mine, length)
        self._asked = (length, calls)
        return calls

    def _grow(self, history: History) -> None:
        length = len(history)
        places = history.tally(self._failures).places
        with self._lock:
            fresh: list[int] = []
            reached = dict(self._read)
            for tool, read in self._read.items():
                known = places.get(tool, [])
                reached[tool] = max(read, bisect_left(known, length))
                fresh += known[read : reached[tool]]
            # Several tools give places in no order. All is read before anything is kept: an author's function may raise.
            for place, found in [(place, self._found(history[place])) for place in sorted(fresh)]:
                self._take(found)
                # Last, so that a reader without the lock never sees a place whose values are missing.
                self._places.append(place)
            self._read = reached

    def _found(self, step: Step) -> Any:
        """What there is to read in a call."""
        raise NotImplementedError

    def _take(self, found: Any) -> None:
        """Keep what was read in the next call."""
        raise NotImplementedError

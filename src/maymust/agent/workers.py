"""Threads for the bodies of sync tools: taken up again when a body is done, made anew when all are busy."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Work = Callable[[], None]


class Worker:
    """A thread that does one piece of work after another. A daemon: a body that hangs does not keep the process from ending."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="maymust tool", daemon=True).start()

    def do(self, work: Work) -> None:
        """Do this in the thread."""
        self._work.put(work)

    def end(self) -> None:
        """Let the thread end when it has done what it has to do."""
        self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()


class Workers:
    """The threads of one run. For its event loop only.

    There is always one more where all are busy, so a body that hangs starves no other.
    """

    def __init__(self) -> None:
        self._idle: list[Worker] = []
        self.closed: bool = False

    def take(self) -> Worker:
        """A worker that has nothing to do."""
        return self._idle.pop() if self._idle else Worker()

    def give_back(self, worker: Worker) -> None:
        """The worker has done its work."""
        if self.closed:
            worker.end()
        else:
            self._idle.append(worker)

    def close(self) -> None:
        """The run is over: idle threads end now, busy ones when they are given back."""
        self.closed = True
        while self._idle:
            self._idle.pop().end()

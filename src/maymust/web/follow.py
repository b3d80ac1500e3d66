"""A trace that may still be written: read as far as it goes, again and again."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from maymust.agent.state import RunState
from maymust.errors import MaymustError
from maymust.trace.reader import MARK, Trace, TraceError, parse_line
from maymust.trace.recording import Recording, recording_of
from maymust.trace.records import Record
from maymust.web.board import Board
from maymust.web.known import Known, known_policy

MOST_BYTES = 256 * 1024 * 1024
_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


class Follower:
    """One run, as its file tells it. Safe to be used by many threads.

    path        the file: a trace, or the state of a run as JSON
    name        what the run is called
    policy      its policy, for where the file does not say it
    generation  goes up when the file was begun anew: then nothing of before holds
    version     goes up with whatever is new
    problem     why the file cannot be read (any further); empty when it can
    """

    def __init__(self, path: Path, name: str, policy: Known | None = None) -> None:
        self.path: Path = path
        self.name: str = name
        self._given = policy
        self.generation: int = 0
        self.version: int = 0
        self.problem: str = ""
        self.recording: Recording | None = None
        self.known: Known = policy or Known()
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._begin()

    def _begin(self) -> None:
        self._offset, self._rest, self._records = 0, b"", list[Record]()
        self._board: Board | None = None
        self.recording = None
        self.generation += 1

    def refresh(self) -> None:
        """Read what is new. What is wrong with the file is in `problem` afterwards."""
        with self._lock:
            try:
                found = self.path.stat()
                seen = (found.st_ino, found.st_size, found.st_mtime_ns)
                if seen == self._seen:
                    return
                if found.st_size > MOST_BYTES:
                    raise TraceError(f"the file is larger than {MOST_BYTES // 1024 // 1024} MiB")
                if self.problem or (self._seen is not None and (found.st_ino != self._seen[0] or found.st_size < self._offset)):
                    self._begin()
                self._seen = seen
                self._read()
                self.problem = ""
            except OSError as fault:
                self._seen = None
                self.problem = f"{self.name} cannot be read: {fault.strerror or fault}"
            except MaymustError as fault:
                self.problem = f"{self.name}: {fault}"
            except _DAMAGE as fault:
                self.problem = f"{self.name} is damaged: {type(fault).__name__}: {str(fault)[:300]}"

    def _read(self) -> None:
        with self.path.open("rb") as file:
            file.seek(self._offset)
            content = file.read(MOST_BYTES)
        if self._offset == 0 and not content.startswith(MARK):
            if MARK.startswith(content):
                return  # it has just been begun
            self._begin()
            self._show(recording_of(RunState.from_json(content)))
            return
        self._offset += len(content)
        *whole, self._rest = (self._rest + content).split(b"\n")
        before = len(self._records)
        for line in whole:
            if line.strip():
                self._records.append(parse_line(line, len(self._records) + 1))
        if len(self._records) > before:
            self._show(recording_of(Trace(tuple(self._records), torn=False)))

    def _show(self, recording: Recording) -> None:
        self.recording = recording
        if self._board is None:
            found = known_policy(recording)
            self.known = self._given if found.policy is None and self._given is not None else found
            self._board = Board(self.name, self.known)
        self._board.update(recording)
        self.version += 1

    @property
    def ended(self) -> bool:
        """True when the run has ended."""
        return self.recording is not None and self.recording.stop_reason is not None

    def news(self, mark: tuple[int, int, int] | None) -> tuple[tuple[int, int, int], dict[str, Any]] | None:
        """What somebody does not know who knows all up to a mark, with the mark of now; None when there is nothing.

        A mark is the generation and the size of what was told, None at the beginning.
        """
        with self._lock:
            if self._board is None:
                return None
            columns, cells = self._board.size
            now = (self.generation, columns, cells)
            if mark is None or mark[0] != self.generation:
                return now, self._board.snapshot()
            patch = self._board.patch(max(0, mark[1] - 1), mark[2])
            return now, patch

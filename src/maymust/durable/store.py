"""What a store of runs tells, and what can go wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from maymust.errors import RunError

Status = Literal["queued", "running", "interrupted", "paused", "ended", "stopped", "cancelled"]
"""queued: it waits for a worker. running: a process works on it.
interrupted: its process is gone. paused: it waits for a person. ended: it has its answer.
stopped: it ended without one, and can be resumed. cancelled: somebody ended it for good."""


class StoreError(RunError):
    """The store cannot be read or written. Nothing that could not be kept has happened since.

    away   the database was not there, so that the same may succeed later
    """

    away: bool = False


class RunTakenError(RunError):
    """Somebody else works on the run: one process at a time."""


class DecisionError(RunError):
    """A decision came too late, or contradicts one that was there first.

    call_id   the call
    first     the decision that counts; None when there is none (the run is over, the question is no more)
    """

    def __init__(self, message: str, *, call_id: str = "", first: Question | None = None) -> None:
        super().__init__(message)
        self.call_id: str = call_id
        self.first: Question | None = first


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run in a list. Times are seconds since the epoch; `open` counts the questions that wait."""

    run_id: str
    status: Status
    agent: str | None
    input: str
    seq: int
    open: int
    created_at: float
    updated_at: float
    stop_reason: str | None = None
    answer: str | None = None
    error: str | None = None
    pid: int | None = None
    host: str | None = None
    cancelled_by: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits, or has waited, for a person.

    interrupted  it is asked because the process ended while the call ran
    answer       "yes", "no", "happened", "withdrawn" (the run ended first), or None
    used         a run has gone on with the answer
    """

    run_id: str
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    requirements: tuple[str, ...]
    reasons: tuple[str, ...]
    interrupted: bool
    asked_at: float
    expires_at: float | None = None
    answer: str | None = None
    reason: str | None = None
    by: str | None = None
    decided_at: float | None = None
    used: bool = False


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Something that happened to a run: when, what, and who did it where that is known."""

    at: float
    run_id: str
    kind: str
    by: str | None
    call_id: str | None
    detail: Mapping[str, Any]

"""Who works on a run: a process on a host. A lease says for how long others believe that without looking."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass, field
from typing import Any, Protocol

from maymust.durable.store import RunTakenError

LEASE = 30.0
"""Seconds for which a process has a run without renewing it."""


def born(pid: int) -> str | None:
    """When the process began, in the system's own words, to tell it from a later one of the same number. None where that is not told.

    Numbers count within a namespace, of which containers have one each, so that is said first.
    """
    try:
        here = os.readlink("/proc/self/ns/pid")
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    # A zombie has ended, its parent has only not noticed.
    return None if fields[0] in ("Z", "X") else f"{here} {fields[19]}"


@dataclass(frozen=True, slots=True)
class Owner:
    """One claim of one process; a second claim in the same process is another owner."""

    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    born: str | None = field(default_factory=lambda: born(os.getpid()))


class _Row(Protocol):
    def __getitem__(self, key: str, /) -> Any: ...


def is_free(row: _Row, now: float) -> bool:
    """Whether nobody works on the run: nobody has it, its process has ended, or its lease has run out."""
    return row["owner"] is None or row["lease_until"] < now or _has_ended(row)


def _has_ended(row: _Row) -> bool:
    here = born(os.getpid())
    if row["host"] != socket.gethostname() or (here is None) != (row["born"] is None):
        return False
    if here is not None and here.partition(" ")[0] != row["born"].partition(" ")[0]:
        return False
    if os.name == "nt":
        # There the question would be a Ctrl-C; the lease has to do.
        return False
    try:
        os.kill(row["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return here is not None and born(row["pid"]) != row["born"]


def taken(row: _Row, now: float) -> RunTakenError:
    """The error for whoever comes second."""
    me = row["pid"] == os.getpid() and row["host"] == socket.gethostname()
    who = "this very process" if me else f"process {row['pid']} on {row['host']}"
    left = max(row["lease_until"] - now, 0.0)
    return RunTakenError(
        f"run {row['run_id']} is being worked on by {who}: one process at a time works on a run. Wait for it, or end it; "
        f"a process that has stopped answering loses the run in {left:.0f} s"
    )

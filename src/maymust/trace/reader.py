"""Reading a trace."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from maymust.agent.events import RunEvent
from maymust.errors import MaymustError
from maymust.trace.encode import decode
from maymust.trace.records import VERSION, Record, TraceStarted

MARK = b'{"trace":'
"""How a trace begins."""

_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)


class TraceError(MaymustError):
    """A file is no trace, or a damaged one. The text says where and why."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that was read.

    records  its lines
    torn     the last line was not whole, and is left out: the process ended while it wrote
    """

    records: tuple[Record, ...]
    torn: bool = False

    @property
    def events(self) -> tuple[RunEvent, ...]:
        """The events without their times."""
        return tuple(record.event for record in self.records)

    @property
    def start(self) -> TraceStarted:
        """The first record."""
        first = self.records[0].event
        assert isinstance(first, TraceStarted)
        return first


def is_trace(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a trace does. False for what cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(len(MARK)) == MARK
    except (OSError, ValueError):
        return False


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace. Raises TraceError for what is none, or is damaged elsewhere than at its end."""
    name = os.fspath(path)
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as fault:
        raise TraceError(f"{name} cannot be read: {getattr(fault, 'strerror', None) or fault}") from fault
    return parse_trace(content, name)


def parse_trace(content: bytes, name: str = "<trace>") -> Trace:
    """The trace in these bytes. Raises TraceError as `read_trace` does."""
    if not content.startswith(MARK):
        raise TraceError(f"{name} is no trace: its first line does not begin with {MARK.decode()}")
    *whole, rest = content.split(b"\n")
    records = list(_records(whole, name))
    torn = bool(rest)
    if torn:
        try:
            records.append(_record(rest, len(whole) + 1))
            torn = False
        except _DAMAGE:
            pass
    if not records:
        raise TraceError(f"{name}: its first line is not whole, so nothing is known of the run")
    return Trace(tuple(records), torn)


def parse_line(line: bytes, number: int) -> Record:
    """One whole line of a trace, by its number. Raises TraceError for a damaged one, and for one of another version."""
    try:
        return _record(line, number)
    except _DAMAGE as fault:
        raise TraceError(f"line {number} is damaged ({type(fault).__name__}: {str(fault)[:200]})") from fault


def _records(lines: list[bytes], name: str) -> Iterator[Record]:
    run_id: str | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = _record(line, number)
        except TraceError as fault:
            raise TraceError(f"{name}:{number}: {fault}") from None
        except _DAMAGE as fault:
            raise TraceError(f"{name}:{number}: this line is damaged ({type(fault).__name__}: {str(fault)[:200]})") from fault
        run_id = run_id or record.event.run_id
        if record.event.run_id != run_id:
            raise TraceError(f"{name}:{number}: this line is of run {record.event.run_id}, not of {run_id}; one file holds one run")
        yield record


def _record(line: bytes, number: int) -> Record:
    data = json.loads(line)
    version = data.get("trace", VERSION)
    if version != VERSION:
        raise TraceError(f"the trace has version {version}, and this maymust reads version {VERSION}; read it with a newer one")
    if not isinstance(data["run"], str) or not isinstance(data["kind"], str) or not isinstance(data["data"], dict):
        raise TypeError("a record has the keys at, run, kind and data")
    return Record(float(data["at"]), decode(data["kind"], data["run"], data["data"]), number)

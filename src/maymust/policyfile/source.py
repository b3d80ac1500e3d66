"""A file as text: read within limits, whatever stands at its path."""

from __future__ import annotations

import os
import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from maymust.core.tool_spec import closest
from maymust.policyfile.problem import PolicyFileError, Position, Problem

MOST_BYTES = 256 * 1024
"""A policy of a hundred tools takes a tenth of this."""

# YAML's own list of what a text may hold; U+FEFF is accepted at the start only.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Source:
    """A text and where it came from. `path` is as it was given, `<stdin>` for standard input."""

    path: str
    text: str

    @property
    def lines(self) -> list[str]:
        """The lines, split where YAML splits them."""
        return _BREAK.split(self.text)

    def position_at(self, index: int) -> Position:
        """The position of one character."""
        breaks = list(_BREAK.finditer(self.text, 0, index))
        column = index - (breaks[-1].end() if breaks else 0) + 1
        return Position(len(breaks) + 1, column, len(breaks) + 1, column + 1)


def read_source(path: str | os.PathLike[str]) -> Source:
    """Read a file; `-` is standard input. Raises PolicyFileError for what is no UTF-8 text of a sensible size."""
    name = os.fspath(path)
    if name == "-":
        return as_source("<stdin>", sys.stdin.buffer.read(MOST_BYTES + 1))
    try:
        mode = os.stat(name).st_mode
        content = _read(name) if stat.S_ISREG(mode) else b""
    except (OSError, ValueError) as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _refused(name, "MF001", f"the file cannot be read: {text}", _near(name)) from error
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
        hint = "name a file in it" if stat.S_ISDIR(mode) else "pipe its content in, and write - for the path"
        raise _refused(name, "MF001", f"this is {kind}", hint)
    return as_source(name, content)


def _near(name: str) -> str:
    """A file of the same directory that may have been meant; an empty text when there is none, or no directory."""
    place, given = os.path.split(name)
    try:
        near = closest(given, os.listdir(place or "."))
    except (OSError, ValueError):
        return ""
    return f"did you mean {os.path.join(place, near[0])}?" if near and near[0] != given else ""


def _read(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(MOST_BYTES + 1)


def as_source(name: str, content: bytes) -> Source:
    """Return bytes as a source. Raises PolicyFileError for too many of them, and for what is no UTF-8 text."""
    if len(content) > MOST_BYTES:
        raise _refused(name, "MF002", f"the file is larger than {MOST_BYTES // 1024} KiB", "split the policy, or write it in Python")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _refused(name, "MF003", "the file is UTF-16", "save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = content[: error.start].decode("utf-8-sig")
        where = Source(name, good).position_at(len(good))
        problem = Problem("MF003", f"the byte 0x{content[error.start]:02x} is not UTF-8", where, "save the file as UTF-8")
        raise PolicyFileError(name, [problem], content.decode("utf-8-sig", "replace")) from None
    source = Source(name, text)
    bad = _UNPRINTABLE.search(text)
    if bad is not None:
        problem = Problem("MF003", f"the character U+{ord(bad[0]):04X} may not stand in a file", source.position_at(bad.start()))
        raise PolicyFileError(name, [problem], text)
    return source


def _refused(name: str, code: str, message: str, help: str = "") -> PolicyFileError:
    return PolicyFileError(name, [Problem(code, message, help=help)])  # type: ignore[arg-type]

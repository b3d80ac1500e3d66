"""What is wrong with a file, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from maymust.errors import PolicyError

ProblemCode = Literal["MF001", "MF002", "MF003", "MF004", "MF005", "MF006", "MF007", "MF008", "MF009", "MF010", "MF011"]

TITLES: dict[ProblemCode, str] = {
    "MF001": "the file cannot be read",
    "MF002": "the file is too large, too deep or too long",
    "MF003": "the file is no UTF-8 text",
    "MF004": "the file is no YAML",
    "MF005": "a key is given twice",
    "MF006": "a part of YAML that these files do not use",
    "MF007": "a key is missing",
    "MF008": "a key is unknown",
    "MF009": "a value is of the wrong kind",
    "MF010": "a tool is unknown",
    "MF011": "a rule contradicts itself",
}
"""Every code, with what it stands for."""

MOST = 20
"""So many problems are collected; a file with more is not worth reading on."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A range of a text. Lines and columns are counted from 1, in characters; the end is exclusive."""

    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1


START = Position()


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    code      which kind of thing, see `TITLES`
    message   what is wrong, in a sentence
    position  where
    help      what to write instead; empty when the message says it
    """

    code: ProblemCode
    message: str
    position: Position = START
    help: str = ""


class PolicyFileError(PolicyError):
    """A file is not what it should be.

    path      the file, as it was given
    problems  everything that was found, in the order of the file
    text      the text of the file; empty when it could not be read
    """

    def __init__(self, path: str, problems: Iterable[Problem], text: str = "") -> None:
        self.path = path
        self.problems: tuple[Problem, ...] = tuple(sorted(problems, key=lambda problem: problem.position))
        self.text = text
        lines = []
        for problem in self.problems:
            place = problem.position
            lines.append(f"{path}:{place.line}:{place.column}: {problem.message}{f'; {problem.help}' if problem.help else ''}")
        super().__init__("\n".join(lines))

    @property
    def line(self) -> int:
        """Line of the first problem."""
        return self.problems[0].position.line

    @property
    def column(self) -> int:
        """Column of the first problem."""
        return self.problems[0].position.column

    def __reduce__(self) -> tuple[type[PolicyFileError], tuple[str, tuple[Problem, ...], str]]:
        return (PolicyFileError, (self.path, self.problems, self.text))


class TooManyError(Exception):
    """Raised by `Problems.add` when there is no room for more."""


class Problems:
    """Collects what is wrong with one file."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, code: ProblemCode, message: str, position: Position, help: str = "") -> None:
        """Note a problem. Raises TooManyError when that was the last one there is room for."""
        self.found.append(Problem(code, message, position, help))
        if len(self.found) >= MOST:
            raise TooManyError

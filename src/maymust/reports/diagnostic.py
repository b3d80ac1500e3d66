"""One thing that was found, with all that a reader needs to act on it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from maymust.policyfile.load import PolicyFile
from maymust.policyfile.problem import TITLES, PolicyFileError, Position
from maymust.verify.finding import Finding
from maymust.verify.report import Report

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Place:
    """A range in a file. `line_text` is the line it begins in, None when it is not at hand."""

    path: str
    position: Position = field(default_factory=Position)
    line_text: str | None = None


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that has a part in it, with what stands there."""

    label: str
    place: Place


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What was found.

    code      `MM…` for findings, `MF…` for problems of a file, `MT…` for failed tests, `MD…` for differences
    name      the code in words
    message   what is the matter, in a sentence
    place     where; None when it stands nowhere
    help      what to do about it; empty when there is nothing to add
    rules     names of the rules involved
    related   where the other ones stand
    witness   a shortest sequence of calls after which it shows; None when there is none to show
    notes     why, in lines
    """

    code: str
    name: str
    severity: Severity
    message: str
    place: Place | None = None
    help: str = ""
    rules: tuple[str, ...] = ()
    related: tuple[Related, ...] = ()
    witness: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        said: dict[str, Any] = {"code": self.code, "name": self.name, "severity": self.severity, "message": self.message}
        if self.place is not None:
            said |= _place_to_dict(self.place)
        if self.help:
            said["help"] = self.help
        if self.rules:
            said["rules"] = list(self.rules)
        if self.related:
            said["related"] = [{"label": related.label, **_place_to_dict(related.place)} for related in self.related]
        if self.witness is not None:
            said["witness"] = list(self.witness)
        if self.notes:
            said["notes"] = list(self.notes)
        return said


@dataclass(frozen=True, slots=True)
class FileResult:
    """What came of one file (or one policy in Python).

    path         the file as it was given, or `module:name`
    verdict      the verdict of `verify`; "unusable" when the file could not be read
    diagnostics  what was found, gravest first
    facts        what holds, in sentences
    report       the whole report, where there is one
    tools        where each tool is named, for the steps of a witness
    """

    path: str
    verdict: str
    diagnostics: tuple[Diagnostic, ...] = ()
    facts: tuple[str, ...] = ()
    report: Report | None = None
    tools: dict[str, Place] = field(default_factory=dict)

    def count(self, severity: Severity) -> int:
        """How many diagnostics are so grave."""
        return sum(diagnostic.severity == severity for diagnostic in self.diagnostics)


def _place_to_dict(place: Place) -> dict[str, Any]:
    position = place.position
    return {
        "file": place.path,
        "line": position.line,
        "column": position.column,
        "end_line": position.end_line,
        "end_column": position.end_column,
    }


class Locator:
    """Where the rules and tools of a policy stand: in its file, or in the module it came from."""

    def __init__(self, file: PolicyFile | None, module: str | None = None) -> None:
        self._file = file
        self._lines = [] if file is None else file.source.lines
        self._default = None if module is None else Place(module, START_OF_FILE)

    def rule(self, name: str) -> Place | None:
        """Where a rule begins."""
        return self._at("rules", name)

    def tools(self) -> dict[str, Place]:
        """Where each tool is named."""
        if self._file is None:
            return {}
        return {name: self._place(position) for name, position in self._file.tool_positions().items()}

    def _at(self, *keys: str) -> Place | None:
        if self._file is None:
            return self._default
        return self._place(self._file.position_of(*keys))

    def _place(self, position: Position) -> Place:
        assert self._file is not None
        return place_in(self._file.path, position, self._lines)

    def diagnostic(self, finding: Finding) -> Diagnostic:
        """A finding with its places: the first rule involved is the place, the others are related."""
        places = [(rule, self.rule(rule)) for rule in finding.rules]
        main = places[0][1] if places else self._at("tools")
        related = tuple(Related(f"rule {rule}", place) for rule, place in places[1:] if place is not None and place != main)
        witness = finding.witness if finding.witness or finding.severity == "error" else None
        return Diagnostic(
            finding.code, finding.name, finding.severity, finding.message, main, finding.help, finding.rules, related, witness
        )


START_OF_FILE = Position(1, 1, 1, 1)


def place_in(path: str, position: Position, lines: list[str]) -> Place:
    """A place with its line."""
    return Place(path, position, lines[position.line - 1] if 0 < position.line <= len(lines) else None)


def of_file_error(error: PolicyFileError) -> FileResult:
    """What came of a file that is none."""
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", error.text) if error.text else []
    found = tuple(
        Diagnostic(
            problem.code,
            TITLES[problem.code],
            "error",
            problem.message,
            place_in(error.path, problem.position, lines),
            problem.help,
        )
        for problem in error.problems
    )
    return FileResult(error.path, "unusable", found)

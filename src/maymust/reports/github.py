"""Diagnostics as workflow commands of GitHub Actions, which become annotations on the changed lines."""

from __future__ import annotations

from collections.abc import Iterable

from maymust.reports.diagnostic import Diagnostic, FileResult

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def github_document(results: Iterable[FileResult]) -> str:
    """One line for each diagnostic."""
    return "".join(f"{annotation(diagnostic)}\n" for result in results for diagnostic in result.diagnostics)


def annotation(diagnostic: Diagnostic) -> str:
    """One annotation."""
    fields = {"title": f"{diagnostic.code} {diagnostic.name.replace('_', ' ')}"}
    if diagnostic.place is not None:
        position = diagnostic.place.position
        fields = {"file": diagnostic.place.path, "line": str(position.line), "col": str(position.column), **fields}
        if position.end_line == position.line and position.end_column > position.column:
            fields["endColumn"] = str(position.end_column)
    lines = [diagnostic.message]
    if diagnostic.witness is not None:
        lines.append(f"witness: {', '.join(diagnostic.witness) or 'at the start'}")
    lines.extend(diagnostic.notes)
    if diagnostic.help:
        lines.append(f"help: {diagnostic.help}")
    said = ",".join(f"{key}={_value(value)}" for key, value in fields.items())
    return f"::{_COMMANDS[diagnostic.severity]} {said}::{_data(chr(10).join(lines))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

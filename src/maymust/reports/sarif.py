"""Results as SARIF 2.1.0, for code scanning. The witness of a finding is a code flow."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from maymust.reports.diagnostic import Diagnostic, FileResult, Place
from maymust.reports.runs import call_of

_LEVELS = {"error": "error", "warning": "warning", "note": "note"}
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif_document(results: Iterable[FileResult], *, version: str, exit_code: int) -> str:
    """One SARIF log with one run."""
    results = tuple(results)
    found = [(result, diagnostic) for result in results for diagnostic in result.diagnostics]
    rules = {diagnostic.code: diagnostic for _, diagnostic in found}
    order = sorted(rules)
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "maymust", "semanticVersion": version, "rules": [_rule(rules[code]) for code in order]}},
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": exit_code in (0, 1), "exitCode": exit_code}],
                "results": [_result(result, diagnostic, order.index(diagnostic.code)) for result, diagnostic in found],
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rule(diagnostic: Diagnostic) -> dict[str, Any]:
    name = "".join(word.capitalize() for word in diagnostic.name.replace("_", " ").split())
    return {
        "id": diagnostic.code,
        "name": name,
        "shortDescription": {"text": diagnostic.name.replace("_", " ")},
        "defaultConfiguration": {"level": _LEVELS[diagnostic.severity]},
    }


def _result(result: FileResult, diagnostic: Diagnostic, index: int) -> dict[str, Any]:
    text = f"{diagnostic.message}.{f' {diagnostic.help}.' if diagnostic.help else ''}"
    said: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": index,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": text},
        "locations": [_location(diagnostic.place)] if diagnostic.place is not None else [],
        "partialFingerprints": {"maymust/v1": _fingerprint(diagnostic)},
    }
    if diagnostic.related:
        said["relatedLocations"] = [
            {**_location(related.place, related.label), "id": number} for number, related in enumerate(diagnostic.related)
        ]
    if diagnostic.witness is not None and diagnostic.place is not None:
        said["codeFlows"] = [_flow(result, diagnostic, diagnostic.place)]
    return said


def _flow(result: FileResult, diagnostic: Diagnostic, end: Place) -> dict[str, Any]:
    """The witness: each call where its tool is named, then the finding itself."""
    witness = diagnostic.witness or ()
    steps = []
    for number, step in enumerate(witness, 1):
        name, _, outcome = call_of(step).partition("!")
        text = f"step {number}: {step}" if "×" in step else f"step {number}: {name} comes back {outcome or 'ok'}"
        steps.append({"location": _location(result.tools.get(name, end), text), "executionOrder": number, "importance": "important"})
    last = {"location": _location(end, diagnostic.message), "executionOrder": len(witness) + 1, "importance": "essential"}
    words = f"after {', '.join(witness)}" if witness else "at the start"
    return {"message": {"text": words}, "threadFlows": [{"locations": [*steps, last]}]}


def _location(place: Place, message: str | None = None) -> dict[str, Any]:
    position = place.position
    region = {"startLine": position.line, "startColumn": position.column}
    if (position.end_line, position.end_column) > (position.line, position.column):
        region |= {"endLine": position.end_line, "endColumn": position.end_column}
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(place.path)}, "region": region}}
    if message is not None:
        location["message"] = {"text": message}
    return location


def _uri(path: str) -> str:
    if os.path.isabs(path):
        return Path(path).as_uri()
    return quote(path.replace(os.sep, "/"))


def _fingerprint(diagnostic: Diagnostic) -> str:
    """The same for the same finding when lines above it come and go."""
    path = diagnostic.place.path if diagnostic.place is not None else ""
    line = (diagnostic.place.line_text or "").strip() if diagnostic.place is not None else ""
    text = "\0".join((diagnostic.code, path, line, *(diagnostic.witness or ())))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]

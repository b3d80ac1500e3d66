"""Results as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from maymust.reports.diagnostic import FileResult


def document(kind: str, **fields: Any) -> str:
    """One JSON document; `schema` says what it is and in which version."""
    return json.dumps({"schema": f"maymust.{kind}/1", **fields}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def results_document(results: Iterable[FileResult], exit_code: int) -> str:
    """What `maymust verify --json` prints."""
    return document("verify", exit_code=exit_code, files=[_result(result) for result in results])


def _result(result: FileResult) -> dict[str, Any]:
    said: dict[str, Any] = {
        "path": result.path,
        "verdict": result.verdict,
        "diagnostics": [diagnostic.to_dict() for diagnostic in result.diagnostics],
        "facts": list(result.facts),
    }
    if result.report is not None:
        # The findings are the diagnostics, which know their places as well.
        said["report"] = {key: value for key, value in result.report.to_dict().items() if key != "findings"}
    return said

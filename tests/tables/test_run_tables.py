"""Every row of the run tables, through the public API: a scripted model, scripted tools, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.tables.harness.compare import problems_of
from tests.tables.harness.invariants import broken_invariants
from tests.tables.harness.rows import load_rows
from tests.tables.harness.runner import run_row
from tests.tables.harness.show import show

RUN_TABLES = ("loop", "exposure", "middleware", "approval")
ROWS = [pytest.param(row, id=f"{table}-{row['id']}") for table in RUN_TABLES for row in load_rows(table)]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_holds(row: Mapping[str, Any]) -> None:
    _hold(row, threads=False)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_holds_with_tools_in_threads(row: Mapping[str, Any]) -> None:
    _hold(row, threads=True)


def _hold(row: Mapping[str, Any], *, threads: bool) -> None:
    observed = run_row(row, threads=threads)
    expected = [run["expect"] for run in row.get("runs") or [row]]
    said = []
    for number, (seen, expect) in enumerate(zip(observed, expected, strict=True), 1):
        problems = [*problems_of(seen, expect), *broken_invariants(seen)]
        if problems:
            where = f"run {number}: " if len(observed) > 1 else ""
            said.append("\n".join([f"{where}{row['about']}", *(f"  - {problem}" for problem in problems), show(seen)]))
    if said:
        pytest.fail("\n".join(said), pytrace=False)

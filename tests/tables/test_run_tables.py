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
NAMED = [(f"{table}-{row['id']}", row) for table in RUN_TABLES for row in load_rows(table)]
ROWS = [pytest.param(row, id=name) for name, row in NAMED]
PAUSING = [pytest.param(row, id=name) for name, row in NAMED if "resume" in row]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_holds(row: Mapping[str, Any]) -> None:
    _hold(row, threads=False)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_holds_with_tools_in_threads(row: Mapping[str, Any]) -> None:
    _hold(row, threads=True)


@pytest.mark.parametrize("row", PAUSING)
def test_a_row_holds_when_each_resume_is_on_another_machine(row: Mapping[str, Any]) -> None:
    _hold(row, threads=False, elsewhere=True)


def _hold(row: Mapping[str, Any], *, threads: bool, elsewhere: bool = False) -> None:
    observed = run_row(row, threads=threads, elsewhere=elsewhere)
    expected = [run["expect"] for run in row.get("runs") or [row]]
    said = []
    for number, (seen, expect) in enumerate(zip(observed, expected, strict=True), 1):
        problems = [*problems_of(seen, expect), *broken_invariants(seen)]
        if problems:
            where = f"run {number}: " if len(observed) > 1 else ""
            said.append("\n".join([f"{where}{row['about']}", *(f"  - {problem}" for problem in problems), show(seen)]))
    if said:
        pytest.fail("\n".join(said), pytrace=False)

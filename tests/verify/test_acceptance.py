"""Every row of `acceptance.yaml`: the verdict, the witness, and what a supervisor denies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.errors import PermitError, PolicyError
from maymust.verify import Report, supervise, verify
from maymust.verify.witness import history_of
from tests.verify.random_rows import policy_of

ROWS = yaml.safe_load((Path(__file__).parent / "acceptance.yaml").read_text(encoding="utf-8"))["policies"]
rows = pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in ROWS if "refused_at" not in row])
KEYS = {
    *("id", "tools", "rules", "may_fail", "max_turns", "verdict", "witness", "min_steps", "supervisor", "supervisor_denies"),
    *("dead_tools", "warning", "refused_at", "doomed_after", "dead_end_at"),
}


def report_of(row: dict[str, Any]) -> Report:
    return verify(policy_of(row), max_turns=row.get("max_turns"), may_fail=row.get("may_fail", ()))


def alternatives(witness: list[Any]) -> set[tuple[str, ...]]:
    return {tuple(one) for one in witness} if witness and isinstance(witness[0], list) else {tuple(witness)}


def test_no_key_of_the_table_is_overlooked() -> None:
    assert {key for row in ROWS for key in row} <= KEYS


@rows
def test_verdict_and_witness(row: dict[str, Any]) -> None:
    report = report_of(row)
    assert report.verdict == row["verdict"]
    if row["verdict"] == "ok":
        assert report.witness is None
    else:
        assert report.witness in alternatives(row["witness"])
        assert report.findings[0].severity == "error"
        assert any(finding.witness == report.witness for finding in report.findings)


@rows
def test_steps_tools_and_supervisor(row: dict[str, Any]) -> None:
    report = report_of(row)
    if "min_steps" in row:
        assert report.min_steps == row["min_steps"]
    if "supervisor" in row:
        assert report.supervisor_exists == row["supervisor"]
    if row["verdict"] != "conflict":
        assert list(report.dead_tools) == row.get("dead_tools", [])
    warned = [finding.message for finding in report.findings if finding.name == "dead_tool"]
    assert len(warned) == len(report.dead_tools)


@rows
def test_warnings_and_where_it_goes_wrong(row: dict[str, Any]) -> None:
    report = report_of(row)
    if "warning" in row:
        (finding,) = [one for one in report.findings if one.name == row["warning"]]
        assert finding.severity == "warning"
        assert finding.witness in alternatives(row["witness"])
    if "dead_end_at" in row:
        (finding,) = [one for one in report.findings if one.name == "dead_end"]
        assert list(finding.witness) == row["dead_end_at"]
    if "doomed_after" in row:
        assert list(report.doomed_after or ()) == row["doomed_after"]


def derived_denials(policy: Policy, supervised: Policy, words: tuple[str, ...], seen: set[str], depth: int) -> set[tuple[str, ...]]:
    """Every (tool, calls before it) that the supervisor denies in runs under it, first occurrences of each situation only."""
    history = history_of(words)
    try:
        plain, held = policy.permit(history), supervised.permit(history)
    except PermitError:
        return set()
    key = repr((plain.verdicts(), held.verdicts(), plain.owed, dict(plain.reasons)))
    if key in seen or not depth:
        return set()
    seen.add(key)
    denied = {(tool, *words) for tool in set(plain.allowed) - set(held.allowed)}
    for tool in held.allowed:
        if tool != "final_answer":
            denied |= derived_denials(policy, supervised, (*words, tool), seen, depth - 1)
    return denied


@rows
def test_what_the_supervisor_denies(row: dict[str, Any]) -> None:
    if not row.get("supervisor"):
        return
    policy = policy_of(row)
    supervised = supervise(policy, may_fail=row.get("may_fail", ()))
    wanted = {(one["tool"], *one["after"]) for one in row.get("supervisor_denies", ())}
    for tool, *words in wanted:
        assert tool in policy.permit(history_of(words)).allowed
        assert tool in supervised.permit(history_of(words)).denied
    if row["verdict"] != "conflict":
        assert {tool for tool, *_ in derived_denials(policy, supervised, (), set(), 8)} == {tool for tool, *_ in wanted}


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in ROWS if row.get("refused_at") == "policy"])
def test_what_construction_refuses(row: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        policy_of(row)


def test_a_derived_denial_names_what_is_still_owed() -> None:
    (row,) = [row for row in ROWS if row["id"] == "close-before-note"]
    permit = supervise(policy_of(row)).permit(History().add("read"))
    assert permit.reasons["close"] == ("close waits: note is still owed and would become impossible",)
    assert permit.why("close")[0].requirement == "supervisor"

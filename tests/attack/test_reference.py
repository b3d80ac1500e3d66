"""The checker's own reading of the rules, held against the pure tables: a judge has to know the law."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.attack.reference import Done, NoPermit, Pass, Question, permit_after

TABLES = Path(__file__).resolve().parent.parent / "tables"
PERMIT_ERRORS = {"ConflictError", "DeadEndError", "ForceUnmetError"}
REFERENCES = ("only_before", "only_after", "force_after")
CHECKS = {True: {"always": True}, False: {"always": False}}


def _rows(table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = yaml.safe_load((TABLES / f"{table}.yaml").read_text("utf-8"))["rows"]
    return rows


def _plain(row: Mapping[str, Any]) -> bool:
    """Whether the checker's vocabulary, which knows names only and bounds of whole numbers, can say this row."""
    if row["expect"].get("error", "DeadEndError") not in PERMIT_ERRORS:
        return False
    for given in row.get("requirements", ()):
        if given.get("target_form", "name") != "name" or any(isinstance(name, dict) for key in REFERENCES for name in given.get(key, ())):
            return False
        if not all(isinstance(check, bool) or "seen" in check for check in given.get("custom_checks", ())):
            return False
    fragments = [fragment for rule in row.get("rules", ()) for fragment in rule.get("arguments", {}).values()]
    return not any({"enum", "const"} & set(fragment) for fragment in fragments)


def _conditional(given: Mapping[str, Any], number: int) -> dict[str, Any]:
    declared = {"kind": "conditional", "name": given.get("name", f"r{number}"), "priority": 10, **given}
    for key in REFERENCES:
        if isinstance(declared.get(key), str):
            declared[key] = [declared[key]]
    declared["custom_checks"] = [CHECKS[check] if isinstance(check, bool) else check for check in given.get("custom_checks", ())]
    return declared


def _fixed(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    policy: dict[str, dict[str, Any]] = {}
    for rule in rules:
        one = policy.setdefault(rule["by"], {"kind": "custom", "name": rule["by"], "priority": rule.get("priority", 10), "rules": []})
        one["rules"].append({"when": {"always": True}, **rule})
    return list(policy.values())


def _hold(row: Mapping[str, Any], policy: list[dict[str, Any]], steps: list[Done]) -> None:
    expected = row["expect"]
    question = Question(steps, tuple(row["tools"]))
    if "error" in expected:
        with pytest.raises(NoPermit) as caught:
            permit_after(policy, question, text_agent=not row.get("final_answer_as_tool", True))
        assert caught.value.kind == expected["error"]
        return
    permit = permit_after(policy, question, text_agent=not row.get("final_answer_as_tool", True))
    got = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(permit).items() if name in Pass.__annotations__}
    wanted = {key: value for key, value in expected.items() if key != "reasons"}
    assert {key: got[key] for key in wanted} == wanted


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in _rows("fold") if _plain(row)])
def test_the_checker_folds_as_the_table_says(row: Mapping[str, Any]) -> None:
    _hold(row, _fixed(row["rules"]), [])


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in _rows("conditional") if _plain(row)])
def test_the_checker_reads_conditional_requirements_as_the_table_says(row: Mapping[str, Any]) -> None:
    steps: list[Done] = [(tool, outcome or "ok", None) for tool, _, outcome in (entry.partition("!") for entry in row["history"])]
    _hold(row, [_conditional(given, number) for number, given in enumerate(row["requirements"])], steps)

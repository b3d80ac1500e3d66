"""The SQL analyst: it reads few rows, and only reads, whatever the scripted model makes of SQL."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator

import pytest

from examples.sql_analyst.__main__ import ask, make_agent
from examples.sql_analyst.script import BEST, SCRIPT
from examples.sql_analyst.tools import Database
from maymust import RunResult
from maymust.models import ScriptedModel, call
from maymust.models.scripted import Turn

LOOK: list[Turn] = [call("list_tables"), call("describe", table="sales")]


@pytest.fixture
def database() -> Iterator[Database]:
    made = Database()
    yield made
    made.close()


def outcomes(result: RunResult[str], tool: str) -> list[str]:
    return [str(step.outcome) for step in result.steps if step.tool == tool]


def test_the_script_reads_at_most_fifty_rows_at_a_time_and_changes_nothing(database: Database) -> None:
    before = hashlib.sha256(database.path.read_bytes()).hexdigest()
    result = asyncio.run(ask("?", ScriptedModel(SCRIPT), database))
    assert outcomes(result, "query") == ["refused", "refused", *["failed"] * 5, "ok", "ok"]
    assert outcomes(result, "describe") == ["refused", "refused", "ok", "ok"]
    assert outcomes(result, "final_answer") == ["refused", "refused", "ok"]
    read = [json.loads(step.text or "") for step in result.steps if step.tool == "query" and step.outcome == "ok"]
    assert [len(rows["rows"]) for rows in read] == [50, 3]
    assert [rows["there_are_more"] for rows in read] == [True, False]
    assert hashlib.sha256(database.path.read_bytes()).hexdigest() == before


def test_why_sql_read_nothing_is_told_to_the_model(database: Database) -> None:
    result = asyncio.run(ask("?", ScriptedModel(SCRIPT), database))
    told = [step.text or "" for step in result.steps if step.outcome == "failed"]
    for words, text in zip(("not authorized", "not authorized", "not authorized", "one statement", "interrupted"), told, strict=True):
        assert words in text


def test_the_ninth_query_that_works_is_refused_and_failed_ones_do_not_count(database: Database) -> None:
    turns = [call("query", sql="SELECT nothing FROM sales", limit=1), *(call("query", sql=f"SELECT {n}", limit=1) for n in range(9))]
    model = ScriptedModel([*LOOK, *turns, call("final_answer", answer="Done.")])
    result = make_agent(model).run_sync("?", deps=database)
    assert outcomes(result, "query") == ["failed", *["ok"] * 8, "refused"]
    assert result.answer == "Done."


def test_the_best_branch_is_the_one_the_numbers_say(database: Database) -> None:
    rows, more = database.select(BEST, 10)
    assert [row["town"] for row in rows] == ["Eastmere", "Northgate", "Westbrook"]
    assert not more
    assert rows[0]["euros"] > rows[1]["euros"] > rows[2]["euros"]

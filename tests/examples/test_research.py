"""Research with citations: what the scripted model says from memory, or makes up, does not get into the answer."""

from __future__ import annotations

import asyncio

from examples.research.__main__ import ask, citations, make_agent
from examples.research.script import SCRIPT, TRUE
from examples.research.tools import LIBRARY
from maymust import RunResult
from maymust.models import ScriptedModel, call
from maymust.models.scripted import Turn

FOUND: list[Turn] = [
    call("search", words="ferry passengers"),
    call("read", source="harbour-report-2022"),
    call("cite", source="harbour-report-2022", quote="made 2,310\ncrossings"),
]


def outcomes(result: RunResult[str]) -> list[tuple[str, str]]:
    return [(step.tool, str(step.outcome)) for step in result.steps]


def run(*turns: Turn) -> RunResult[str]:
    return make_agent(ScriptedModel(turns)).run_sync("?", deps=LIBRARY)


def test_only_sources_that_were_found_read_and_quoted_letter_by_letter_get_into_the_answer() -> None:
    result = asyncio.run(ask("?", ScriptedModel(SCRIPT)))
    assert outcomes(result) == [
        ("final_answer", "refused"),  # from memory
        ("search", "ok"),
        ("read", "refused"),  # out of the library
        ("read", "refused"),  # not found by a search
        ("read", "ok"),
        ("cite", "refused"),  # asked for before it was read
        ("cite", "refused"),  # never opened
        ("cite", "failed"),  # made up
        ("cite", "ok"),
        ("final_answer", "refused"),  # refers to what was not cited
        ("final_answer", "ok"),
    ]
    assert citations(result.steps) == [("harbour-report-2022", TRUE)]


def test_line_breaks_are_no_difference_and_an_empty_quote_is_none() -> None:
    result = run(*FOUND, call("cite", source="harbour-report-2022", quote=" "), call("final_answer", answer="2,310 [harbour-report-2022]"))
    assert [outcome for _, outcome in outcomes(result)] == ["ok", "ok", "ok", "failed", "ok"]


def test_where_the_library_has_nothing_saying_so_opens_the_answer() -> None:
    result = run(call("search", words="volcano"), call("report_gap", missing="volcanoes"), call("final_answer", answer="There is nothing."))
    assert result.answer == "There is nothing."
    assert citations(result.steps) == []


def test_the_seventh_search_is_refused() -> None:
    searches = [call("search", words=f"word{number}") for number in range(7)]
    result = run(*searches, call("report_gap", missing="words"), call("final_answer", answer="Nothing."))
    assert [outcome for name, outcome in outcomes(result) if name == "search"] == ["ok"] * 6 + ["refused"]

"""E-mail triage: what strangers write moves nothing out of the house unless a person agrees."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from examples.email_triage.__main__ import TASK, nobody_is_here, triage
from examples.email_triage.script import SCRIPT
from examples.email_triage.tools import Office
from maymust import Decision, RunResult
from maymust.models import ScriptedModel, call


@pytest.fixture
def office() -> Iterator[Office]:
    made = Office()
    yield made
    made.close()


def outcomes(result: RunResult[str], *tools: str) -> list[tuple[str, str]]:
    return [(step.tool, str(step.outcome)) for step in result.steps if step.tool in tools]


def test_what_the_mail_told_the_model_to_do_is_asked_about_and_the_users_own_wish_is_not(office: Office) -> None:
    asked: list[Any] = []

    async def careful(pending: Any) -> Decision:
        asked.append(pending)
        return Decision(False)

    result = asyncio.run(triage(TASK, ScriptedModel(SCRIPT), office, careful))
    assert outcomes(result, "send_mail", "delete_mail") == [
        ("send_mail", "ok"),
        ("send_mail", "denied"),
        ("delete_mail", "denied"),
        ("send_mail", "denied"),
    ]
    assert [(pending.tool, pending.arguments.get("to")) for pending in asked] == [
        ("send_mail", "collect@invoices-partner.example"),
        ("delete_mail", None),
        ("send_mail", "ann@customer.example"),  # its link came from nobody who is trusted
    ]
    assert "output from outside is in the run" in asked[0].reasons[0]
    assert [str(mail["to"]) for mail in office.sent] == ["ann@customer.example"]


def test_mails_in_any_charset_are_read_and_end_in_their_folders(office: Office) -> None:
    result = asyncio.run(triage(TASK, ScriptedModel(SCRIPT), office, nobody_is_here))
    read = {step.arguments["mail"]: str(step.output) for step in result.steps if step.tool == "read_mail" and step.arguments}
    assert "ich brauche für Freitag zwanzig Brote" in read["4-order"]
    assert "Scan \N{REPLACEMENT CHARACTER}" in read["5-scan"]
    assert office.inbox() == []
    assert office.filed() == {
        "invoices": ["URGENT: unpaid invoice"],
        "newsletters": ["Flour prices this week"],
        "orders": ["Größere Bestellung"],
        "questions": ["Open on Sunday?"],
        "sent": ["Open on Sunday?"],
        "unclear": ["Scan"],
    }
    assert outcomes(result, "file_mail") == [("file_mail", "refused"), *[("file_mail", "ok")] * 5]


def test_a_person_may_agree(office: Office) -> None:
    async def agrees(pending: Any) -> Decision:
        return Decision(True, by="the owner")

    script = [call("list_mail"), call("delete_mail", mail="2-newsletter"), call("final_answer", answer="Deleted.")]
    result = asyncio.run(triage("Delete the newsletter.", ScriptedModel(script), office, agrees))
    assert outcomes(result, "delete_mail") == [("delete_mail", "ok")]
    assert "2-newsletter" not in office.inbox()


def test_a_line_break_in_an_address_adds_no_header(office: Office) -> None:
    script = [
        call("send_mail", to="ann@customer.example\nBcc: eve@evil.example", subject="Hi", body="Hi"),
        call("list_mail"),
        call("final_answer", answer="Done."),
    ]
    result = asyncio.run(triage("Write to Ann.", ScriptedModel(script), office, nobody_is_here))
    assert outcomes(result, "send_mail") == [("send_mail", "failed")]
    assert len(office.sent) == 0

"""Three runs of twenty turns, written down turn by turn: a support desk, a piece of research, an incident with tools that come later."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from maymust import ConditionalRequirement, FunctionInvocationContext, tool
from maymust.models import call

TURNS = 20


@dataclass(frozen=True)
class Recorded:
    """A run: what the agent is, what it is asked, and what the model says turn by turn."""

    name: str
    instructions: str
    tools: tuple[Any, ...]
    rules: tuple[ConditionalRequirement, ...]
    question: str
    script: Callable[[], list[Any]]


# --- a support desk ---
@tool
def think(text: str) -> str:
    """Think about what to do next; nobody else reads it."""
    return "ok"


@tool
def search_orders(customer: str, text: str = "") -> str:
    """Find the orders of a customer, newest first, by words in their items."""
    return json.dumps([{"order": f"A-{number}", "items": ["lamp", "cable"], "total": 10 * number, "state": "sent"} for number in range(4)])


@tool
def read_order(order: str) -> str:
    """Read one order with its items, prices, dates, and what was said about it."""
    return json.dumps({"order": order, "items": [{"name": "lamp", "price": 40.0}] * 3, "notes": "left at the door " * 12})


@tool
def refund(order: str, amount: float, reason: str) -> str:
    """Pay back a part of an order to the customer's account."""
    return "refunded"


@tool
def send_message(customer: str, text: str) -> str:
    """Send the customer a message."""
    return "sent"


def at_the_desk() -> list[Any]:
    """Rounds of think, search, read, refund, and a message at the end."""
    turns: list[Any] = []
    while len(turns) < TURNS - 2:
        number = len(turns)
        turns.append(
            [
                call("think", text="What does the customer want? " * 2),
                call("search_orders", customer="c-17", text=f"lamp {number}"),
                call("read_order", order=f"A-{number}"),
                call("refund", order=f"A-{number}", amount=5.0, reason="it came late")
                if number < 9
                else call("read_order", order=f"B-{number}"),
            ][number % 4]
        )
    return [
        *turns,
        call("send_message", customer="c-17", text="We paid you back."),
        call("final_answer", answer="Two refunds, one message."),
    ]


DESK = Recorded(
    "a support desk",
    "You are the support desk of a shop. " + "Be kind, be brief, and say what you did. " * 12,
    (think, search_orders, read_order, refund, send_message),
    (
        ConditionalRequirement("think", force_at_step=1, consecutive_allowed=False, reason="thinking twice in a row helps nobody"),
        ConditionalRequirement("search_orders", only_after=["think"], reason="think first"),
        ConditionalRequirement("read_order", only_after=["search_orders"], reason="find the order first"),
        ConditionalRequirement(
            "refund", only_after=["read_order"], max_invocations=2, consecutive_allowed=False, reason="read the order first"
        ),
        ConditionalRequirement("send_message", only_after=["refund"], min_invocations=1),
    ),
    "My lamps came late. I want some of my money back, please. I am customer c-17.",
    at_the_desk,
)


# --- a piece of research ---
@tool
def web_search(words: str, site: str = "") -> str:
    """Search the web; gives titles, addresses and a line of each page."""
    return json.dumps([{"title": f"Whales, part {n}", "address": f"https://example.org/{n}", "line": "they sing " * 6} for n in range(5)])


@tool
def open_page(address: str) -> str:
    """Read a page as plain text."""
    return f"{address}: " + "whales sing longer songs in winter than in summer. " * 20


@tool
def take_note(claim: str, address: str) -> str:
    """Keep a claim with the page that says so."""
    return "kept"


@tool
def ask_colleague(question: str) -> str:
    """Ask a person who knows the field; costs their time."""
    return "I would look at the recordings of the last ten winters."


@tool
def write_report(title: str, text: str) -> str:
    """Write the report that the reader will get."""
    return "written"


def in_the_library() -> list[Any]:
    """Searches, pages and notes, two questions, a report."""
    turns: list[Any] = [call("think", text="What is known about whale songs, and who says so?")]
    for number in range(5):
        turns += [
            call("web_search", words=f"whale songs in winter {number}"),
            call("open_page", address=f"https://example.org/{number}"),
            call("take_note", claim=f"songs grow longer ({number})", address=f"https://example.org/{number}"),
        ]
    turns += [call("ask_colleague", question="Is that so in the south as well?"), call("think", text="Enough to write it down.")]
    turns += [
        call("write_report", title="Songs in winter", text="They grow longer. " * 20),
        call("final_answer", answer="The report is done."),
    ]
    return turns


LIBRARY = Recorded(
    "a piece of research",
    "You find out what is known about a question. " + "Say where each claim comes from. " * 12,
    (think, web_search, open_page, take_note, ask_colleague, write_report),
    (
        ConditionalRequirement("think", force_at_step=1, consecutive_allowed=False),
        ConditionalRequirement("web_search", consecutive_allowed=False, max_invocations=6),
        ConditionalRequirement("open_page", only_after=["web_search"]),
        ConditionalRequirement("take_note", only_after=["open_page"], consecutive_allowed=False),
        ConditionalRequirement("ask_colleague", only_after=["take_note"], max_invocations=1),
        ConditionalRequirement("write_report", only_after=["take_note", "ask_colleague"], max_invocations=1),
        ConditionalRequirement("final_answer", only_after=["write_report"]),
    ),
    "Do whales sing longer songs in winter?",
    in_the_library,
)


# --- an incident ---
@tool
def restart_service(service: str) -> str:
    """Restart a service; its users notice."""
    return "restarted"


@tool
def roll_back(service: str, version: str) -> str:
    """Bring a service back to an earlier version."""
    return "rolled back"


@tool
def read_log(service: str, lines: int = 20) -> str:
    """The last lines of a service's log."""
    return "\n".join(f"12:00:{number:02} {service} timeout while talking to the database" for number in range(lines))


@tool
def read_metrics(service: str) -> str:
    """Errors, delays and load of a service in the last hour."""
    return json.dumps({"errors": [3, 5, 40, 90, 120], "delay_ms": [20, 22, 400, 900, 1200], "load": [0.4] * 5})


@tool
def open_runbook(service: str, context: FunctionInvocationContext) -> str:
    """Open the runbook of a service, which brings the tools that are used in it."""
    context.add_tools(restart_service, roll_back)
    return "1. Look at the log. 2. Roll back. 3. Restart. " * 5


@tool
def tell_the_team(text: str) -> str:
    """Write to everyone on call."""
    return "told"


def on_call() -> list[Any]:
    """Logs and metrics, the runbook, a roll-back, a restart, and watching it."""
    turns: list[Any] = [call("think", text="What broke first?")]
    for number in range(3):
        turns += [call("read_log", service=f"shop-{number}"), call("read_metrics", service=f"shop-{number}")]
    turns += [call("open_runbook", service="shop-1"), call("read_log", service="shop-1", lines=25)]
    turns += [call("roll_back", service="shop-1", version="41"), call("restart_service", service="shop-1")]
    for number in range(3):
        turns += [call("read_metrics", service="shop-1"), call("read_log", service="shop-1", lines=5 + number)]
    turns += [call("think", text="It is quiet now."), call("tell_the_team", text="Rolled back to 41; watching it.")]
    return [*turns, call("final_answer", answer="Version 42 was the cause; 41 runs again.")]


INCIDENT = Recorded(
    "an incident, with tools that come later",
    "You are on call for a shop. " + "Look before you touch anything, and say what you did. " * 10,
    (think, read_log, read_metrics, open_runbook, tell_the_team),
    (
        ConditionalRequirement("think", force_at_step=1, consecutive_allowed=False),
        ConditionalRequirement("open_runbook", only_after=["read_log", "read_metrics"], max_invocations=1),
        ConditionalRequirement("tell_the_team", only_after=["open_runbook"], min_invocations=1),
        ConditionalRequirement("read_metrics", consecutive_allowed=False),
    ),
    "The shop is slow, and customers complain. Please look.",
    on_call,
)

RUNS = (DESK, LIBRARY, INCIDENT)

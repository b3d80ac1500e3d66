"""`maymust runs`: the approvals inbox, and everything one can do about a stored run, as a user does it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maymust import SqliteStore
from tests.cli.commands import Done, command, process, write

AGENT = """
from maymust import Agent, AskPermissionRequirement, SqliteStore, tool
from maymust.models import ScriptedModel, call
from tests.durable.world import ByPlace

@tool
def refund(amount: int) -> str:
    "Refund."
    return f"refunded {amount}"

asks = AskPermissionRequirement(["refund"])
script = (call("refund", call_id="r1", amount=900), call("final_answer", answer="All is refunded."))
desk = Agent(ByPlace(script), name="desk", tools=[refund], requirements=[asks], store=SqliteStore("runs.db"))
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with an agent, and a run of it that waits."""
    write(tmp_path, "stored_shop.py", AGENT)
    root = str(Path(__file__).parent.parent.parent)
    done = process(tmp_path, "run", "--quiet", "stored_shop:desk", "Refund order 7.", PYTHONPATH=f"{root}/src:{root}")
    assert done.code == 3, done
    return tmp_path


def resume(shop: Path, run_id: str) -> Done:
    root = str(Path(__file__).parent.parent.parent)
    return process(shop, "runs", "resume", run_id, "stored_shop:desk", PYTHONPATH=f"{root}/src:{root}")


def test_what_waits_is_listed_decided_and_resumed(shop: Path) -> None:
    listed = command(shop, "runs", "list")
    assert listed.code == 0
    run_id = listed.out[:8]
    assert "paused, 1 waiting" in listed.out
    assert 'refund({"amount": 900})' in listed.out
    assert f"maymust runs decide {run_id} r1 yes|no" in listed.out
    assert resume(shop, run_id).code == 3
    decided = command(shop, "runs", "decide", run_id, "r1", "yes", "--by", "Ada")
    assert (decided.code, decided.err) == (0, "")
    again = command(shop, "runs", "decide", run_id, "r1", "no", "--by", "Bob")
    assert again.code == 1
    assert "Ada decided yes" in again.err
    assert "the first decision counts" in again.err
    assert "Ada had decided so before" in command(shop, "runs", "decide", run_id, "r1", "yes", "--by", "Bob").out
    done = resume(shop, run_id)
    assert (done.code, done.out) == (0, "All is refunded.\n")
    shown = command(shop, "runs", "show", run_id)
    assert "decided r1 by Ada answer=yes" in shown.out
    assert "too late r1 by Bob answer=no" in shown.out
    assert "refund ok: refunded 900" in shown.out
    assert resume(shop, run_id).out == "All is refunded.\n"


def test_a_message_is_read_when_the_run_goes_on(shop: Path) -> None:
    run_id = SqliteStore(shop / "runs.db").runs()[0].run_id
    sent = command(shop, "runs", "send", run_id[:8], "Say ☃ as well.", "--by", "Ada")
    assert (sent.code, sent.err) == (0, "")
    assert sent.out == f"run {run_id[:8]} is paused, and reads it when it is decided and goes on\n"
    assert "message by Ada number=1 text=Say ☃ as well." in command(shop, "runs", "show", run_id).out
    empty = command(shop, "runs", "send", run_id, " ")
    assert (empty.code, "the message is empty" in empty.err) == (1, True)
    assert command(shop, "runs", "send", "nothing", "hello").code == 2
    command(shop, "runs", "decide", run_id, "r1", "yes")
    assert resume(shop, run_id).code == 0
    store = SqliteStore(shop / "runs.db")
    assert [message.text for message in store.state(run_id).messages if message.role == "user"] == ["Refund order 7.", "Say ☃ as well."]
    store.close()
    late = command(shop, "runs", "send", run_id, "Thanks.")
    assert (late.code, "start a new run with previous=" in late.err) == (1, True)


def test_a_cancelled_run_takes_no_decision_and_does_not_go_on(shop: Path) -> None:
    run_id = SqliteStore(shop / "runs.db").runs()[0].run_id
    assert command(shop, "runs", "cancel", run_id, "--by", "Eve", "--reason", "wrong order").code == 0
    assert "cancelled" in command(shop, "runs", "list").out
    late = command(shop, "runs", "decide", run_id, "r1", "yes")
    assert late.code == 1
    assert "ended before it was made" in late.err
    assert "was cancelled by Eve" in resume(shop, run_id).err
    assert "already" in command(shop, "runs", "cancel", run_id).err


def test_the_lists_are_there_as_json(shop: Path) -> None:
    listed = json.loads(command(shop, "runs", "list", "--json").out)
    assert [row["status"] for row in listed["runs"]] == ["paused"]
    assert listed["waiting"][0]["arguments"] == {"amount": 900}
    shown = json.loads(command(shop, "runs", "show", listed["runs"][0]["run_id"], "--json").out)
    assert [entry["kind"] for entry in shown["audit"]] == ["started", "reply", "waits", "asked"]


def test_what_is_not_there_is_said_and_not_made(tmp_path: Path) -> None:
    assert "there is no store runs.db here" in command(tmp_path, "runs", "list").err
    assert not (tmp_path / "runs.db").exists()
    SqliteStore(tmp_path / "runs.db").runs()
    assert command(tmp_path, "runs", "list").out == "no runs\n"
    done = command(tmp_path, "runs", "show", "abc")
    assert (done.code, "no runs begin with 'abc'" in done.err) == (2, True)


@pytest.mark.parametrize("arguments", [("show", ""), ("cancel", ""), ("send", "", "hello"), ("decide", "", "c1", "yes")])
def test_an_empty_id_stands_for_no_run_also_where_there_is_only_one(shop: Path, arguments: tuple[str, ...]) -> None:
    done = command(shop, "runs", *arguments)
    assert (done.code, "no runs begin with ''" in done.err) == (2, True)
    assert [row["status"] for row in json.loads(command(shop, "runs", "list", "--json").out)["runs"]] == ["paused"]

"""What every store promises: the same tests for a file of SqliteStore, and for DbosStore in Postgres and in a file."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from maymust import (
    Agent,
    AskPermissionRequirement,
    Budget,
    ConditionalRequirement,
    Decision,
    FunctionInvocationContext,
    Message,
    RunError,
    SqliteStore,
    function_middleware,
    tool,
)
from maymust.durable.dbos.store import DbosStore
from maymust.durable.sealing import new_key
from maymust.durable.store import DecisionError, RunTakenError
from maymust.events import MessageReceived
from maymust.models import Part, ScriptedModel, call
from tests.durable.stores import AnyStore
from tests.durable.world import ByPlace

KINDS = ("SqliteStore", "DbosStore in Postgres", "DbosStore in a file")
KEY = new_key()


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the stores of a kind are: a path, or an address."""
    folder: Path = tmp_path_factory.mktemp("contract")
    if request.param == KINDS[0]:
        return str(folder / "runs.db")
    if request.param == KINDS[1]:
        return str(request.getfixturevalue("postgres").copy("template"))
    shutil.copy(request.getfixturevalue("made_file"), folder / "dbos.db")
    return f"sqlite:///{folder / 'dbos.db'}"


@pytest.fixture(scope="module", autouse=True)
def _closed(place: str) -> Iterator[None]:
    yield
    if "://" in place:
        DbosStore(place).close()


@pytest.fixture
def stores(place: str) -> Iterator[Any]:
    """Makes stores at the place; what is made is another object each time, as in another process."""
    with contextlib.ExitStack() as made:

        def make(**settings: Any) -> AnyStore:
            store: AnyStore = DbosStore(place, **settings) if "://" in place else SqliteStore(place, **settings)
            made.callback(store.database.close)
            return store

        yield make


@tool
def refund(amount: int) -> str:
    """Refund."""
    return f"refunded {amount}"


TWO: tuple[Any, ...] = (
    [call("refund", call_id="r1", amount=1), call("refund", call_id="r2", amount=2)],
    call("final_answer", answer="done"),
)


def desk(store: AnyStore, script: tuple[Any, ...] = TWO, **settings: Any) -> Agent[str]:
    settings = {"tools": [refund], "requirements": [AskPermissionRequirement(["refund"])], **settings}
    return Agent(ByPlace(script), store=store, **settings)


def paused(agent: Agent[str]) -> str:
    result = agent.run_sync("go")
    assert [pending.call_id for pending in result.pending] == ["r1", "r2"]
    return result.state.run_id


def test_a_run_goes_on_in_another_process_with_the_decisions_there_are(stores: Any) -> None:
    agent = desk(stores())
    run_id = paused(agent)
    agent.decide(run_id, {"r1": True}, by="Ada")
    result = desk(stores()).resume_sync(run_id)
    assert [pending.call_id for pending in result.pending] == ["r2"]
    result = desk(stores()).resume_sync(run_id, {"r2": Decision(False, "too much", "Bob")})
    assert [step.text for step in result.steps][:2] == ["refunded 1", "Bob said no: too much; it was not run"]
    assert result.answer == "done"
    # Whoever was not told before asks again.
    assert desk(stores()).resume_sync(run_id).answer == "done"
    row = stores().run(run_id)
    assert (row.status, row.answer, row.open, row.input) == ("ended", "done", 0, "go")


def test_the_first_decision_counts_and_the_loser_is_told(stores: Any) -> None:
    agent, store = desk(stores()), stores()
    run_id = paused(agent)
    agent.decide(run_id, {"r1": Decision(False, "not due")}, by="Ada")
    with pytest.raises(DecisionError, match=r"\(yes\) does not count: Ada decided no at .*, not due; the first decision") as told:
        agent.decide(run_id, {"r2": True, "r1": True}, by="Bob")
    assert told.value.first is not None
    assert (told.value.call_id, told.value.first.by) == ("r1", "Ada")
    # All or nothing: the other decision of the loser is not noted either.
    assert [question.call_id for question in store.questions(run_id)] == ["r2"]
    (same,) = store.decide(run_id, {"r1": False}, by="Cid")
    assert same.by == "Ada"
    assert [(entry.kind, entry.by, entry.call_id) for entry in store.audit(run_id) if entry.by] == [
        ("decided", "Ada", "r1"),
        ("too late", "Bob", "r2"),
        ("too late", "Bob", "r1"),
    ]


def test_what_is_no_question_is_told(stores: Any) -> None:
    agent = desk(stores())
    run_id = paused(agent)
    with pytest.raises(DecisionError, match=r"no question about call 'r9' .* waiting: r1, r2"):
        agent.decide(run_id, {"r9": True})
    with pytest.raises(RunError, match="there is no run 'nothing' in"):
        agent.decide("nothing", {"r1": True})
    with pytest.raises(RunError, match="there is no run 'nothing' in"):
        agent.resume_sync("nothing")


def test_a_cancelled_run_is_over_for_everybody(stores: Any) -> None:
    agent, store = desk(stores()), stores()
    run_id = paused(agent)
    agent.cancel(run_id, by="Ada", reason="wrong order")
    row = store.run(run_id)
    assert (row.status, row.cancelled_by, row.open, row.stop_reason) == ("cancelled", "Ada", 0, "aborted")
    assert store.state(run_id).phase == "ended"
    with pytest.raises(DecisionError, match="ended before it was made"):
        agent.decide(run_id, {"r1": True})
    with pytest.raises(RunError, match="was cancelled by Ada"):
        agent.resume_sync(run_id)
    with pytest.raises(RunError, match=r"was cancelled by Ada at .* already"):
        agent.cancel(run_id)


def test_a_decided_run_can_still_be_cancelled(stores: Any) -> None:
    agent, store = desk(stores()), stores()
    run_id = paused(agent)
    agent.decide(run_id, {"r1": True})
    agent.cancel(run_id, by="Ada")
    assert store.run(run_id).status == "cancelled"
    with pytest.raises(RunError, match="was cancelled by Ada"):
        agent.resume_sync(run_id)


@tool(effect="read")
async def waits(context: FunctionInvocationContext) -> str:
    """Wait."""
    context.deps.set()
    await asyncio.sleep(60)
    return "waited"


def test_a_run_under_way_is_nobody_elses_and_stops_when_it_is_cancelled(stores: Any) -> None:
    agent = desk(stores(), (call("waits"),), tools=[waits], requirements=[])

    async def scene() -> str:
        begun = asyncio.Event()
        run = agent.start("go", deps=begun)
        await begun.wait()
        assert stores().run(run.id).status == "running"
        with pytest.raises(RunTakenError, match="this very process"):
            await agent.resume(run.id)
        with pytest.raises(RunTakenError):
            stores().delete(run.id)
        await asyncio.to_thread(stores().cancel, run.id, by="Ada")
        result = await asyncio.wait_for(run, 20)
        assert result.stop_reason == "aborted"
        return run.id

    run_id = asyncio.run(scene())
    assert stores().run(run_id).status == "cancelled"


def test_a_run_that_was_stopped_or_broke_off_is_resumed(stores: Any) -> None:
    async def scene() -> str:
        begun = asyncio.Event()
        agent = desk(stores(), (call("waits"),), tools=[waits], requirements=[])
        run = agent.start("go", deps=begun)
        await begun.wait()
        run.cancel()
        await run
        return run.id

    run_id = asyncio.run(scene())
    assert stores().run(run_id).status == "stopped"
    broken = Agent(ScriptedModel([]), tools=[waits], store=stores())
    with pytest.raises(RunError):
        broken.resume_sync(run_id)
    assert stores().run(run_id).error
    agent = Agent(ScriptedModel([call("final_answer", answer="after all")]), tools=[waits], store=stores())
    assert agent.resume_sync(run_id).answer == "after all"


def test_a_question_that_nobody_answers_in_time_is_a_no(stores: Any) -> None:
    agent = desk(stores(question_timeout=0.05))
    run_id = paused(agent)
    asyncio.run(asyncio.sleep(0.1))
    assert stores().questions(run_id) == []
    result = desk(stores()).resume_sync(run_id)
    assert "nobody answered within 0.05 seconds" in str(result.steps[0].text)
    with pytest.raises(DecisionError, match="the time limit decided no"):
        agent.decide(run_id, {"r1": True})


def test_a_resume_that_does_not_fit_changes_nothing(stores: Any) -> None:
    run_id = paused(desk(stores()))
    other = desk(stores(), requirements=[AskPermissionRequirement(["refund"]), ConditionalRequirement("refund", max_invocations=1)])
    for _ in range(2):
        with pytest.raises(RunError, match="was started under another policy"):
            other.resume_sync(run_id)
        assert stores().run(run_id).status == "paused"
    assert desk(stores()).resume_sync(run_id, {"r1": True, "r2": True}).answer == "done"


def test_texts_that_databases_do_not_like_are_kept(stores: Any) -> None:
    nasty = "nul \x00, half a pair \ud800, ☃ " + "long " * 5000

    @tool
    def echo() -> str:
        """Echo."""
        return nasty

    agent = desk(stores(), (call("echo"), call("final_answer", answer="a\x00b")), tools=[echo], requirements=[])
    result = agent.run_sync("say \x00 ☃")
    kept = stores().state(result.state.run_id)
    assert kept.to_dict() == result.state.to_dict()
    assert kept.steps[0].text == result.steps[0].text
    assert stores().run(result.state.run_id).answer is not None


def everything(store: AnyStore) -> str:
    """All that is kept, as text."""
    if isinstance(store, SqliteStore):
        store.database.close()
        return b"".join(path.read_bytes() for path in store.database.path.parent.glob("runs.db*")).decode("utf-8", "replace")
    tables = ("runs", "questions", "audit", "workflow_status", "workflow_input", "workflow_output", "operation_outputs")
    with store.database.reading() as sql:
        return "".join(str(row.to_dict()) for table in tables for row in sql.execute(f"SELECT * FROM {table}").fetchall())


@tool(approval_mode="always_require")
def log_in(password: SecretStr) -> str:
    """Log in."""
    return f"logged in with {len(password.get_secret_value())} letters"


def test_a_secret_waits_encrypted_or_not_at_all(stores: Any) -> None:
    script = (call("log_in", call_id="l1", password="hush hush"), call("final_answer", answer="in"))
    with pytest.raises(RunError, match="no key to encrypt"):
        desk(stores(), script, tools=[log_in], requirements=[]).run_sync("go")
    # What could not be kept is not what the run is at.
    row = stores().runs()[0]
    assert row.status == "interrupted"
    assert len(stores().state(row.run_id).turns) == 0
    result = desk(stores(key=KEY), script, tools=[log_in], requirements=[]).run_sync("go")
    run_id = result.state.run_id
    assert "hush" not in str(stores(key=KEY).questions(run_id))
    assert "hush" not in stores().state(run_id).to_json()
    assert "hush" not in everything(stores())
    result = desk(stores(key=KEY), script, tools=[log_in], requirements=[]).resume_sync(run_id, {"l1": True})
    assert result.steps[0].text == "logged in with 9 letters"
    kept = everything(stores())
    assert "logged in with 9 letters" in kept
    assert "hush" not in kept


def test_a_childs_question_is_its_parents(stores: Any) -> None:
    inner = desk(None, (call("refund", call_id="i1", amount=5), call("final_answer", answer="five")))  # type: ignore[arg-type]
    script = (call("helper", call_id="h1", task="refund five"), call("final_answer", answer="all"))
    agent = desk(stores(), script, tools=[inner.as_tool("helper", "Helps.")], requirements=[])
    run_id = agent.run_sync("go").state.run_id
    (asked,) = stores().questions(run_id)
    assert asked.call_id == "h1/i1"
    agent.decide(run_id, {"h1/i1": True}, by="Ada")
    assert agent.resume_sync(run_id).answer == "all"
    trail = [(entry.kind, entry.call_id, entry.by) for entry in stores().audit(run_id)]
    assert trail.index(("decided", "h1/i1", "Ada")) < trail.index(("result", "h1/i1", None)) < trail.index(("result", "h1", None))


def test_a_run_can_be_found_listed_and_removed(stores: Any) -> None:
    run_id = paused(desk(stores(), name="desk"))
    store = stores()
    assert store.find(run_id[:12]) == [run_id]
    assert next(row for row in store.runs() if row.run_id == run_id).agent == "desk"
    assert [entry.kind for entry in store.audit(run_id)][:2] == ["started", "reply"]
    store.delete(run_id)
    assert not store.knows(run_id)
    assert store.audit(run_id) == []
    with pytest.raises(RunError, match="there is no run"):
        store.state(run_id)


def test_a_run_is_begun_once(stores: Any) -> None:
    agent = desk(stores())
    result = agent.run_sync("go")
    with pytest.raises(RunError, match="is in the store already"):
        asyncio.run(_begin(stores(), result.state))


async def _begin(store: AnyStore, state: Any) -> None:
    store.begin(state)


def user_texts(messages: Any) -> list[str]:
    return [message.text for message in messages if message.role == "user"]


def letters(store: AnyStore, run_id: str) -> list[tuple[str, str | None, Any]]:
    """What the audit trail says about messages."""
    kinds = ("message", "received", "not read")
    return [(entry.kind, entry.by, entry.detail.get("number")) for entry in store.audit(run_id) if entry.kind in kinds]


def test_a_message_to_a_run_that_waits_is_read_after_the_decision(stores: Any) -> None:
    run_id = paused(desk(stores()))
    stores().send(run_id, "only small ones", by="Ada")
    stores().send(run_id, Message("user", "half a pair \ud800, nul \x00, ☃"))
    assert stores().run(run_id).status == "paused"
    assert [message.text for message in stores().state(run_id).inbox] == ["only small ones", "half a pair \ufffd, nul \x00, ☃"]
    # The message is no decision, and it is still there when the run has been looked after in vain.
    for _ in range(2):
        assert desk(stores()).resume_sync(run_id).stop_reason == "paused"
    result = desk(stores()).resume_sync(run_id, {"r1": True, "r2": True})
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "tool", "user", "user", "assistant", "tool"]
    assert user_texts(result.messages) == ["go", "only small ones", "half a pair \ufffd, nul \x00, ☃"]
    assert stores().state(run_id).to_dict() == result.state.to_dict()
    assert letters(stores(), run_id) == [("message", "Ada", 1), ("message", None, 2), ("received", None, 1), ("received", None, 2)]


def test_messages_sent_at_once_all_come_each_once(stores: Any) -> None:
    run_id = paused(desk(stores()))
    with ThreadPoolExecutor(4) as senders:
        list(senders.map(lambda number: stores().send(run_id, f"number {number}"), range(12)))
    result = desk(stores()).resume_sync(run_id, {"r1": True, "r2": True})
    assert sorted(user_texts(result.messages)) == sorted(["go", *(f"number {number}" for number in range(12))])


@tool(effect="read")
async def listens(context: FunctionInvocationContext) -> str:
    """Wait until somebody says something."""
    begun, heard = context.deps
    begun.set()
    await asyncio.wait_for(heard.wait(), 20)
    return "listened"


def test_a_message_to_a_run_at_work_is_read_in_its_next_turn(stores: Any) -> None:
    agent = desk(stores(), (call("listens"), call("final_answer", answer="done")), tools=[listens], requirements=[])

    async def scene() -> Any:
        begun, heard = asyncio.Event(), asyncio.Event()
        run = agent.start("go", deps=(begun, heard))
        run.on(MessageReceived, lambda event: heard.set() if event.text == "second" else None)
        await begun.wait()
        await asyncio.to_thread(stores().send, run.id, "first", by="Ada")
        await asyncio.to_thread(stores().send, run.id, "second", by="Bob")
        return await run

    result = asyncio.run(scene())
    assert [(message.role, message.text) for message in result.messages][2:5] == [
        ("tool", "listened"),
        ("user", "first"),
        ("user", "second"),
    ]
    run_id = result.state.run_id
    assert stores().state(run_id).to_dict() == result.state.to_dict()
    assert [kind for kind, _, _ in letters(stores(), run_id)].count("received") == 2


def test_a_message_to_a_run_that_was_stopped_is_read_when_it_is_resumed(stores: Any) -> None:
    script = (call("refund", amount=1), call("refund", amount=2), call("final_answer", answer="done"))
    agent = desk(stores(), script, requirements=[], budget=Budget(turns=None, steps=1))
    stopped = agent.run_sync("go")
    assert stopped.stop_reason == "budget"
    run_id = stopped.state.run_id
    stores().send(run_id, "go on, but hurry")
    result = agent.resume_sync(run_id, budget=Budget())
    assert result.answer == "done"
    assert [message.role for message in result.messages] == ["user", *["assistant", "tool"] * 2, "user", "assistant", "tool"]
    assert user_texts(result.messages) == ["go", "go on, but hurry"]


def test_a_run_that_is_over_takes_no_message(stores: Any) -> None:
    ended = desk(stores(), (call("final_answer", answer="done"),)).run_sync("go").state.run_id
    with pytest.raises(RunError, match="has ended with its answer and reads no more; start a new run with previous="):
        stores().send(ended, "wait")
    cancelled = paused(desk(stores()))
    stores().cancel(cancelled, by="Ada")
    with pytest.raises(RunError, match="was cancelled by Ada"):
        stores().send(cancelled, "wait")
    with pytest.raises(RunError, match="there is no run 'nothing' in"):
        stores().send("nothing", "wait")
    assert letters(stores(), ended) == letters(stores(), cancelled) == []


@pytest.mark.parametrize("nothing", ["", " \n", Message("user", ""), Message("assistant", "I say"), Message("user", "x", kind="nudge")])
def test_what_is_no_message_is_told(stores: Any, nothing: Any) -> None:
    run_id = paused(desk(stores()))
    with pytest.raises(RunError, match=r"the message is empty|is the user's"):
        stores().send(run_id, nothing)
    with pytest.raises(TypeError, match="takes text or a Message, not 7"):
        stores().send(run_id, 7)
    assert stores().state(run_id).inbox == ()


def test_a_message_that_comes_too_late_goes_on_into_the_next_run_of_the_conversation(stores: Any) -> None:
    @function_middleware
    async def late(context: FunctionInvocationContext, call_next: Any) -> None:
        await call_next()
        stores().send(context.idempotency_key.partition("/")[0], "one more thing")

    script = (call("final_answer", answer="done"), call("final_answer", answer="that too"))
    result = desk(stores(), script, middleware=[late], requirements=[]).run_sync("go")
    run_id = result.state.run_id
    assert [message.text for message in result.state.inbox] == ["one more thing"]
    assert stores().state(run_id).to_dict() == result.state.to_dict()
    assert letters(stores(), run_id)[0] == ("message", None, 1)
    assert len(letters(stores(), run_id)) == 2
    later = desk(stores(), script, requirements=[]).run_sync("on", previous=stores().state(run_id))
    assert user_texts(later.messages) == ["go", "one more thing", "on"]


def test_a_part_that_the_model_does_not_take_is_left_out_in_words(stores: Any) -> None:
    run_id = paused(desk(stores()))
    stores().send(run_id, Message("user", "look", parts=(Part("image", url="https://example.com/cat.png"),)))
    result = desk(stores()).resume_sync(run_id, {"r1": True, "r2": True})
    (said,) = (message for message in result.messages if message.text == "look")
    assert said.parts == (Part("text", "[image left out: this model takes none]"),)


def test_a_removed_run_takes_its_messages_along(stores: Any) -> None:
    run_id = paused(desk(stores()))
    stores().send(run_id, "hush hush")
    stores().delete(run_id)
    with stores().database.reading() as connection:
        assert connection.execute("SELECT 1 FROM messages WHERE run_id = ?", (run_id,)).fetchone() is None

"""A secret the model writes reaches the body of the tool, and nothing that is shown, sent again or stored."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from maymust import Agent, AskPermissionRequirement, PolicyError, RunError, RunState, tool
from maymust.agent.present import Present
from maymust.agent.secrets import shown_reply
from maymust.events import AnswerDelta, AnswerWithdrawn, ArgumentsDelta, RunEvent, TextDelta
from maymust.models import ModelReply, ScriptedModel, ToolCall, call, reply
from maymust.tools.function_tool import Tool

CANARY = 'canary "17" ü'
got: list[str] = []


class Login(BaseModel):
    user: str
    password: SecretStr


@tool
async def login(user: str, password: SecretStr) -> str:
    """Log in."""
    got.append(password.get_secret_value())
    return f"hello {user}"


@tool
async def leaks(password: SecretStr) -> dict[str, Any]:
    """Give back what it was given."""
    return {"said": [f"you said {password.get_secret_value()}"]}


@tool
async def fails(password: SecretStr) -> str:
    """Complain about what it was given."""
    raise ValueError(f"{password.get_secret_value()!r} is wrong: {json.dumps(password.get_secret_value())}")


@tool
async def nested(login: Login) -> str:
    """Log in by a form."""
    got.append(login.password.get_secret_value())
    return "in"


def run(*turns: Any, tools: Any = (login, leaks, fails, nested), **settings: Any) -> tuple[Any, list[RunEvent], ScriptedModel]:
    model = ScriptedModel([*turns, call("final_answer", answer="done")])
    seen: list[RunEvent] = []

    async def main() -> Any:
        running = Agent(model, tools=tools, **settings).start("go")
        running.on(RunEvent, seen.append)
        return await running

    return asyncio.run(main()), seen, model


def hidden(result: Any, seen: list[RunEvent], model: ScriptedModel) -> None:
    """The canary is nowhere, in whatever way it is escaped."""
    written = "\n".join(
        [
            result.state.to_json(),
            repr(result.steps),
            repr(result.state.messages),
            # Pieces of free text are told as they come, before there is a call.
            repr([event for event in seen if not isinstance(event, TextDelta | AnswerDelta | AnswerWithdrawn)]),
            "\n".join(str([message.to_dict() for message in request.messages]) for request in model.requests[1:]),
        ]
    )
    assert "canary" not in written
    assert "**********" in written


@pytest.fixture(autouse=True)
def _fresh() -> None:
    got.clear()


CALLS: dict[str, Callable[[], Any]] = {
    "ok": lambda: call("login", user="ada", password=CANARY),
    "another argument is invalid": lambda: call("login", user=7, password=CANARY),
    "a name is misspelt": lambda: call("login", user="ada", pasword=CANARY),
    "no JSON": lambda: call("login", raw_arguments=f'{{"user": "ada", "password": "{CANARY}'),
    "not an object": lambda: call("login", raw_arguments=json.dumps([CANARY])),
    "the tool's name is misspelt": lambda: call("logn", user="ada", password=CANARY),
    "the output holds it": lambda: call("leaks", password=CANARY),
    "the error holds it": lambda: call("fails", password=CANARY),
    "inside a model": lambda: call("nested", login={"user": "ada", "password": CANARY}),
    "the text beside it holds it": lambda: reply(f"I use {CANARY}", call("login", user="ada", password=CANARY)),
}


@pytest.mark.parametrize("case", CALLS)
def test_no_secret_is_shown_sent_again_or_stored(case: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hidden(*run(CALLS[case]()))
    assert "canary" not in caplog.text


def test_the_items_that_a_provider_wants_back_hold_no_secret() -> None:
    arguments = json.dumps({"user": "ada", "password": CANARY})
    items = [{"arguments": arguments}, {"input": {"password": CANARY}}, {"thought": json.dumps(CANARY, ensure_ascii=False)}]
    shown = shown_reply(ModelReply(calls=(ToolCall("c1", "login", arguments),), extra={"somebody": {"items": items}}), Present((login,)))
    assert "canary" not in repr(shown)
    assert shown.extra["somebody"]["items"][1] == {"input": {"password": "**********"}}


def test_the_body_gets_the_secret() -> None:
    run(CALLS["ok"](), CALLS["inside a model"]())
    assert got == [CANARY, CANARY]


def test_what_is_no_secret_stays_as_it_was() -> None:
    result, _, _ = run(CALLS["ok"]())
    assert dict(result.steps[0].arguments) == {"user": "ada", "password": "**********"}
    assert result.steps[0].text == "hello ada"
    plain = call("login", user="ada", password="")
    result, _, _ = run(plain)
    assert json.loads(result.state.messages[1].calls[0].raw_arguments) == {"user": "ada", "password": ""}


def test_a_tool_without_secrets_keeps_what_the_model_wrote_to_the_letter() -> None:
    @tool
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    result, _, _ = run(call("echo", raw_arguments='{ "text" :  "a"}'), tools=[echo])
    assert result.state.messages[1].calls[0].raw_arguments == '{ "text" :  "a"}'


def asking(tools: list[Tool] | None = None) -> Agent:
    turns = [call("login", call_id="c", user="ada", password=CANARY), call("final_answer", answer="done")]
    return Agent(ScriptedModel(turns), tools=tools or [login], requirements=[AskPermissionRequirement(login)])


def test_a_pending_call_that_stayed_in_memory_runs_with_its_secret() -> None:
    agent = asking()
    paused = agent.run_sync("go")
    assert "canary" not in repr(paused.pending)
    assert agent.resume_sync(paused, {"c": True}).stop_reason == "final_answer"
    assert got == [CANARY]


def test_a_pending_call_that_was_stored_cannot_run_with_a_mask() -> None:
    agent = asking()
    text = agent.run_sync("go").state.to_json()
    assert "canary" not in text
    for stored in (text, RunState.from_json(text).to_json()):
        with pytest.raises(RunError, match=r"call 'c' of login has a secret among its arguments.*decide False"):
            agent.resume_sync(RunState.from_json(stored), {"c": True})
    done = agent.resume_sync(RunState.from_json(text), {"c": False})
    assert [str(step.outcome) for step in done.steps] == ["denied", "ok"]
    assert got == []


def test_a_call_that_was_admitted_when_the_state_was_stored_is_refused() -> None:
    model = ScriptedModel([call("login", user="ada", password=CANARY), call("final_answer", answer="done")])
    states: list[str] = []

    async def store(context: Any, call_next: Any) -> None:
        states.append(context.state.to_json())
        await call_next()

    agent = Agent(model, tools=[login], middleware=[store])
    agent.run_sync("go")
    assert got == [CANARY]
    again = Agent(ScriptedModel([call("final_answer", answer="done")]), tools=[login])
    result = again.resume_sync(RunState.from_json(states[0]))
    assert [str(step.outcome) for step in result.steps] == ["refused", "ok"]
    assert "secrets in arguments are not stored" in (result.steps[0].text or "")
    assert got == [CANARY]


def test_pieces_of_streamed_arguments_hold_no_secret() -> None:
    _, seen, _ = run(call("login", user="ada", password=CANARY))
    pieces = [event for event in seen if isinstance(event, ArgumentsDelta) and event.tool == "login"]
    assert pieces
    assert all(piece.arguments == "" for piece in pieces)


class Account(BaseModel):
    user: str
    password: SecretStr = SecretStr(CANARY)


PASSWORD = SecretStr(CANARY)
ADAS = Account(user="ada")


@pytest.mark.parametrize("given", [{}, {"account": {"user": "ada"}}])
def test_a_secret_that_is_a_default_is_hidden_where_the_tool_lets_it_out(given: dict[str, Any]) -> None:
    @tool
    async def connect(password: SecretStr = PASSWORD, account: Account = ADAS) -> str:
        """Connect."""
        raise ConnectionError(f"{password.get_secret_value()} and {account.password.get_secret_value()} are wrong")

    result, seen, _ = run(call("connect", **given), tools=[connect])
    assert result.steps[0].text == "ConnectionError: ********** and ********** are wrong"
    assert "canary" not in result.state.to_json() + repr(seen)


def test_a_secret_default_that_is_plain_text_is_shown_to_nobody() -> None:
    @tool
    async def connect(password: SecretStr = CANARY) -> str:  # type: ignore[assignment]
        """Connect."""
        return "connected"

    result, seen, _ = run(call("connect"), tools=[connect])
    assert result.steps[0].text == "connected"
    assert "canary" not in result.state.to_json() + repr(seen)


def test_an_error_that_ends_the_run_is_kept_without_the_secret_in_its_text() -> None:
    async def breaks(context: Any, call_next: Any) -> None:
        raise LookupError(f"no such key: {context.arguments['password']}")

    with pytest.raises(RunError, match=r"LookupError: no such key: [*]{10}$") as caught:
        run(call("leaks", password="canary 17"), middleware=[breaks])
    assert isinstance(caught.value.__cause__, LookupError)
    assert "canary" not in caught.value.state.to_json()


def test_an_answer_that_would_be_a_mask_is_refused_when_the_agent_is_made() -> None:
    with pytest.raises(PolicyError, match="holds a secret"):
        Agent(ScriptedModel([]), output_type=Login)

"""Rate limits, faults of the server, silence, and lost connections: the SDK tries again, and the run says so."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from maymust import Agent, RunResult
from maymust.events import ModelCallFailed, ModelRetried, RunEvent, RunFinished, TextDelta
from maymust.models import ChatModel, Usage, call
from maymust.models.anthropic import AnthropicModel
from maymust.models.by_name import model_by_name
from maymust.models.chat_model import Price
from maymust.models.failures import ModelFailure
from maymust.models.openai import OpenAIChatModel, OpenAIResponsesModel
from tests.models.adapters import APIS, opened
from tests.models.agents import think
from tests.models.picky import Broken, Drop, Fault, Hang, Limited, PickyServer, Refuse
from tests.models.picky.server import Turn

GOOD: list[Turn] = [call("think", text="a"), call("final_answer", answer="done")]


def play(
    api: str, turns: Iterable[Turn], *, stream: bool = False, **client: Any
) -> tuple[RunResult[Any] | ModelFailure, list[RunEvent], int]:
    events: list[RunEvent] = []

    async def main() -> tuple[RunResult[Any] | ModelFailure, int]:
        with PickyServer(turns) as server:
            async with opened(api, server, **client) as adapter:
                run = Agent(adapter, tools=[think]).start("go")
                for kind in (ModelRetried, ModelCallFailed, RunFinished, *([TextDelta] if stream else [])):
                    run.on(kind, events.append)
                try:
                    return await run, len(server.seen)
                except ModelFailure as failure:
                    return failure, len(server.seen)

    result, count = asyncio.run(main())
    return result, events, count


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", [Limited(), Broken(500), Broken(503), Drop()], ids=repr)
@pytest.mark.parametrize("api", APIS)
def test_a_fault_is_tried_again_and_counted(api: str, fault: Fault, stream: bool) -> None:
    result, events, count = play(api, [GOOD[0], fault, GOOD[1]], stream=stream)
    assert isinstance(result, RunResult)
    assert (result.answer, count) == ("done", 3)
    assert [(event.number, event.retries) for event in events if isinstance(event, ModelRetried)] == [(2, 1)]
    assert result.usage.requests == 3


def test_the_server_says_how_long_to_wait() -> None:
    started = time.monotonic()
    result, _, _ = play("chat", [Limited(0.7), *GOOD])
    assert isinstance(result, RunResult)
    assert time.monotonic() - started > 0.7


@pytest.mark.parametrize(
    ("fault", "kind", "attempts"),
    [
        (Limited(), "rate_limited", 3),
        (Broken(500), "server", 3),
        (Drop(), "connection", 3),
        (Refuse("no such model"), "rejected", 1),
        (Broken(401), "credentials", 1),
    ],
    ids=repr,
)
@pytest.mark.parametrize("api", APIS)
def test_what_does_not_pass_breaks_the_run_off_with_all_it_has(api: str, fault: Fault, kind: str, attempts: int) -> None:
    failure, events, count = play(api, [GOOD[0], *[fault] * 9])
    assert isinstance(failure, ModelFailure)
    assert (failure.kind, failure.attempts, count) == (kind, attempts, 1 + attempts)
    assert failure.state is not None
    assert [step.tool for step in failure.state.steps] == ["think"]
    assert failure.state.usage.requests == 1 + attempts
    told = [event for event in events if isinstance(event, ModelCallFailed)]
    assert [(event.number, event.kind, event.attempts) for event in told] == [(2, kind, attempts)]


@pytest.mark.parametrize("api", APIS)
def test_silence_is_a_timeout(api: str) -> None:
    failure, _, _ = play(api, [Hang(1.5)] * 3, retries=1, timeout=0.3)
    assert isinstance(failure, ModelFailure)
    assert (failure.kind, failure.attempts) == ("timeout", 2)


@pytest.mark.parametrize("after", [30, 400, 900])
@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_is_cut_off_is_no_reply(api: str, after: int) -> None:
    failure, events, _ = play(api, [Drop(after=after)], stream=True)
    assert isinstance(failure, ModelFailure)
    assert failure.kind == "connection"
    assert any(isinstance(event, RunFinished) and event.stop_reason == "error" for event in events)


def test_a_run_that_broke_off_goes_on_where_it_was() -> None:
    async def main() -> RunResult[Any]:
        with PickyServer([GOOD[0], Broken(500), GOOD[1]]) as server:
            async with opened("chat", server, retries=0) as adapter:
                agent = Agent(adapter, tools=[think])
                with pytest.raises(ModelFailure) as failed:
                    await agent.run("go")
                assert failed.value.state is not None
                return await agent.resume(failed.value.state)

    result = asyncio.run(main())
    assert result.answer == "done"
    assert result.usage.requests == 3


def test_tokens_have_a_price() -> None:
    spent = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)
    assert spent.cost(Price(input=4, output=20)) == pytest.approx(4 + 2)
    assert spent.cost(Price(input=4, output=20, cached=0.4)) == pytest.approx(0.6 * 4 + 0.4 * 0.4 + 2)


def test_a_failure_of_ours_is_not_taken_for_the_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with PickyServer(GOOD) as server:
            async with opened("chat", server) as adapter:
                monkeypatch.setattr(adapter, "_read", lambda *_: 1 / 0)
                await Agent(adapter, tools=[think]).run("go")

    with pytest.raises(Exception, match="ZeroDivisionError"):
        asyncio.run(main())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("name", "variable"), [("openai", "OPENAI_API_KEY"), ("openai-responses", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")]
)
def test_a_missing_key_is_named_by_its_variable(name: str, variable: str, stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(other, raising=False)

    async def main() -> None:
        model = model_by_name(f"{name}:some-model")
        run = Agent(model, tools=[think]).start("go")
        if stream:
            run.on(TextDelta, print)
        with pytest.raises(ModelFailure, match=rf"{name}:some-model .*without credentials: set {variable}") as failed:
            await run
        assert (failed.value.kind, failed.value.attempts) == ("credentials", 0)

    asyncio.run(main())


@pytest.mark.parametrize("make", [OpenAIChatModel, OpenAIResponsesModel, AnthropicModel])
def test_a_server_that_is_not_there_is_named_without_what_is_secret(make: Callable[..., ChatModel]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        host = f"127.0.0.1:{taken.getsockname()[1]}"
        model = make("mine", base_url=f"http://me:hidden@{host}/v1", api_key="-", max_retries=0)
        with pytest.raises(ModelFailure, match=f"the connection to http://{host}/v1/? was refused or lost") as failed:
            Agent(model, tools=[think]).run_sync("go")
    assert "hidden" not in str(failed.value)

"""The contract with pydantic-ai: what the adapter asks of it, and what comes back. Held against the version in pyproject.toml."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import openai
import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from maymust.models import CallDelta, Capabilities, Message, ModelRequest, Part, TextDelta, ToolCall, ToolDefinition
from maymust.models.by_name import model_by_name
from maymust.models.failures import MissingExtra, ModelFailure
from maymust.models.pydantic_ai import PydanticAIModel
from tests.models.adapters import streamed
from tests.models.agents import Player, long_agent
from tests.models.picky import Broken, Manners, PickyServer

TOOLS = tuple(
    ToolDefinition(name, f"Does {name}.", {"type": "object", "properties": {"q": {"type": "string"}}}) for name in ("search", "read")
)
USER = Message("user", "hi")
ASK = ModelRequest([Message("system", "Be brief."), USER], TOOLS, ("search",), "required")


@asynccontextmanager
async def through(server: PickyServer, **settings: Any) -> AsyncIterator[PydanticAIModel]:
    """The adapter over pydantic-ai over the official SDK over HTTP."""
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="-", max_retries=0) as client:
        yield PydanticAIModel(OpenAIChatModel("gpt-4.1", provider=OpenAIProvider(openai_client=client)), **settings)


def test_it_is_the_version_that_the_adapter_is_held_against() -> None:
    assert version("pydantic-ai-slim").startswith("2.68.")


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_over_real_http(stream: bool) -> None:
    async def main() -> Any:
        from maymust.events import TextDelta as Event

        with PickyServer(Player(8), manners=Manners(piece=9)) as server:
            async with through(server) as model:
                run = long_agent(model).start("What is it?")
                if stream:
                    run.on(Event, lambda event: None)
                result = await run
            assert [one.status for one in server.seen] == [200] * len(server.seen)
            return result, server

    result, server = asyncio.run(main())
    assert result.stop_reason == "final_answer"
    for seen, permit in zip(server.seen, result.permits, strict=True):
        assert set(seen.wire.allowed) == {permit.forced} if permit.forced else set(permit.allowed)
    assert {turn.enforced_by for turn in result.turns} == {"provider"}
    assert result.usage.input_tokens > 0


def test_what_is_refused_is_given_up() -> None:
    async def main() -> Any:
        with PickyServer(Player(6), manners=Manners(forced=False)) as server:
            async with through(server) as model:
                return await long_agent(model).run("What is it?")

    result = asyncio.run(main())
    assert result.state.lost == ("forced_choice",)
    assert result.stop_reason == "final_answer"


def test_faults_have_their_kind() -> None:
    async def main() -> None:
        with PickyServer([Broken(503)]) as server:
            async with through(server) as model:
                await model.complete(ASK)

    with pytest.raises(ModelFailure) as failed:
        asyncio.run(main())
    assert failed.value.kind == "server"


def seen_by(request: ModelRequest, told: Capabilities | None = None) -> tuple[list[Any], AgentInfo]:
    """The messages and settings that a model of pydantic-ai gets."""
    seen: list[Any] = []

    def function(messages: list[Any], info: AgentInfo) -> ModelResponse:
        seen.extend([messages, info])
        return ModelResponse(parts=[TextPart("fine")])

    asyncio.run(PydanticAIModel(FunctionModel(function), capabilities=told).complete(request))
    return seen[0], seen[1]


@pytest.mark.parametrize(
    ("allowed", "choice", "wanted"),
    [
        (("search", "read"), "required", "required"),
        (("search", "read"), "auto", "auto"),
        (("search",), "required", ["search"]),
        (("search",), "search", ["search"]),
        ((), "none", "none"),
    ],
)
def test_the_choice_in_their_words(allowed: tuple[str, ...], choice: str, wanted: Any) -> None:
    _, info = seen_by(ModelRequest([USER], TOOLS, allowed, choice))
    assert info.model_settings is not None
    assert info.model_settings["tool_choice"] == wanted
    assert [tool.name for tool in info.function_tools] == ["search", "read"]


def test_a_subset_that_leaves_the_choice() -> None:
    _, info = seen_by(ModelRequest([USER], TOOLS, ("search",), "auto"))
    assert info.model_settings is not None
    choice: Any = info.model_settings["tool_choice"]
    assert choice.function_tools == ["search"]


def test_the_conversation_in_their_words() -> None:
    said = [
        Message("system", "Be brief."),
        USER,
        Message("assistant", "hm", (ToolCall("c1", "search", '{"q": "x"}'),)),
        Message("tool", "found", call_id="c1"),
        Message("user", "look", parts=(Part("image", url="data:image/png;base64,AAAA"), Part("text", text="here"))),
    ]
    messages, _ = seen_by(ModelRequest(said, TOOLS, ("search",), "auto"))
    assert [[part.part_kind for part in message.parts] for message in messages] == [
        ["system-prompt", "user-prompt"],
        ["text", "tool-call"],
        ["tool-return", "user-prompt"],
    ]
    assert messages[2].parts[0].tool_call_id == "c1"


def test_thinking_is_kept_and_goes_back() -> None:
    thought = ModelResponse(parts=[ThinkingPart("hm", signature="s", provider_name="x"), ToolCallPart("search", '{"q": "x"}', "c9")])
    model = PydanticAIModel(FunctionModel(lambda messages, info: thought))
    first = asyncio.run(model.complete(ASK))
    assert first.thought
    kept = Message("assistant", "", (ToolCall("own", "search", '{"q": "x"}'),), extra=json.loads(json.dumps(first.extra)))
    messages, _ = seen_by(ModelRequest([USER, kept, Message("tool", "found", call_id="own")], TOOLS, ("search",), "auto"))
    assert [part.part_kind for part in messages[1].parts] == ["thinking", "tool-call"]
    assert messages[1].parts[0].signature == "s"
    assert messages[1].parts[1].tool_call_id == "own"


def test_deltas() -> None:
    async def stream(messages: Any, info: AgentInfo) -> AsyncIterator[Any]:
        yield "so "
        yield "far"
        yield {1: DeltaToolCall("search", '{"q": ', tool_call_id="c1")}
        yield {1: DeltaToolCall(json_args='"x"}')}

    deltas, whole = asyncio.run(streamed(PydanticAIModel(FunctionModel(stream_function=stream)), ASK))
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "so far" == whole.text
    assert "".join(delta.arguments for delta in deltas if isinstance(delta, CallDelta)) == '{"q": "x"}' == whole.calls[0].raw_arguments


def test_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert model_by_name("pydantic-ai:test").name == "pydantic-ai:test:test"
    monkeypatch.setitem(__import__("sys").modules, "pydantic_ai", None)
    with pytest.raises(MissingExtra, match=r"pip install 'maymust\[pydantic-ai\]'"):
        model_by_name("pydantic-ai:test")

"""Replies of real SDKs: streamed and whole, cut anywhere, several calls, broken arguments, reasoning, parts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from maymust import PolicyError
from maymust.models import (
    CallDelta,
    ChatModel,
    Message,
    ModelReply,
    ModelRequest,
    Part,
    TextDelta,
    ToolCall,
    ToolDefinition,
    Usage,
    call,
    reply,
)
from maymust.models.by_name import model_by_name
from maymust.models.failures import MissingExtra, OutputError
from tests.models.adapters import APIS, opened, streamed
from tests.models.picky import Manners, PickyServer
from tests.models.picky.server import Turn

TOOLS = tuple(
    ToolDefinition(name, f"Does {name}.", {"type": "object", "properties": {"q": {"type": "string"}}}) for name in ("search", "read")
)
USER = Message("user", "hi")
ASK = ModelRequest([Message("system", "Be brief."), USER], TOOLS, ("search", "read"), "auto")
TEXT = "Größe: 3 € — fertig ✓"


def talk(api: str, turns: Iterable[Turn], talk: Callable[[ChatModel], Awaitable[Any]], model: str | None = None, **manners: Any) -> Any:
    """What `talk` makes of an adapter, and the bodies the server has seen."""

    async def main() -> Any:
        with PickyServer(turns, manners=Manners(**manners)) as server:
            async with opened(api, server, model) as adapter:
                return await talk(adapter), server.bodies

    return asyncio.run(main())


@pytest.mark.parametrize("piece", [1, 5, None])
@pytest.mark.parametrize("api", APIS)
def test_a_stream_may_be_cut_anywhere(api: str, piece: int | None) -> None:
    turn = reply(TEXT, call("search", q="ü€"), call("read", q="✓" * 5))
    (deltas, whole), _ = talk(api, [turn], lambda model: streamed(model, ASK), piece=piece)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == TEXT == whole.text
    assert [(made.name, json.loads(made.raw_arguments)) for made in whole.calls] == [("search", {"q": "ü€"}), ("read", {"q": "✓" * 5})]
    assert whole.kind == "calls"
    for made in whole.calls:
        pieces = [delta for delta in deltas if isinstance(delta, CallDelta) and delta.call_id == made.call_id]
        assert "".join(delta.arguments for delta in pieces) == made.raw_arguments
        assert {delta.name for delta in pieces} == {made.name}
        assert len({delta.index for delta in pieces}) == 1


@pytest.mark.parametrize("api", APIS)
def test_whole_and_streamed_are_the_same_reply(api: str) -> None:
    turn = ModelReply(TEXT, (ToolCall("c1", "search", '{"q": "x"}'), ToolCall("c2", "read", "{}")), Usage(120, 30, 50, 1))
    (_deltas, whole), _ = talk(api, [turn], lambda model: streamed(model, ASK), thinks=True)
    complete, _ = talk(api, [turn], lambda model: model.complete(ASK), thinks=True)
    assert complete == whole
    assert complete.usage == Usage(120, 30, 50, 1)
    assert complete.thought


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_broken_arguments_reach_the_second_gate_as_they_were_written(api: str) -> None:
    broken = call("search", raw_arguments='{"q": "x')
    (_, whole), _ = talk(api, [broken], lambda model: streamed(model, ASK))
    assert whole.calls[0].raw_arguments == '{"q": "x'
    again = ModelRequest(
        [USER, Message("assistant", "", whole.calls), Message("tool", "no JSON", call_id=whole.calls[0].call_id)], TOOLS, ASK.allowed
    )
    _, bodies = talk(api, ["fine"], lambda model: model.complete(again))
    assert "INVALID_JSON" in json.dumps(bodies[0]) or api == "responses"


WRITTEN = [("functions.search", '{"q": "x"}'), ("", "{}"), ("ünï " * 40, "{}"), ("search", '{"q": 1e999}'), ("search", '{"q": "\\ud83d"}')]


@pytest.mark.parametrize("thinks", [False, True])
@pytest.mark.parametrize(("name", "raw"), [*WRITTEN, ("search", '{"q": NaN}'), ("search", '{"q": ' + "[" * 5_000)])
@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_whatever_a_model_wrote_the_next_request_is_taken(api: str, name: str, raw: str, thinks: bool) -> None:
    past = ModelReply("", (ToolCall("c1", name, raw),), Usage(requests=1))
    # The others could not be sent by this server; they come from a state.
    first = talk(api, [past], lambda model: model.complete(ASK), thinks=thinks, ignores=True)[0] if (name, raw) in WRITTEN[:4] else past
    kept = Message("assistant", first.text, first.calls, extra=first.extra)
    json.dumps(kept.to_dict(), allow_nan=False)
    later = ModelRequest([USER, kept, Message("tool", "no", call_id=kept.calls[0].call_id)], TOOLS, ASK.allowed, "auto")
    said, _ = talk(api, ["fine"], lambda model: model.complete(later), thinks=thinks)
    assert said.text == "fine"


@pytest.mark.parametrize("api", APIS)
def test_reasoning_goes_back_in_its_place_and_as_it_came(api: str) -> None:
    first, _ = talk(api, [reply("hm", call("search", q="x"))], lambda model: model.complete(ASK), thinks=True, bound=True, forced=False)
    kept = Message("assistant", first.text, first.calls, extra=json.loads(json.dumps(first.extra)))
    later = ModelRequest([*ASK.messages, kept, Message("tool", "found", call_id=first.calls[0].call_id)], TOOLS, ASK.allowed, "auto")
    _, bodies = talk(api, ["fine"], lambda model: model.complete(later), thinks=True, bound=True, forced=False)
    said = (bodies[0].get("messages") or bodies[0]["input"])[-4 if api == "responses" else -2]
    if api == "chat":
        assert said["reasoning_content"] == "thought 1"
    elif api == "responses":
        assert (said["type"], said["encrypted_content"]) == ("reasoning", "secret 1")
    else:
        assert [block["type"] for block in said["content"]] == ["thinking", "text", "tool_use"]


@pytest.mark.parametrize("api", APIS)
def test_ids_that_were_replaced_are_replaced_in_the_reasoning_too(api: str) -> None:
    first, _ = talk(api, [call("search", q="x")], lambda model: model.complete(ASK), thinks=True)
    own = Message("assistant", "", (ToolCall("turn1_call1", "search", '{"q": "x"}'),), extra=first.extra)
    later = ModelRequest([USER, own, Message("tool", "found", call_id="turn1_call1")], TOOLS, ASK.allowed, "auto")
    said, _ = talk(api, ["fine"], lambda model: model.complete(later), thinks=True)
    assert said.text == "fine"


def test_another_models_reasoning_is_left_out() -> None:
    extra = {"anthropic": {"content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}}
    later = ModelRequest([USER, Message("assistant", "well", extra=extra), USER], TOOLS, ASK.allowed, "auto")
    _, bodies = talk("chat", ["fine"], lambda model: model.complete(later))
    assert bodies[0]["messages"][1] == {"role": "assistant", "content": "well"}


@pytest.mark.parametrize(("thinks", "kind"), [(True, "thinking_only"), (False, "empty")])
@pytest.mark.parametrize("api", APIS)
def test_an_empty_reply_and_one_of_reasoning_alone_are_told_apart(api: str, thinks: bool, kind: str) -> None:
    said, _ = talk(api, [reply()], lambda model: model.complete(ASK), thinks=thinks)
    assert said.kind == kind


@pytest.mark.parametrize("api", APIS)
def test_images_and_files_are_sent_as_parts(api: str) -> None:
    parts = (Part("image", url="data:image/png;base64,AAAA"), Part("file", url="data:application/pdf;base64,BBBB", filename="a.pdf"))
    _, bodies = talk(api, ["fine"], lambda model: model.complete(ModelRequest([Message("user", "look", parts=parts)])))
    wire = json.dumps(bodies[0])
    assert "AAAA" in wire
    assert "BBBB" in wire


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "output",
    ['{"call": {"name": "search", "arguments": {"q": "x"}}}', 'Sure:\n```json\n{"tool": "search", "args": "{\\"q\\": \\"x\\"}"}\n```'],
)
def test_a_model_without_tools_calls_them_in_its_output(output: str, stream: bool) -> None:
    ask = ModelRequest([USER], TOOLS, ("search",), "required")

    async def one(model: ChatModel) -> Any:
        return (await streamed(model, ask))[1] if stream else await model.complete(ask)

    said, bodies = talk("chat", [output], one, "o1-mini", tools=False)
    assert [(made.name, json.loads(made.raw_arguments)) for made in said.calls] == [("search", {"q": "x"})]
    assert (said.level, said.enforced_by, said.text) == (5, "maymust", "")
    assert "tools" not in bodies[0]


def test_a_bad_output_is_asked_for_once_more_and_then_it_is_a_failure() -> None:
    ask = ModelRequest([USER], TOOLS, ("search",), "required")
    good = '{"call": {"name": "search", "arguments": {}}}'
    said, bodies = talk("chat", ["I would rather not.", good], lambda model: model.complete(ask), "o1-mini")
    assert said.calls[0].name == "search"
    assert said.usage.requests == 2
    assert "cannot be used" in bodies[1]["messages"][-1]["content"]
    with pytest.raises(OutputError, match="two attempts") as failed:
        talk("chat", ["no", "still no"], lambda model: model.complete(ask), "o1-mini")
    assert failed.value.output == "still no"
    assert failed.value.usage.requests == 2


def test_a_text_is_an_answer_where_nothing_has_to_be_called() -> None:
    ask = ModelRequest([USER], TOOLS, ("search",), "auto")
    for output in ('{"call": {"text": "yes"}}', "yes"):
        said, _ = talk("chat", [output], lambda model: model.complete(ask), "o1-mini")
        assert (said.text, said.calls) == ("yes", ())


@pytest.mark.parametrize(("name", "extra"), [("openai", "openai"), ("anthropic", "anthropic"), ("openai-responses", "openai")])
def test_a_missing_extra_names_the_line_that_installs_it(name: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, extra, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'maymust\[{extra}\]'"):
        model_by_name(f"{name}:some-model")


def test_models_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert model_by_name("openai:gpt-6-sol").name == "openai:gpt-6-sol"
    assert model_by_name("anthropic:claude-opus-5-5").capabilities.prefix_bound
    with pytest.raises(PolicyError, match="anthropic"):
        model_by_name("antropic:claude")
    for text in ("gpt-6-sol", "ollama:qwen3"):
        with pytest.raises(PolicyError, match='base_url="http://') as failed:
            model_by_name(text)
        assert ("the provider is missing" in str(failed.value)) == (":" not in text)

"""The scripted model."""

import asyncio
import json
from typing import Any

import pytest

from maymust.errors import RunError
from maymust.models import CallDelta, ChatModel, Message, ModelReply, ModelRequest, ScriptedModel, TextDelta, call, reply

ASK = ModelRequest((Message("user", "hello"),))


def say(model: ScriptedModel, request: ModelRequest = ASK) -> ModelReply:
    return asyncio.run(model.complete(request))


def test_each_form_of_a_turn_gives_the_reply_it_stands_for() -> None:
    model = ScriptedModel(["hi", call("a", q="ä"), [call("b"), call("c")], reply("so", call("d"), tokens=7), reply()])
    replies = [say(model) for _ in range(5)]
    assert [(r.text, [c.name for c in r.calls]) for r in replies] == [("hi", []), ("", ["a"]), ("", ["b", "c"]), ("so", ["d"]), ("", [])]
    assert replies[1].calls[0].raw_arguments == '{"q": "ä"}'
    assert replies[3].usage.total_tokens == 7
    assert all(r.usage.requests == 1 for r in replies)


def test_calls_are_numbered_through_the_script_and_keep_an_id_of_their_own() -> None:
    model = ScriptedModel([call("a"), [call("b", call_id="mine"), call("c")], call("d")])
    assert [c.call_id for _ in range(3) for c in say(model).calls] == ["c1", "mine", "c3", "c4"]


def test_a_tool_may_have_a_parameter_called_name() -> None:
    assert json.loads(call("find", name="x").raw_arguments) == {"name": "x"}


def test_raw_arguments_are_kept_as_they_are() -> None:
    assert say(ScriptedModel([call("a", raw_arguments="{not json")])).calls[0].raw_arguments == "{not json"
    with pytest.raises(TypeError, match="not both"):
        call("a", raw_arguments="{}", q=1)


def test_requests_are_kept_in_order() -> None:
    model = ScriptedModel(["one", "two"])
    other = ModelRequest((Message("user", "again"),), tool_choice="none")
    say(model)
    say(model, other)
    assert model.requests == (ASK, other)


def test_a_script_that_runs_out_is_a_run_error_that_says_which_turn() -> None:
    model = ScriptedModel(["one"])
    say(model)
    with pytest.raises(RunError, match="1 turns and was asked for turn 2"):
        say(model)
    assert len(model.requests) == 1


@pytest.mark.parametrize("text", ["", "one", "  two words \n", "   ", "a\n\nb"])
def test_a_stream_gives_the_same_in_pieces_and_the_whole_reply_last(text: str) -> None:
    async def collect(model: ScriptedModel) -> list[object]:
        return [item async for item in model.stream(ASK)]

    *pieces, whole = asyncio.run(collect(ScriptedModel([reply(text, call("a", text="long enough for two"), call("b"))])))
    assert isinstance(whole, ModelReply)
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextDelta)) == whole.text == text
    for index, made in enumerate(whole.calls):
        deltas = [piece for piece in pieces if isinstance(piece, CallDelta) and piece.index == index]
        assert {(delta.call_id, delta.name) for delta in deltas} == {(made.call_id, made.name)}
        assert "".join(delta.arguments for delta in deltas) == made.raw_arguments


def test_runs_at_once_share_the_script_without_losing_a_turn() -> None:
    async def many(model: ScriptedModel) -> list[ModelReply]:
        return await asyncio.gather(*(model.complete(ASK) for _ in range(50)))

    replies = asyncio.run(many(ScriptedModel([str(n) for n in range(50)])))
    assert sorted(int(r.text) for r in replies) == list(range(50))


def test_it_is_a_chat_model() -> None:
    assert isinstance(ScriptedModel([]), ChatModel)


@pytest.mark.parametrize("script", ["hello", call("search"), reply("hello"), [3], [None], [b"x"], [{"q": 1}]])
def test_what_is_no_script_or_no_turn_is_told_when_it_is_made(script: Any) -> None:
    with pytest.raises(TypeError, match=r"a script is a list of turns|is no turn of a script"):
        ScriptedModel(script)

"""Streams: text goes on at once where it may be the answer, calls are held until all of them are judged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest

from maymust.models import call
from maymust.models.scripted import reply
from tests.adapters.harness import policy
from tests.gateway.asking import BODIES, CHAT, CLAUDE_TOOLS, FLAT_TOOLS, MESSAGES, PATHS, RESPONSES, TOOLS, USER, post
from tests.gateway.gateway_process import gateway
from tests.gateway.raw_upstream import Answer, RawUpstream, call_delta, chat_chunks, stream
from tests.models.picky import Manners, PickyServer

STREAM = {**CHAT, "stream": True}
IGNORES = Manners(ignores=True)


def objects(data: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix(b"data: ") for line in data.split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(line) for line in lines]


def test_text_is_on_its_way_before_the_reply_is_whole() -> None:
    pieces: list[Any] = [*chat_chunks({"content": "first"}, finish=None), 0.3, *chat_chunks({"content": "second"})]
    with RawUpstream(stream(pieces)) as upstream, gateway(policy("two_searches"), upstream.url) as url:
        seen = list(_arrivals(url))
    assert b"first" in seen[0]
    assert b"second" not in seen[0]


def _arrivals(url: str) -> Iterator[bytes]:
    with httpx.Client(trust_env=False, timeout=20) as client, client.stream("POST", url + PATHS["chat"], json=STREAM) as response:
        yield from response.iter_raw()


def test_text_that_may_not_be_the_answer_is_held_and_never_seen() -> None:
    answers = stream(chat_chunks({"content": "early"})), stream(chat_chunks(call_delta(0, "search"), finish="tool_calls"))
    with RawUpstream(*answers) as upstream, gateway(policy("owes_search"), upstream.url) as url:
        got = post(url, STREAM)
    assert got.content == b"".join(piece for piece in answers[1].pieces if isinstance(piece, bytes))
    assert got.headers["x-maymust-asks"] == "2"


def test_a_refused_call_is_cut_out_of_the_stream_and_the_rest_is_numbered_anew() -> None:
    deltas = [{"content": "hm"}, call_delta(0, "refund", '{"amo'), call_delta(1, "search", "{}")]
    deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": 'unt": 1}'}}]})
    with RawUpstream(stream(chat_chunks(*deltas, finish="tool_calls"))) as upstream, gateway(policy("refund_hidden"), upstream.url) as url:
        got = post(url, STREAM)
    pieces = [piece for one in objects(got.content) for piece in one["choices"][0]["delta"].get("tool_calls", ())]
    assert [(piece["index"], piece["id"], piece["function"]["name"]) for piece in pieces] == [(0, "c1", "search")]
    assert got.content.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("mark", [b"\n\n", b"\r\n\r\n", b"\n\n\n"], ids=["plain", "crlf", "more lines"])
@pytest.mark.parametrize("size", [100_000, 50], ids=["one piece", "many pieces"])
def test_a_refused_call_is_cut_out_wherever_the_stream_is_cut(mark: bytes, size: int) -> None:
    deltas = [{"content": "hm"}, {"content": "tool_calls"}, call_delta(0, "refund"), call_delta(1, "search")]
    data = b"".join(
        one.replace(b"\n\n", mark) for one in stream(chat_chunks(*deltas, finish="tool_calls")).pieces if isinstance(one, bytes)
    )
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    with RawUpstream(stream(pieces)) as upstream, gateway(policy("refund_hidden"), upstream.url) as url:
        got = post(url, STREAM)
    told = objects(got.content)
    assert "".join(one["choices"][0]["delta"].get("content") or "" for one in told) == "hmtool_calls"
    names = [piece["function"]["name"] for one in told for piece in one["choices"][0]["delta"].get("tool_calls", ())]
    assert names == ["search"]
    assert got.content.rstrip().endswith(b"data: [DONE]")


def test_a_stream_that_goes_on_keeps_its_last_event_without_an_empty_line_after_it() -> None:
    first = stream(chat_chunks({"content": "hm"}, call_delta(0, "refund"), finish="tool_calls"))
    second = stream([*chat_chunks({"content": "so"}, finish=None), *chat_chunks(finish="stop")[:1], b"data: [DONE]"])
    with RawUpstream(first, second) as upstream, gateway(policy("refund_hidden"), upstream.url) as url:
        got = post(url, STREAM)
    assert got.headers["x-maymust-asks"] == "1", "the head is out before the second ask"
    assert got.content.endswith(b"data: [DONE]")
    assert b"refund" not in got.content


@pytest.mark.parametrize("then", ["and so", [call("search", q="x")]], ids=["text", "call"])
@pytest.mark.parametrize("protocol", PATHS)
def test_after_text_that_is_out_a_refused_call_is_followed_by_the_next_reply_in_one_stream(protocol: str, then: Any) -> None:
    script = [reply("let me see", call("refund", amount=1)), reply("again", call("refund", amount=1)), then]
    with (
        PickyServer(script, manners=Manners(ignores=True)) as upstream,
        gateway(policy("refund_hidden"), upstream.url) as url,
    ):
        text, names, raw = READERS[protocol](url)
    assert text == "let me seeagain" + ("and so" if isinstance(then, str) else "")
    assert names == ([] if isinstance(then, str) else ["search"])
    assert "refund" not in raw


def test_the_model_reads_the_text_that_came_before_its_refused_call() -> None:
    script: list[Any] = [reply("let me see", call("refund", amount=1)), "and so"]
    with PickyServer(script, manners=IGNORES) as upstream, gateway(policy("refund_hidden"), upstream.url) as url:
        read_chat(url)
        said = upstream.seen[-1].body["messages"][-2]
    assert (said["role"], said["content"]) == ("assistant", "let me see")
    assert [one["function"]["name"] for one in said["tool_calls"]] == ["refund"]


def read_chat(url: str) -> tuple[str, list[str], str]:
    given: dict[str, Any] = {"model": "m", "messages": [USER], "tools": TOOLS}
    with client_of(url) as client, client.chat.completions.stream(**given) as events:
        raw = [one.chunk.to_json() for one in events if one.type == "chunk"]
        said = events.get_final_completion().choices[0].message
    assert len({json.loads(one)["id"] for one in raw}) == 1, "it reads as one completion"
    return said.content or "", [one.function.name for one in said.tool_calls or ()], "".join(raw)


def read_responses(url: str) -> tuple[str, list[str], str]:
    given: dict[str, Any] = {"model": "m", "input": [USER], "tools": FLAT_TOOLS, "store": False}
    with client_of(url) as client:
        read = list(client.responses.create(**given, stream=True))
    said: Any = read[-1].response
    events: list[dict[str, Any]] = [event.to_dict() for event in read]
    numbers = [event["sequence_number"] for event in events]
    assert numbers == sorted(set(numbers)), "they are counted as one stream"
    ids = {event["response"]["id"] for event in events if "response" in event}
    assert len(ids) == 1, "it reads as one response"
    for event in events:
        # The tools of the request are told again, and are no calls.
        event.get("response", {}).pop("tools", None)
    names = [item.name for item in said.output if item.type == "function_call"]
    return said.output_text, names, json.dumps(events)


def read_messages(url: str) -> tuple[str, list[str], str]:
    given: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [USER], "tools": CLAUDE_TOOLS}
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client, client.messages.stream(**given) as stream:
        raw = "".join(event.to_json() for event in stream)
        said = stream.get_final_message()
    text = "".join(block.text for block in said.content if block.type == "text")
    return text, [block.name for block in said.content if block.type == "tool_use"], raw


def client_of(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)


READERS = {"chat": read_chat, "responses": read_responses, "messages": read_messages}


@pytest.mark.parametrize("protocol", PATHS)
def test_a_model_that_never_plays_along_ends_in_an_error_of_the_protocol(protocol: str) -> None:
    body = {**BODIES[protocol], "stream": True}
    with PickyServer(["one"] * 9, manners=Manners(ignores=True)) as upstream, gateway(policy("answer_after_search"), upstream.url) as url:
        got = post(url, body, PATHS[protocol])
    assert got.status_code == 422
    assert "kept doing what the rules do not allow" in got.json()["error"]["message"]
    assert len(upstream.seen) == 4


@pytest.mark.parametrize("protocol", PATHS)
def test_an_error_after_text_is_told_in_the_stream(protocol: str) -> None:
    script = [reply("let me see", call("refund", amount=1))] * 9
    told = pytest.raises((openai.APIError, anthropic.APIError), match="kept doing what the rules do not allow")
    with PickyServer(script, manners=IGNORES) as upstream, gateway(policy("refund_hidden"), upstream.url, asks=2) as url, told:
        READERS[protocol](url)


@pytest.mark.parametrize("body", [MESSAGES, RESPONSES], ids=["messages", "responses"])
def test_a_stream_that_ends_before_a_call_is_whole_gives_no_call(body: dict[str, Any]) -> None:
    path = PATHS["messages" if "messages" in body else "responses"]
    with PickyServer([[call("search", q="x")]], manners=Manners(ignores=True)) as picky:
        whole = post(picky.url, {**body, "stream": True}, path).content
    begin = whole.index(b"function_call_arguments.delta" if "input" in body else b"input_json_delta")
    with RawUpstream(Answer([whole[:begin]], "text/event-stream")) as upstream, gateway(policy("two_searches"), upstream.url) as url:
        got = post(url, {**body, "stream": True}, path)
    assert b"the stream ended before the reply did" in got.content
    assert b"function_call_arguments" not in got.content
    assert b"tool_use" not in got.content


def test_a_chunk_for_another_choice_cannot_carry_a_call_past_the_gateway() -> None:
    odd = {"id": "x", "choices": [{"index": 1, "delta": call_delta(0, "refund"), "finish_reason": None}]}
    with RawUpstream(stream([odd, *chat_chunks({"content": "x"})])) as upstream, gateway(policy("refund_hidden"), upstream.url) as url:
        got = post(url, STREAM)
    assert b"refund" not in got.content
    assert got.status_code == 502


def test_a_key_written_with_escapes_is_a_call_all_the_same() -> None:
    odd = json.dumps(chat_chunks(call_delta(0, "refund"), finish=None)[0]).replace("tool_calls", "tool\\u005fcalls").encode()
    pieces: list[Any] = [b"data: " + odd + b"\n\n", *chat_chunks(finish="tool_calls")]
    answers = stream(pieces), stream(chat_chunks({"content": "fine"}))
    with RawUpstream(*answers) as upstream, gateway(policy("refund_hidden"), upstream.url) as url:
        got = post(url, STREAM)
    assert b"refund" not in got.content
    assert b"fine" in got.content

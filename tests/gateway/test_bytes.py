"""What the policy does not change stays as it is, byte for byte, on both ways."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from maymust import ConditionalRequirement, Policy
from maymust.models import call
from maymust.models.scripted import reply
from tests.adapters.harness import policy
from tests.gateway.asking import BODIES, CHAT, PATHS, USER, post
from tests.gateway.gateway_process import gateway
from tests.gateway.raw_upstream import Answer, RawUpstream, call_delta, chat_chunks, chat_reply, stream, whole
from tests.models.picky import Manners, PickyServer

OPEN = Policy([], tools=["think", "search", "refund"], final_answer_as_tool=False)

ODD_BODY = b"""{ "model" : "m",\t"messages":[ {"role":"user","content":[{"type":"text","text":"caf\\u00e9 \xc3\xa9"},
 {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]} ] ,
  "x_unknown":{"deep":[1.0,1e3,-0]}, "temperature":0.70, "stream_options":null, "store":true, "metadata":{},
 "tools" : [{"type":"web_search","x":1}, {"function":{"name":"search","parameters":{"type":"object"} },"type":"function"} ]  }
"""


def test_a_body_that_needs_no_change_goes_on_as_it_came() -> None:
    with RawUpstream(whole(chat_reply("done"))) as upstream, gateway(OPEN, upstream.url) as url:
        assert post(url, ODD_BODY).status_code == 200
    assert upstream.seen[0].body == ODD_BODY


def test_only_what_has_to_change_is_changed() -> None:
    rules = Policy([ConditionalRequirement("search", only_after=["think"])], tools=["think", "search"])
    with RawUpstream(whole(chat_reply("done"))) as upstream, gateway(rules, upstream.url) as url:
        assert post(url, ODD_BODY).status_code == 200
    begin, end = ODD_BODY.index(b'[{"type":"web_search"'), ODD_BODY.rindex(b"  }")
    assert upstream.seen[0].body == ODD_BODY[:begin] + b'[{"type":"web_search","x":1}]' + ODD_BODY[end:]


def test_a_choice_is_added_without_touching_the_rest() -> None:
    body = ODD_BODY.replace(b'{"type":"web_search","x":1}, ', b"")
    rules = Policy([ConditionalRequirement("search", min_invocations=1)], tools=["search"])
    with RawUpstream(whole(chat_reply(None, ("search", "{}")))) as upstream, gateway(rules, upstream.url) as url:
        assert post(url, body).status_code == 200
    sent = upstream.seen[0].body
    choice = b',"tool_choice":{"type": "function", "function": {"name": "search"}}'
    assert sent == body.rstrip()[:-1] + choice + b"}\n"


TURNS = ["a text with ünïcode", [call("search", q="x"), call("think")], reply("text", call("search", q="x")), reply()]


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize("piece", [None, 1, 7])
def test_streamed_bytes_are_those_of_the_upstream_when_the_policy_allows_everything(protocol: str, turn: Any, piece: int | None) -> None:
    body = {**BODIES[protocol], "stream": True}
    with PickyServer(lambda *_: turn, manners=Manners(ignores=True, piece=piece)) as upstream, gateway(OPEN, upstream.url) as url:
        through = post(url, body, PATHS[protocol])
        direct = post(upstream.url, body, PATHS[protocol])
    changing = [(b"_1", b"_2"), (b"chatcmpl-1", b"chatcmpl-2"), (b"own1", b"own2")]
    expected = direct.content
    got = through.content
    for old, new in changing:
        got, expected = got.replace(old, new), expected.replace(old, new)
    without_usage = [line for line in got.split(b"\n") if b"tokens" not in line]
    assert without_usage == [line for line in expected.split(b"\n") if b"tokens" not in line]
    assert through.headers["content-type"] == "text/event-stream"


@pytest.mark.parametrize(
    "pieces",
    [
        chat_chunks({"role": "assistant", "content": ""}, {"content": "hi"}),
        [b": a comment\n\n", *chat_chunks({"content": "tool_calls"}), b": after the end"],
        [b'data: {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}\r\n\r\n', b"data: [DONE]"],
        chat_chunks(call_delta(0, "search"), call_delta(1, "think"), finish="tool_calls"),
        [b'retry: 5\rdata: {"choices": []}\r\r', *chat_chunks({"content": "x"}, call_delta(0, "think"), finish="tool_calls")],
    ],
)
def test_odd_streams_are_the_same_bytes(pieces: list[Any]) -> None:
    answer = stream(pieces)
    with RawUpstream(answer) as upstream, gateway(OPEN, upstream.url) as url:
        got = post(url, {**CHAT, "stream": True})
    assert got.content == b"".join(piece for piece in answer.pieces if isinstance(piece, bytes))


def test_a_whole_reply_is_the_same_bytes() -> None:
    message = b'{"role":"assistant","content":"\\u00e9 \xc3\xa9","x":1.50}'
    odd = b'{"id": "x",  "choices" : [ {"index":0,"message":' + message + b',"finish_reason":"stop"}]}\n'
    with RawUpstream(Answer([odd])) as upstream, gateway(OPEN, upstream.url) as url:
        got = post(url, CHAT)
    assert got.content == odd
    assert got.headers["content-length"] == str(len(odd))


def test_a_reply_that_loses_a_call_keeps_the_rest() -> None:
    said = chat_reply("hm", ("refund", '{"amount": 5}'), ("search", '{"q": "x"}'), system_fingerprint="fp", usage={"total_tokens": 3})
    with RawUpstream(whole(said)) as upstream, gateway(policy("refund_hidden"), upstream.url) as url:
        got = post(url, CHAT).json()
    kept = said["choices"][0]["message"]["tool_calls"][1:]
    assert got == {**said, "choices": [{**said["choices"][0], "message": {**said["choices"][0]["message"], "tool_calls": kept}}]}


def test_headers_go_through_and_those_of_a_hop_do_not() -> None:
    answer = whole(chat_reply("done"), headers={"x-request-id": "r1", "connection": "x-secret", "x-secret": "1", "set-cookie": "a=b"})
    with RawUpstream(answer) as upstream, gateway(OPEN, upstream.url) as url, httpx.Client(trust_env=False) as client:
        for _ in range(2):
            hop = {"connection": "x-hop", "x-hop": "1", "accept-encoding": "gzip"}
            headers = {"authorization": "Bearer k", "openai-organization": "o", **hop}
            got = client.post(url + PATHS["chat"] + "?api-version=1&x=%20", json=CHAT, headers=headers)
            client.cookies.clear()
    first, second = upstream.seen
    assert first.path == "/v1/chat/completions?api-version=1&x=%20"
    kept = ("authorization", "openai-organization", "accept-encoding")
    assert [first.headers[key] for key in kept] == ["Bearer k", "o", "identity"]
    assert "x-hop" not in first.headers
    assert "cookie" not in second.headers, "what one client was given is not sent for another"
    assert got.headers["x-request-id"] == "r1"
    assert "x-secret" not in got.headers


HOSTED: dict[str, dict[str, Any]] = {
    "chat": {"type": "web_search"},
    "responses": {"type": "web_search", "filters": {"x": 1}},
    "messages": {"type": "mcp_toolset", "mcp_server_name": "x"},
}


@pytest.mark.parametrize("protocol", PATHS)
def test_hosted_tools_stay_whatever_the_policy_closes(protocol: str) -> None:
    tools, hosted = BODIES[protocol]["tools"], HOSTED[protocol]
    body = {**BODIES[protocol], "tools": [*tools, hosted], "model": "claude-sonnet-4-5"}
    answer = whole({"output": [], "content": [], **chat_reply("done")})
    with RawUpstream(answer) as upstream, gateway(policy("refund_hidden"), upstream.url) as url:
        assert post(url, body, PATHS[protocol]).status_code == 200
    sent = upstream.seen[0].json
    assert sent["tools"] == [tools[0], tools[1], hosted]
    assert {**sent, "tools": []} == {**body, "tools": []}


def test_a_conversation_is_not_written_anew() -> None:
    messages = [USER, {"role": "assistant", "content": "ok", "x": {"b": 1, "a": 2}}, USER]
    answers = whole(chat_reply("early")), whole(chat_reply(None, ("search", "{}")))
    with RawUpstream(*answers) as upstream, gateway(policy("owes_search"), upstream.url) as url:
        assert post(url, {**CHAT, "messages": messages}).status_code == 200
    again = upstream.seen[1]
    assert json.dumps(messages).encode()[:-1] in again.body
    nudge = "A text is not enough here. You cannot finish yet: search has to succeed before the end. Call one of: think, search, refund."
    assert [one["content"] for one in again.json["messages"][3:]] == ["early", nudge]


def test_each_request_goes_to_its_own_path_with_its_own_query() -> None:
    chat = PATHS["chat"]
    ways = [chat, f"{chat}?a=1", f"{chat}?a=2", "/team/chat/completions", chat]
    with RawUpstream(whole(chat_reply("done"))) as upstream, gateway(OPEN, f"{upstream.url}/base/v1") as url:
        for way in ways:
            assert post(url, CHAT, way).status_code == 200
        told = [got.path for got in upstream.seen]
    assert told == [f"/base{way}" if way.startswith("/v1/") else f"/base/v1{way}" for way in ways]

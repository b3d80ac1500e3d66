"""What goes wrong on the way to the provider, and clients that leave."""

from __future__ import annotations

import gzip
import json
import socket
from typing import Any

import pytest

from tests.adapters.harness import policy
from tests.gateway.asking import BODIES, CHAT, PATHS, counts, fault, post, said
from tests.gateway.gateway_process import gateway
from tests.gateway.raw_upstream import Answer, RawUpstream, call_delta, chat_chunks, chat_reply, stream, whole

OPEN = policy("two_searches")
STREAM = {**CHAT, "stream": True}


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 529])
def test_errors_of_the_upstream_go_through_as_they_are(protocol: str, status: int) -> None:
    body = b'{"error" : {"message": "as it was written"}}'
    answer = Answer([body], status=status, headers={"retry-after": "7", "x-request-id": "r"})
    with RawUpstream(answer) as upstream, gateway(OPEN, upstream.url) as url:
        got = post(url, BODIES[protocol], PATHS[protocol])
    assert (got.status_code, got.content) == (status, body)
    assert (got.headers["retry-after"], got.headers["x-request-id"]) == ("7", "r")
    assert len(upstream.seen) == 1, "SDKs try again by themselves"


def test_an_error_when_the_model_is_asked_again_is_told() -> None:
    answers = whole(chat_reply("early")), whole({"error": {"message": "slow down"}}, status=429)
    with RawUpstream(*answers) as upstream, gateway(policy("owes_search"), upstream.url) as url:
        assert post(url, CHAT).status_code == 429


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (Answer([b"<html>"], "text/html"), 502, "sent text/html, which cannot be judged"),
        (Answer([b"<html>"]), 502, "it is no JSON object"),
        (Answer([b'{"choices": [], "choices": []}']), 502, "could be read in two ways"),
        (Answer([b"\xff\xfe"]), 502, "cannot be judged"),
        (whole({}), 502, "it has not exactly one choice"),
        (whole({"choices": [{}]}), 502, "its choice has no message"),
        (whole({"choices": [{"message": {"tool_calls": [{}]}}]}), 502, "a call has no name"),
        (whole({"choices": [{"message": {"tool_calls": "x"}}]}), 502, "its tool_calls are no list"),
        (Answer([b'{"choices"'], cut=True), 502, "the reply was cut off"),
        (Answer([b""], status=307, headers={"location": "https://elsewhere.example/"}), 502, "redirects to https://elsewhere.example/"),
        (Answer([b"x" * 300_000]), 502, "longer than 200000 bytes"),
        (Answer([b"not gzip"], headers={"content-encoding": "gzip"}), 502, "the reply was cut off"),
    ],
)
def test_what_cannot_be_judged_never_reaches_the_client(answer: Answer, status: int, words: str) -> None:
    with RawUpstream(answer) as upstream, gateway(OPEN, upstream.url, max_reply=200_000) as url:
        got = post(url, CHAT)
    assert (got.status_code, fault(got)) == (status, "upstream")
    assert words in said(got)


def test_an_upstream_that_is_not_there_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    with gateway(OPEN, nobody) as url:
        got = post(url, CHAT)
    assert (got.status_code, fault(got), said(got)) == (502, "upstream", f"maymust: the upstream {nobody} cannot be reached (ConnectError)")


def test_an_upstream_that_says_nothing_is_given_up() -> None:
    with RawUpstream(Answer([3.0])) as upstream, gateway(OPEN, upstream.url, read_timeout=0.3) as url:
        got = post(url, CHAT)
    assert (got.status_code, fault(got)) == (504, "upstream")
    with RawUpstream(Answer([b" ", 0.2], endless=True)) as upstream, gateway(OPEN, upstream.url, timeout=0.7) as url:
        got = post(url, CHAT)
    assert (got.status_code, fault(got)) == (504, "too_slow")


def test_a_compressed_reply_is_read_all_the_same() -> None:
    data = gzip.compress(json.dumps(chat_reply("done")).encode())
    with RawUpstream(Answer([data], headers={"content-encoding": "gzip"})) as upstream, gateway(OPEN, upstream.url) as url:
        got = post(url, CHAT)
    assert got.json()["choices"][0]["message"]["content"] == "done"
    assert "content-encoding" not in got.headers


def test_a_stream_that_is_cut_off_ends_with_an_error() -> None:
    answer = stream(chat_chunks({"content": "half"}, finish=None), cut=True)
    with RawUpstream(answer) as upstream, gateway(OPEN, upstream.url) as url:
        got = post(url, STREAM)
    assert b"half" in got.content
    assert b"the reply was cut off" in got.content
    answer = stream(chat_chunks(call_delta(0, "search"), finish=None), cut=True)
    with RawUpstream(answer) as upstream, gateway(OPEN, upstream.url) as url:
        got = post(url, STREAM)
    assert (got.status_code, b"search" in got.content) == (502, False)


def test_an_error_event_of_the_upstream_goes_through() -> None:
    error = {"error": {"message": "overloaded"}}
    pieces: list[Any] = [*chat_chunks(call_delta(0, "search"), finish=None), error]
    with RawUpstream(stream(pieces)) as upstream, gateway(OPEN, upstream.url) as url:
        got = post(url, STREAM)
    assert got.content == b'data: {"error": {"message": "overloaded"}}\n\n'


def test_a_stream_that_nobody_asked_for_is_judged_as_one() -> None:
    answers = stream(chat_chunks(call_delta(0, "refund"), finish="tool_calls")), whole(chat_reply("done"))
    with RawUpstream(*answers) as upstream, gateway(policy("refund_hidden"), upstream.url) as url:
        got = post(url, CHAT)
    assert b"refund" not in got.content
    assert got.status_code == 200


LONG = {**CHAT, "messages": [*CHAT["messages"], {"role": "assistant", "content": "x" * 300_000}]}


@pytest.mark.parametrize("plain_server", [False, True], ids=["own server", "plain server"])
@pytest.mark.parametrize("body", [CHAT, STREAM, LONG], ids=["whole", "stream", "long"])
def test_when_the_client_leaves_the_upstream_is_let_go(body: dict[str, Any], plain_server: bool) -> None:
    kind = "text/event-stream" if body.get("stream") else "application/json"
    endless = Answer([b": x\n\n" if body.get("stream") else b" ", 0.02], kind, endless=True)
    with RawUpstream(endless) as upstream, gateway(OPEN, upstream.url, plain_server=plain_server) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        data = json.dumps(body).encode()
        head = f"POST {PATHS['chat']} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        with socket.create_connection((host, int(port))) as line:
            line.sendall(head.encode() + data)
            upstream.wait_for()
        assert upstream.left.wait(20), "the upstream still writes"
        told = 'outcome="disconnected"'
        assert told in counts(url, told)

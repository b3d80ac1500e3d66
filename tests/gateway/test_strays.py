"""What a client might take for a call, wherever an upstream puts it, is judged or never gets there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maymust import ConditionalRequirement, Policy
from tests.gateway.asking import BODIES, PATHS, post
from tests.gateway.gateway_process import gateway
from tests.gateway.raw_upstream import Answer, RawUpstream, call_delta, chat_chunks, chat_reply, event, stream, whole

TOOLS = ["think", "search", "refund"]
NO_REFUND = Policy([ConditionalRequirement("refund", only_after=["search"])], tools=TOOLS)
NO_ANSWER = Policy([ConditionalRequirement("final_answer", only_after=["search"])], tools=TOOLS)
MARK = b"\xef\xbb\xbf"

REFUND = call_delta(0, "refund")
BLOCK = {"type": "tool_use", "id": "t", "name": "refund", "input": {}}
ITEM = {"type": "function_call", "id": "f", "call_id": "c", "name": "refund", "arguments": "{}"}
LOOKUP = {**ITEM, "name": "search"}

MESSAGE: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": {}}
START = {"type": "message_start", "message": MESSAGE}
END = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}, {"type": "message_stop"}]
RESPONSE: dict[str, Any] = {"id": "r", "object": "response", "status": "completed", "output": []}
CREATED = {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}}
COMPLETED = {"type": "response.completed", "response": RESPONSE}


def chunk(**more: Any) -> dict[str, Any]:
    return {"id": "x", "choices": [{"index": 0, "finish_reason": None, **more}]}


def block(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": 0, "content_block": content, **more}


def item(kind: str, content: Any) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": 0, "item": content}


def arguments(kind: str, text: str) -> dict[str, Any]:
    key = "delta" if kind == "delta" else "arguments"
    return {"type": f"response.function_call_arguments.{kind}", "output_index": 0, "item_id": "f", key: text}


STRAYS: dict[str, tuple[str, list[Any]]] = {
    "after a byte order mark": ("chat", [MARK + event(chunk(delta=REFUND)), *chat_chunks()]),
    "after a mark inside the stream": (
        "chat",
        [*chat_chunks({"content": ""}, finish=None), MARK + event(chunk(delta=REFUND)), *chat_chunks()],
    ),
    "in a message instead of a delta": ("chat", [chunk(delta={"content": ""}, message=REFUND), *chat_chunks()]),
    "in a list of deltas": ("chat", [chunk(delta=[REFUND]), *chat_chunks()]),
    "beside the calls": ("chat", [chunk(delta=call_delta(0, "search"), message=REFUND), *chat_chunks()]),
    "with the key of the mark in escapes": (
        "chat",
        [event(chunk(delta=call_delta(0, "search"), message=REFUND)).replace(b'"tool_calls"', b'"tool\\u005fcalls"'), *chat_chunks()],
    ),
    "in two forms": (
        "chat",
        [
            chunk(
                delta={
                    "tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "search"}, "function": {"name": "refund"}}]
                }
            ),
            *chat_chunks(),
        ],
    ),
    "in the message that begins": ("messages", [{**START, "message": {**MESSAGE, "content": [BLOCK]}}, *END]),
    "named by its event alone": ("messages", [START, b"event: content_block_start\n" + event(block(BLOCK, type=None)), *END]),
    "in an event of another type": ("messages", [START, block(BLOCK, type="content_block_replace"), *END]),
    "under a number that is used again": ("messages", [START, block(BLOCK), block({**BLOCK, "name": "search"}), *END]),
    "begun and never done": ("responses", [CREATED, item("added", ITEM), COMPLETED]),
    "in a response that only begins": ("responses", [{**CREATED, "response": {**RESPONSE, "output": [ITEM]}}, COMPLETED]),
    "in a response that has failed": ("responses", [CREATED, {"type": "response.failed", "response": {**RESPONSE, "output": [ITEM]}}]),
    "begun as another one": ("responses", [CREATED, item("added", ITEM), item("done", LOOKUP), COMPLETED]),
    "done twice": ("responses", [CREATED, item("done", ITEM), item("done", LOOKUP), COMPLETED]),
}


@pytest.mark.parametrize("stray", STRAYS)
def test_a_call_does_not_get_past_the_gateway(stray: str) -> None:
    protocol, pieces = STRAYS[stray]
    with RawUpstream(stream(pieces)) as upstream, gateway(NO_REFUND, upstream.url, asks=1) as url:
        got = post(url, {**BODIES[protocol], "stream": True}, PATHS[protocol])
    assert b"refund" not in got.content
    assert b"maymust" in got.content


@pytest.mark.parametrize("end", [b"", b"\n\n"])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_whole_reply_that_is_said_to_be_a_stream_is_no_way_past(end: bytes, indent: int | None) -> None:
    text = json.dumps(chat_reply(None, ("refund", "{}")), indent=indent).encode().replace(b"{\n", b"{\n\n")
    with RawUpstream(Answer([text + end], "text/event-stream")) as upstream, gateway(NO_REFUND, upstream.url) as url:
        got = post(url, BODIES["chat"])
    assert b"refund" not in got.content


TWICE = [
    [arguments("delta", '{"amount": 9}'), arguments("done", '{"amount": 1}')],
    [arguments("delta", '{"amount": '), arguments("delta", "9}"), arguments("done", '{"amount": 1}')],
    [arguments("done", '{"amount": 9}')],
]


@pytest.mark.parametrize("told", TWICE)
def test_arguments_that_are_told_in_two_ways_are_not_judged_by_one_of_them(told: list[Any]) -> None:
    done = {**LOOKUP, "arguments": '{"amount": 1}'}
    pieces = [CREATED, item("added", {**LOOKUP, "arguments": ""}), *told, item("done", done), COMPLETED]
    with RawUpstream(stream(pieces)) as upstream, gateway(NO_REFUND, upstream.url) as url:
        got = post(url, {**BODIES["responses"], "stream": True}, PATHS["responses"])
    assert b"told in two ways" in got.content
    assert b"search" not in got.content


def test_arguments_may_be_spaced_in_another_way_at_the_end() -> None:
    told = [arguments("delta", '{"q":'), arguments("delta", ' "x"}'), arguments("done", '{"q": "x"}')]
    done = {**LOOKUP, "arguments": '{"q":"x"}'}
    pieces = [event(one) for one in (CREATED, item("added", {**LOOKUP, "arguments": ""}), *told, item("done", done), COMPLETED)]
    with RawUpstream(stream(pieces)) as upstream, gateway(NO_REFUND, upstream.url) as url:
        got = post(url, {**BODIES["responses"], "stream": True}, PATHS["responses"])
    assert got.content == b"".join(pieces)


@pytest.mark.parametrize("fault", [None, {"message": "overloaded"}])
def test_a_text_beside_an_error_is_no_way_to_an_early_answer(fault: Any) -> None:
    cut_off = {**chunk(delta={"content": "It is on its way."}), "error": fault}
    with RawUpstream(stream([cut_off])) as upstream, gateway(NO_ANSWER, upstream.url) as url:
        got = post(url, {**BODIES["chat"], "stream": True})
    assert b"on its way" not in got.content


ODD: list[tuple[str, Any]] = [
    ("chat", chunk(delta={"tool_calls": 5})),
    ("chat", chunk(delta={"tool_calls": {"0": {}}})),
    ("chat", chunk(delta={"tool_calls": [{"index": 0, "function": "refund"}]})),
    ("chat", chunk(delta={"tool_calls": [{"index": True, "function": {"name": "refund"}}]})),
    ("chat", chunk(delta={"tool_calls": [{"index": -1, "function": {"name": "refund"}}]})),
    ("messages", {"type": "content_block_delta", "index": 0, "delta": "tool_use"}),
    ("messages", {"type": "message_delta", "delta": "tool_use"}),
    ("messages", block(BLOCK, index=True)),
    ("responses", {"type": "response.completed", "response": "_call"}),
    ("responses", {"type": "response.completed", "response": {"output": {"a": ITEM}}}),
    ("responses", {**item("done", ITEM), "output_index": True}),
]


@pytest.mark.parametrize(("protocol", "odd"), ODD)
def test_a_stream_of_another_form_is_the_upstreams_fault(protocol: str, odd: Any) -> None:
    begin: dict[str, list[Any]] = {"chat": [], "messages": [START, block(BLOCK)], "responses": [CREATED]}
    with RawUpstream(stream([*begin[protocol], odd])) as upstream, gateway(NO_REFUND, upstream.url) as url:
        got = post(url, {**BODIES[protocol], "stream": True}, PATHS[protocol])
    assert b"cannot be judged" in got.content
    assert b"refund" not in got.content


def test_a_whole_reply_with_a_call_in_two_forms_is_not_judged_by_one_of_them() -> None:
    reply = chat_reply(None, ("search", "{}"))
    reply["choices"][0]["message"]["tool_calls"][0]["custom"] = {"name": "refund", "input": ""}
    with RawUpstream(whole(reply)) as upstream, gateway(NO_REFUND, upstream.url) as url:
        got = post(url, BODIES["chat"])
    assert got.status_code == 502
    assert b"two forms" in got.content


@pytest.mark.parametrize("more", ["search", "ed"])
def test_a_call_whose_name_is_told_in_pieces_is_not_handed_on(more: str) -> None:
    pieces = [chunk(delta=call_delta(0, "search")), chunk(delta=call_delta(0, more)), *chat_chunks(finish="tool_calls")]
    with RawUpstream(stream(pieces)) as upstream, gateway(Policy([], tools=["search", "searched", "searchsearch"]), upstream.url) as url:
        got = post(url, {**BODIES["chat"], "stream": True})
    assert b"could be read in two ways" in got.content


@pytest.mark.parametrize("more", ["", None])
def test_a_later_piece_of_a_call_may_leave_the_name_empty(more: Any) -> None:
    rest = {"tool_calls": [{"index": 0, "function": {"name": more, "arguments": "{}"}}]}
    pieces = [chunk(delta=call_delta(0, "search", "")), chunk(delta=rest), *chat_chunks(finish="tool_calls")]
    with RawUpstream(stream(pieces)) as upstream, gateway(NO_REFUND, upstream.url) as url:
        got = post(url, {**BODIES["chat"], "stream": True})
    assert got.content == b"".join(piece if isinstance(piece, bytes) else event(piece) for piece in pieces)

"""What a client runs is what was judged, and what a person was shown: arguments that could be read in another way get no further."""

from __future__ import annotations

from typing import Any

import pytest

from maymust import ArgumentRequirement, AskPermissionRequirement, ConditionalRequirement, Policy
from maymust.policyfile.gateway_terms import GatewayTerms
from tests.gateway.asking import BODIES, CHAT, PATHS, USER, called, post, returned, said
from tests.gateway.gateway_process import gateway
from tests.gateway.raw_upstream import RawUpstream, call_delta, chat_chunks, chat_reply, stream, whole

TOOLS = ["think", "search", "refund"]
ONCE_EACH = Policy([ConditionalRequirement("refund", same="order", max_invocations=1)], tools=TOOLS)
PAST = [USER, called("refund", '{"order": 7}'), returned()]

UNREADABLE = [
    '{"order": 8, "order": 7}',
    '{"order": 7, "why": NaN}',
    '{"order": 7, "more": {"a": 1, "a": 2}}',
    '{"order": 7, "x": ' + "9" * 5000 + "}",
    '{"order": 7',
    "[7]",
    '"{\\"order\\": 7}"',
]


@pytest.mark.parametrize("raw", UNREADABLE, ids=range(len(UNREADABLE)))
@pytest.mark.parametrize("how", ["whole", "stream"])
def test_a_call_that_a_client_might_read_as_another_one_is_refused(raw: str, how: str) -> None:
    answer = whole(chat_reply(None, ("refund", raw))) if how == "whole" else stream(chat_chunks(call_delta(0, "refund", raw)))
    with RawUpstream(answer) as upstream, gateway(ONCE_EACH, upstream.url, asks=1) as url:
        got = post(url, {**CHAT, "messages": PAST, "stream": how == "stream"})
    assert got.status_code == 422
    assert "one JSON object in which no key is there twice" in said(got)


@pytest.mark.parametrize("raw", ["", "{}", " { } ", "null", None, {}, '{"order": 8}'])
def test_no_arguments_are_arguments(raw: Any) -> None:
    with RawUpstream(whole(chat_reply(None, ("refund", raw)))) as upstream, gateway(ONCE_EACH, upstream.url) as url:
        assert post(url, {**CHAT, "messages": PAST}).status_code == 200


def test_what_the_policy_does_not_name_passes_as_it_is() -> None:
    reply = whole(chat_reply(None, ("other", '{"a": 1, "a": 2')))
    tools = [*CHAT["tools"], {"type": "function", "function": {"name": "other"}}]
    with RawUpstream(reply) as upstream, gateway(ONCE_EACH, upstream.url) as url:
        assert post(url, {**CHAT, "tools": tools}).content == reply.pieces[0]


ASKED: dict[str, dict[str, Any]] = {
    "chat": {"tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "refund", "input": "order 7"}}]},
    "custom": {"type": "custom_tool_call", "id": "x", "call_id": "c", "name": "refund", "input": "order 7"},
    "shell": {"type": "local_shell_call", "id": "x", "call_id": "c", "status": "completed", "action": {"command": ["rm"]}},
}
SHOWN = {"chat": {"input": "order 7"}, "custom": {"input": "order 7"}, "shell": {"action": {"command": ["rm"]}}}


def reply_with(call: str) -> Any:
    made = ASKED[call]
    if call == "chat":
        return {**chat_reply(), "choices": [{"index": 0, "message": {"role": "assistant", **made}, "finish_reason": "tool_calls"}]}
    return {"id": "r", "object": "response", "status": "completed", "output": [made]}


@pytest.mark.parametrize("call", ASKED)
def test_a_person_sees_what_a_call_without_json_is_about(call: str) -> None:
    policy = Policy([AskPermissionRequirement(["refund", "local_shell"])], tools=["refund", "local_shell"])
    body = CHAT if call == "chat" else {**BODIES["responses"], "tools": [*BODIES["responses"]["tools"], {"type": "local_shell"}]}
    path = PATHS["chat" if call == "chat" else "responses"]
    with RawUpstream(whole({"allow": True})) as desk, RawUpstream(whole(reply_with(call))) as upstream:
        terms = GatewayTerms(approvals=desk.url)
        with gateway(policy, upstream.url, terms=terms) as url:
            assert post(url, body, path).status_code == 200
    assert desk.seen[0].json["arguments"] == SHOWN[call]


def test_a_bound_may_speak_of_the_input_of_a_custom_tool() -> None:
    policy = Policy([ArgumentRequirement("refund", "input", one_of=["order 8"])], tools=TOOLS)
    with RawUpstream(whole(reply_with("chat"))) as upstream, gateway(policy, upstream.url, asks=1) as url:
        assert "order 8" in said(post(url, CHAT))


def test_a_no_to_one_call_leaves_another_one_of_its_id_alone() -> None:
    policy = Policy([ConditionalRequirement("search", max_invocations=1), AskPermissionRequirement("refund")], tools=TOOLS)
    reply = chat_reply(None, ("search", "{}"), ("refund", "{}"), ("search", "{}"))
    for call in reply["choices"][0]["message"]["tool_calls"]:
        call["id"] = "same"
    with (
        RawUpstream(whole({"allow": False})) as desk,
        RawUpstream(whole(reply)) as upstream,
        gateway(policy, upstream.url, terms=GatewayTerms(approvals=desk.url)) as url,
    ):
        left = post(url, CHAT).json()["choices"][0]["message"]["tool_calls"]
    assert [call["function"]["name"] for call in left] == ["search"]


def test_a_person_is_asked_about_a_text_that_has_no_form_in_utf_8() -> None:
    policy = Policy([AskPermissionRequirement("refund")], tools=TOOLS)
    reply = whole(chat_reply(None, ("refund", r'{"why": "\ud800"}')))
    with (
        RawUpstream(whole({"allow": True})) as desk,
        RawUpstream(reply) as upstream,
        gateway(policy, upstream.url, terms=GatewayTerms(approvals=desk.url)) as url,
    ):
        assert post(url, CHAT).status_code == 200
    assert desk.seen[0].json["arguments"] == {"why": "\ud800"}

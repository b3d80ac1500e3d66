"""`--shadow` changes nothing, and says what would have been done; the counts of the gateway."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import httpx
import pytest

from maymust import AskPermissionRequirement, Policy
from maymust.models import call
from maymust.policyfile.gateway_terms import GatewayTerms
from tests.adapters.harness import policy
from tests.gateway.asking import BODIES, CHAT, PATHS, USER, counts, post, returned
from tests.gateway.gateway_process import gateway
from tests.gateway.raw_upstream import RawUpstream, call_delta, chat_chunks, chat_reply, stream, whole
from tests.models.picky import Manners, PickyServer


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    found = [record.getMessage() for record in caplog.records if record.name == "maymust.gateway.shadow"]
    return [json.loads(line.removeprefix("shadow ")) for line in found]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PATHS)
def test_requests_and_replies_pass_as_they_are_and_what_would_be_done_is_told(
    protocol: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "maymust.gateway")
    body = json.dumps({**BODIES[protocol], "model": "claude-sonnet-4-5", "stream": stream}, indent=1).encode()
    script = [[call("search", q="x"), call("refund", amount=500)]]
    with PickyServer(lambda *_: script[0], manners=Manners(ignores=True)) as upstream:
        direct = post(upstream.url, body, PATHS[protocol])
        with gateway(policy("search_after_think"), upstream.url, shadow=True) as url:
            through = post(url, body, PATHS[protocol])
            line = 'maymust_gateway_shadow_total{policy="test",would="refuse_call"} 1.0'
            assert line in counts(url, line)
    # The upstream numbers its replies; all else is the same.
    assert re.sub(rb"\d+", b"", through.content) == re.sub(rb"\d+", b"", direct.content)
    assert b"search" in through.content
    assert not [key for key in through.headers if key.startswith("x-maymust")]
    request, reply = lines(caplog)
    assert (request["would"], "search" in request["allowed"]) == ("change", False)
    assert list(reply["refused"]) == ["search"]


def test_what_would_be_rejected_passes_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "maymust.gateway")
    with RawUpstream(whole(chat_reply("early"))) as upstream, gateway(policy("owes_search"), upstream.url, shadow=True) as url:
        for body in ({**CHAT, "n": 2}, {**CHAT, "messages": [USER, returned()]}, b"{", CHAT):
            assert post(url, body).content == b"".join(one for one in whole(chat_reply("early")).pieces if isinstance(one, bytes))
    found = [one.get("fault") or one["would"] for one in lines(caplog)]
    assert found == [
        "unsupported",
        "truncated",
        "bad_request",
        "change",
        "refuse_text",
    ]


def test_nobody_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "maymust.gateway")
    rules = Policy([AskPermissionRequirement("refund")], tools=["think", "search", "refund"])
    answer = stream(chat_chunks(call_delta(0, "refund"), finish="tool_calls"))
    with RawUpstream(whole({"allow": False})) as person, RawUpstream(answer) as upstream:
        terms = GatewayTerms(approvals=person.url)
        with gateway(rules, upstream.url, terms=terms, shadow=True) as url:
            assert b"refund" in post(url, {**CHAT, "stream": True}).content
    assert person.seen == []
    assert lines(caplog)[-1]["ask"] == ["refund"]


def test_what_happened_is_counted() -> None:
    answers = whole(chat_reply("early")), whole(chat_reply(None, ("refund", "{}"))), whole(chat_reply(None, ("search", "{}")))
    with RawUpstream(*answers) as upstream, gateway(policy("owes_search"), upstream.url) as url:
        post(url, {**CHAT, "tools": CHAT["tools"][:2]})
        post(url, b"{")
        told = counts(url, 'maymust_gateway_seconds_count{protocol="chat"} 2.0')
        assert httpx.get(url + "/healthz", trust_env=False).json() == {"status": "ok", "policies": ["test"]}
    for line in (
        'maymust_gateway_requests_total{outcome="changed",policy="test",protocol="chat"} 1.0',
        'maymust_gateway_requests_total{outcome="bad_request",policy="-",protocol="chat"} 1.0',
        'maymust_gateway_asks_total{policy="test"} 3.0',
        'maymust_gateway_refused_calls_total{policy="test"} 1.0',
        'maymust_gateway_refused_texts_total{policy="test"} 1.0',
        "maymust_gateway_in_flight 0.0",
        'maymust_gateway_seconds_count{protocol="chat"} 2.0',
    ):
        assert line in told

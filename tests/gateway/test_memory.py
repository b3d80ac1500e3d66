"""The gateway keeps nothing of a request. (`python -m benchmarks.bench_gateway --soak 100000` looks at the whole process.)"""

from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

import httpx

from tests.adapters.harness import policy
from tests.gateway.asking import CHAT, PATHS
from tests.gateway.gateway_process import gateway
from tests.gateway.raw_upstream import RawUpstream, chat_reply, whole


def held() -> int:
    """Bytes that are held by what our own code has made."""
    gc.collect()
    ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/maymust/*")])
    return sum(one.size for one in ours.statistics("filename"))


def test_memory_does_not_grow_with_the_number_of_requests() -> None:
    answer = whole(chat_reply("hm", ("refund", '{"amount": 5}'), ("search", '{"q": "x"}')))
    with RawUpstream(answer) as upstream, gateway(policy("refund_hidden"), upstream.url) as url, httpx.Client(trust_env=False) as client:

        def ask(count: int) -> None:
            for number in range(count):
                # Nothing is the same in two requests: names of tools and models, ids, texts.
                tool = {"type": "function", "function": {"name": f"tool_{count}_{number}", "parameters": {"type": "object"}}}
                body: dict[str, Any] = {**CHAT, "model": f"m{count}-{number}", "tools": [*CHAT["tools"], tool]}
                head = {"content-type": "application/json"}
                assert client.post(url + PATHS["chat"], content=json.dumps(body).encode(), headers=head).status_code == 200

        ask(140)  # fills what is kept up to a bound
        tracemalloc.start()
        try:
            ask(20)
            before = held()
            ask(128)
            grown = held() - before
        finally:
            tracemalloc.stop()
    assert grown < 400_000, grown

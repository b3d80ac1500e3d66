"""What the gateway costs beside a pass-through proxy of the same parts (starlette, uvicorn, httpx), in the same run.

python -m benchmarks.bench_gateway                      # latency and processor time at 50 connections, replies whole and streamed
python -m benchmarks.bench_gateway --soak 100000        # memory over so many requests

Upstream, proxy, gateway and client are processes of their own. The two ways take turns, so that both see the same machine. A model takes
time: the upstream answers after `--delay` seconds; `--delay 0` shows the bare cost of the proxies instead.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from maymust import ConditionalRequirement, Policy
from maymust.gateway import replies
from maymust.gateway.app import make_app
from maymust.gateway.client import Client
from maymust.gateway.options import Options
from maymust.gateway.served import Routes, Served
from maymust.gateway.server import _config, bind, settle
from maymust.gateway.upstream import Upstream, returned_headers, sent_headers

TICK = os.sysconf("SC_CLK_TCK")
_MOST = 10_000_000
NAMES = [f"tool_{number}" for number in range(20)]


def policy() -> Policy:
    """Ten rules over twenty tools."""
    rules: list[Any] = [ConditionalRequirement(name, only_after=[NAMES[0]], max_invocations=3) for name in NAMES[1:10]]
    return Policy([*rules, ConditionalRequirement("final_answer", only_after=[NAMES[0]])], tools=NAMES, final_answer_as_tool=False)


def request(*, stream: bool) -> bytes:
    """A conversation of some turns: about 20 KB."""
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": "what to look for " * 5}}, "required": ["q"]}
    tools = [{"type": "function", "function": {"name": name, "description": "does things " * 5, "parameters": schema}} for name in NAMES]
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief. " * 50}, {"role": "user", "content": "Where is my order?"}]
    for number in range(8):
        function = {"name": NAMES[number % 4], "arguments": json.dumps({"q": f"order {number}"})}
        call_id = f"call_{number}"
        messages.append({"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]})
        messages.append({"role": "tool", "tool_call_id": call_id, "content": "a result of some length " * 20})
    return json.dumps({"model": "gpt-5", "messages": messages, "tools": tools, "stream": stream}).encode()


def reply(*, stream: bool) -> tuple[bytes, bytes]:
    """Kind and body of the answer: a text and a call."""
    function = {"name": NAMES[5], "arguments": '{"q": "x"}'}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5"}
    if not stream:
        calls = [{"id": "c", "type": "function", "function": function}]
        message = {"role": "assistant", "content": "Let me see. " * 20, "tool_calls": calls}
        return b"application/json", json.dumps(
            {**head, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        ).encode()
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *[{"content": "word "}] * 30]
    deltas += [{"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]}]
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    return b"text/event-stream", b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events) + b"data: [DONE]\n\n"


def upstream(listening: socket.socket, delay: float) -> None:
    """The cheapest server there is: it answers by what the request asks for."""
    answers = {}
    for stream in (False, True):
        kind, body = reply(stream=stream)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n" % (kind, len(body))
        answers[stream] = head + body

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                body = await reader.readexactly(length)
                if delay:
                    await asyncio.sleep(delay)
                writer.write(answers[b'"stream": true' in body[-200:]])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, sock=listening)
        await server.serve_forever()

    asyncio.run(main())


class PassThrough:
    """A proxy that reads the body and hands everything on, made of the gateway's own parts."""

    def __init__(self, url: str) -> None:
        self._upstream = Upstream(url, read_timeout=60, connections=256)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand one request on."""
        parts = []
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        headers, client = sent_headers(scope["headers"]), Client(send)
        async with self._upstream.asked(scope["method"], scope["path"], b"", headers, b"".join(parts)) as response:
            returned = returned_headers(response.headers.raw)
            if response.headers["content-type"].startswith("text/event-stream"):
                await client.start(response.status_code, returned)
                async for piece in replies.pieces(response, _MOST):
                    await client.write(piece)
                await client.end()
            else:
                await client.whole(response.status_code, returned, await replies.body(response, _MOST))


def _serve(listening: socket.socket, url: str, kind: str) -> None:
    options = Options(upstream=url)
    if kind == "gateway":
        app: Any = make_app(options, Routes(Served("bench", policy())))
    else:
        app = Starlette(routes=[Mount("/", app=PassThrough(url))])
    settle()
    uvicorn.Server(_config(options, lambda: app)).run(sockets=[listening])


@contextmanager
def process(work: Callable[..., None], *given: Any) -> Iterator[tuple[str, SpawnProcess]]:
    """A process that listens."""
    with bind(Options(upstream="", port=0)) as listening:
        made = multiprocessing.get_context("spawn").Process(target=work, args=(listening, *given), daemon=True)
        made.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", made
        finally:
            made.terminate()
            made.join()


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident(pid: int) -> int:
    """Memory of a process in KiB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


async def load(url: str, body: bytes, count: int, connections: int) -> list[float]:
    """Send so many requests over so many connections; the seconds each took."""
    port = int(url.rpartition(":")[2])
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    data = head.encode() + body
    took: list[float] = []
    left = iter(range(count))

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in left:
            began = time.perf_counter()
            writer.write(data)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            if b"content-length:" in answer:
                await reader.readexactly(int(answer.split(b"content-length: ")[1].split(b"\r\n")[0]))
            else:
                await reader.readuntil(b"\r\n0\r\n\r\n")
            took.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    return took


def compare(count: int, connections: int, rounds: int, delay: float) -> None:
    """Print latency and processor time of both ways."""
    with (
        process(upstream, delay) as (source, _),
        process(_serve, source, "proxy") as (proxy, proxy_process),
        process(_serve, source, "gateway") as (gateway, gateway_process),
    ):
        ways = {"pass-through": (proxy, proxy_process.pid or 0), "gateway": (gateway, gateway_process.pid or 0)}
        print(f"{connections} connections, the model takes {delay * 1000:.0f} ms, {rounds} rounds of {count} requests each, taking turns")
        for stream in (False, True):
            body = request(stream=stream)
            latency: dict[str, list[float]] = {name: [] for name in ways}
            cpu: dict[str, list[float]] = {name: [] for name in ways}
            for url, _ in ways.values():
                asyncio.run(load(url, body, connections * 4, connections))
            for number in range(rounds * 2):
                # The order changes from round to round.
                for name, (url, pid) in list(ways.items())[:: 1 if number % 2 else -1]:
                    before = cpu_seconds(pid)
                    latency[name] += asyncio.run(load(url, body, count // 2, connections))
                    cpu[name].append((cpu_seconds(pid) - before) / (count // 2))
            _print("streamed" if stream else "whole", latency, cpu)


def _print(kind: str, latency: dict[str, list[float]], cpu: dict[str, list[float]]) -> None:
    for name, times in latency.items():
        median, mean, high = statistics.median(times), statistics.fmean(times), statistics.quantiles(times, n=100)[98]
        print(
            f"  {kind:9} {name:13} median {median * 1000:7.2f} ms  mean {mean * 1000:7.2f} ms  p99 {high * 1000:7.2f} ms  "
            f"processor {statistics.fmean(cpu[name]) * 1000:.2f} ms a request"
        )
    more = statistics.fmean(latency["gateway"]) / statistics.fmean(latency["pass-through"]) - 1
    extra = statistics.fmean(cpu["gateway"]) - statistics.fmean(cpu["pass-through"])
    print(f"  {kind:9} the gateway adds {more:+.1%} latency (mean) and {extra * 1000:.2f} ms processor time a request")


def soak(count: int, connections: int) -> None:
    """Print memory over many requests."""
    with process(upstream, 0.0) as (source, _), process(_serve, source, "gateway") as (url, made):
        bodies = [request(stream=False), request(stream=True)]
        began = time.monotonic()
        step = max(count // 20, 1)
        done = 0
        while done < count:
            asyncio.run(load(url, bodies[done // step % 2], step, connections))
            done += step
            print(f"{done:8} requests  {resident(made.pid or 0) / 1024:7.1f} MiB  {time.monotonic() - began:6.0f} s", flush=True)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--soak", type=int, metavar="N", help="memory over N requests instead")
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--delay", type=float, default=0.5, metavar="SECONDS", help="what the model takes (default: 0.5)")
    given = parser.parse_args()
    if given.soak:
        soak(given.soak, given.connections)
    else:
        compare(given.requests, given.connections, given.rounds, given.delay)


if __name__ == "__main__":
    main()

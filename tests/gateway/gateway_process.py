"""A gateway on loopback in a thread of its own, in front of any upstream."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from maymust import Policy
from maymust.gateway.app import make_app
from maymust.gateway.options import Options
from maymust.gateway.served import Route, Routes, Served
from maymust.gateway.server import _config, bind
from maymust.policyfile.gateway_terms import GatewayTerms

TERMS = GatewayTerms()


def options_for(upstream: str, **more: Any) -> Options:
    """Settings for tests: a free port, and little patience."""
    return Options(upstream=upstream, **{"port": 0, "read_timeout": 10.0, "timeout": 20.0, **more})


@contextmanager
def gateway(
    policy: Policy,
    upstream: str,
    *,
    terms: GatewayTerms | None = None,
    ways: tuple[Route, ...] = (),
    plain_server: bool = False,
    **more: Any,
) -> Iterator[str]:
    """The base URL of a gateway under this policy. `plain_server`: the application runs under uvicorn as anybody would run it."""
    routes = Routes(Served("test", policy, terms or GatewayTerms()), ways)
    options = options_for(upstream, **more)
    with bind(options) as listening, serving(make_app(options, routes), options, listening, plain=plain_server):
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def serving(app: Any, options: Options, listening: socket.socket, *, plain: bool = False) -> Iterator[None]:
    """Serve an application in a thread, with the gateway's own server settings."""
    server = uvicorn.Server(uvicorn.Config(app, http="h11", log_config=None) if plain else _config(options, lambda: app))
    started = threading.Event()

    async def main() -> None:
        task = asyncio.create_task(server._serve([listening]))
        while not server.started and not task.done():
            await asyncio.sleep(0.005)
        started.set()
        await task

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(10)

"""The application of one worker: the gateway, with `/healthz` and `/metrics` beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from maymust.gateway.approvals import Webhook
from maymust.gateway.gateway import Gateway
from maymust.gateway.metrics import Metrics
from maymust.gateway.options import Options
from maymust.gateway.parts import Parts
from maymust.gateway.served import Routes
from maymust.gateway.upstream import Upstream

_PAGES = ("/healthz", "/metrics")


def make_app(options: Options, routes: Routes) -> ASGIApp:
    """The application, for any ASGI server. Raises PolicyError for an upstream that is no URL."""
    upstream = Upstream(options.upstream, read_timeout=options.read_timeout, connections=options.max_requests)
    webhook = Webhook(token=options.approval_token, timeout=options.approval_timeout)
    metrics = Metrics()
    gateway = Gateway(Parts(options, routes, upstream, webhook, metrics))

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "policies": sorted({routes.default.name, *(way.served.name for way in routes.ways)})})

    async def counts(request: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await upstream.close()
        await webhook.close()

    pages = Starlette(routes=[Route("/healthz", health), Route("/metrics", counts)], lifespan=lifespan)

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        # Nearly every request is the gateway's, which needs no routes, and tells its errors itself.
        is_page = scope["type"] == "lifespan" or scope["path"] in _PAGES
        await (pages if is_page else gateway)(scope, receive, send)

    return front

"""The server of the page: runs as they go, and the playground."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from maymust.errors import PolicyError, missing

try:
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
    from starlette.routing import Route
    from starlette.types import ASGIApp
except ImportError as _fault:
    raise missing("maymust.web.server needs starlette", "web", _fault) from _fault

from maymust.core.tool_spec import FINAL_ANSWER
from maymust.explanation import LIMIT
from maymust.policyfile.write import dump_policy
from maymust.trace.compare import compare_runs
from maymust.trace.recording import RecordedTurn
from maymust.web.answers import MOST_STEPS
from maymust.web.cell import Explainer
from maymust.web.guard import Guard
from maymust.web.live import PAUSE, events
from maymust.web.page import content_policy, page
from maymust.web.shelf import Shelf
from maymust.web.worker import Worker

_MOST_BODY = 1024 * 1024
_MOST_LISTENERS = 64
_MOST_DIFFERENCES = 5_000


@dataclass
class Served:
    """What is served.

    shelf     the runs
    policy    the text of the policy that the playground begins with
    host      the address it listens at
    stopping  whether the server is about to end: open connections have to go
    """

    shelf: Shelf
    policy: str
    host: str = "127.0.0.1"
    stopping: Callable[[], bool] = lambda: False
    quick: Worker = field(default_factory=lambda: Worker(5.0))
    slow: Worker = field(default_factory=lambda: Worker(15.0))
    listeners: int = 0
    explaining: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))

    def app(self) -> ASGIApp:
        """The application, guarded."""
        routes = [
            Route("/", self.index),
            Route("/api/live", self.live),
            Route("/api/run", self.run),
            Route("/api/why", self.why),
            Route("/api/compare", self.compare),
            Route("/api/policy", self.policy_of),
            Route("/api/play", self.play, methods=["POST"]),
            Route("/api/findings", self.play, methods=["POST"]),
            Route("/api/play/why", self.play, methods=["POST"]),
            Route("/api/test", self.play, methods=["POST"]),
        ]
        inner = Starlette(routes=routes, lifespan=self._lifespan)
        return Guard(inner, host=self.host, policy=content_policy(served=True))

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.gather(self.quick.close(), self.slow.close())

    async def index(self, _: Request) -> Response:
        """The page."""
        await asyncio.gather(self.quick.start(), self.slow.start())
        names = await asyncio.to_thread(self.shelf.names)
        data = {"version": 1, "mode": "serve", "runs": [{"id": key, "name": name} for key, name in names], "policy": self.policy}
        return HTMLResponse(page(data, title="maymust", served=True))

    async def live(self, request: Request) -> Response:
        """A run and what becomes of it, as server-sent events."""
        key = request.query_params.get("run")
        follower = None if not key else self.shelf.get(key)
        if key and follower is None:
            return _refused(404, "there is no such run")
        if self.listeners >= _MOST_LISTENERS:
            return _refused(503, "too many pages listen")

        async def stream() -> AsyncIterator[bytes]:
            self.listeners += 1
            try:
                async for one in events(self.shelf, follower, self.stopping):
                    yield one
            finally:
                self.listeners -= 1

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def run(self, request: Request) -> Response:
        """A run as it is now."""
        follower = self.shelf.get(request.query_params.get("run", ""))
        if follower is None:
            return _refused(404, "there is no such run")
        await asyncio.to_thread(follower.refresh)
        news = await asyncio.to_thread(follower.news, None)
        return _refused(409, follower.problem or "the run has not begun") if news is None else _json(news[1])

    async def why(self, request: Request) -> Response:
        """More about one cell of a run."""
        follower = self.shelf.get(request.query_params.get("run", ""))
        recording = None if follower is None else follower.recording
        column, tool = request.query_params.get("column", ""), request.query_params.get("tool", "")
        if follower is None or recording is None or not (column.isascii() and column.isdecimal()) or int(column) >= len(recording.turns):
            return _refused(404, "there is no such column")
        turn: RecordedTurn = recording.turns[int(column)]
        if tool not in turn.permit.tools:
            return _refused(404, "there is no such tool")
        explainer = Explainer(follower.known.policy, 10.0, limit=LIMIT)
        async with self.explaining:
            said = await asyncio.to_thread(explainer.explained_cell, turn, tool)
        return _json(said)

    async def compare(self, request: Request) -> Response:
        """Where two runs differ."""
        found = [self.shelf.get(request.query_params.get(key, "")) for key in ("one", "other")]
        known = [follower for follower in found if follower is not None]
        for follower in known:
            await asyncio.to_thread(follower.refresh)
        recordings = [follower.recording for follower in known if follower.recording is not None]
        if len(recordings) < 2:
            return _refused(404, "there are no two such runs")
        differences = await asyncio.to_thread(compare_runs, *recordings)
        return _json([one.to_dict() for one in differences[:_MOST_DIFFERENCES]])

    async def policy_of(self, request: Request) -> Response:
        """The policy of a run as a text for the playground, and its calls, as far as it takes them."""
        follower = self.shelf.get(request.query_params.get("run", ""))
        if follower is None or follower.recording is None:
            return _refused(404, "there is no such run")
        if follower.known.policy is None:
            return _refused(409, "the policy of this run is not known, or it is Python code")
        try:
            text = dump_policy(follower.known.policy)
        except PolicyError as fault:
            return _refused(409, str(fault))
        known = {*follower.known.policy.tools, FINAL_ANSWER}
        words = [
            step.tool if step.outcome == "ok" else f"{step.tool}!{step.outcome}" for step in follower.recording.steps if step.tool in known
        ]
        return _json({"policy": text, "history": words[:MOST_STEPS], "left_out": list(follower.known.left_out)})

    async def play(self, request: Request) -> Response:
        """What the playground asks."""
        what = {"/api/play": "play", "/api/findings": "findings", "/api/play/why": "why", "/api/test": "test"}[request.url.path]
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _refused(415, "send JSON")
        try:
            body = await _body(request)
        except ClientDisconnect:
            return Response(status_code=400)
        if body is None:
            return _refused(413, f"more than {_MOST_BODY // 1024} KiB")
        try:
            said = json.loads(body)
        except (ValueError, RecursionError):
            return _refused(400, "this is no JSON")
        if not isinstance(said, dict) or not isinstance(said.get("policy"), str):
            return _refused(400, "send {policy: text, history: [...]}")
        return await self._answered(request, self.slow if what == "findings" else self.quick, {**said, "do": what})

    async def _answered(self, request: Request, worker: Worker, said: dict[str, Any]) -> Response:
        """The answer of a process, unless whoever asked has gone, or the server is about to."""
        asking = asyncio.create_task(worker.ask(said))
        while not (await asyncio.wait([asking], timeout=PAUSE))[0]:
            if self.stopping() or await request.is_disconnected():
                asking.cancel()
                await asyncio.wait([asking])
                return _refused(503, "nobody waits for it")
        return _json(asking.result())


async def _body(request: Request) -> bytes | None:
    """The body, None when it is too long."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > _MOST_BODY:
            return None
    return content


def _json(data: Any) -> Response:
    """In ASCII: a run may hold halves of characters, which have no form in UTF-8."""
    return Response(json.dumps(data, separators=(",", ":")), media_type="application/json")


def _refused(status: int, text: str) -> Response:
    return PlainTextResponse(text, status_code=status)

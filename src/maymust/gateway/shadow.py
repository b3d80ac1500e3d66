"""`--shadow`: everything passes as it is, and what would have been done is only told."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Any

from maymust.core.permit import Permit
from maymust.gateway import replies
from maymust.gateway.approvals import closed_tools
from maymust.gateway.checkpoint import Checkpoint, Verdict
from maymust.gateway.client import Client
from maymust.gateway.conversation import Asked, Reply
from maymust.gateway.dialect import Dialect
from maymust.gateway.parts import Incoming, Parts
from maymust.gateway.raw_json import read_object, read_once
from maymust.gateway.rejected import Rejected
from maymust.gateway.served import Served
from maymust.gateway.shape import shape
from maymust.gateway.sse import Splitter
from maymust.gateway.steps import read_story
from maymust.gateway.upstream import returned_headers, sent_headers

log: logging.Logger = logging.getLogger(__name__)


class Shadow:
    """One request that passes as it is."""

    def __init__(self, parts: Parts, served: Served, dialect: Dialect, incoming: Incoming, client: Client) -> None:
        self.outcome: str = "passed"
        self._parts = parts
        self._served = served
        self._dialect = dialect
        self._incoming = incoming
        self._client = client
        self._asking: list[str] = []

    async def run(self) -> None:
        """Hand the request on, and its reply back. Raises Rejected when the upstream cannot be reached."""
        incoming = self._incoming
        checkpoint = await self._checkpoint()
        headers = sent_headers(incoming.headers)
        kept: list[bytes] = []
        async with self._parts.upstream.asked(incoming.method, incoming.path, incoming.query, headers, incoming.body) as response:
            self.outcome = "passed" if response.status_code < 400 else "upstream_error"
            await self._client.start(response.status_code, returned_headers(response.headers.raw))
            async for piece in replies.pieces(response, self._parts.options.max_reply):
                kept.append(piece)
                await self._client.write(piece)
            await self._client.end()
        if checkpoint is not None and response.status_code < 300:
            await self._judge(checkpoint, replies.kind(response), b"".join(kept))

    async def _checkpoint(self) -> Checkpoint | None:
        """What would be done with the request; None where it would be rejected."""
        try:
            raw = read_object(self._incoming.body)
            asked = self._dialect.ask(raw, self._served.known)
            story = read_story(asked.past, self._served.terms)
            if story.gaps and self._served.terms.on_truncated == "refuse":
                raise Rejected(400, "truncated", "; ".join(story.gaps[:3]))
            checkpoint = Checkpoint(self._served, asked, story, self._ask_nobody, now=time.time())
            closed = closed_tools(self._served, checkpoint.permit)
            shaped = shape(self._dialect, asked, self._incoming.body, checkpoint, closed, ())
            self._tell("change" if shaped.body != self._incoming.body else "pass", self._request_of(asked, checkpoint))
            return checkpoint
        except Rejected as rejected:
            self._tell("reject", {"fault": rejected.fault, "why": rejected.message})
        except Exception:
            # Whatever it is, nobody's request may fail because somebody looks on.
            log.exception("shadow: the request could not be judged")
        return None

    async def _ask_nobody(self, call: Mapping[str, Any], permit: Permit, memories: Any) -> str | None:
        self._asking.append(call["name"])
        return None

    async def _judge(self, checkpoint: Checkpoint, kind: str, data: bytes) -> None:
        try:
            reply = self._reply(kind, data)
            if reply is None:
                return
            verdict = await checkpoint.judge(reply)
            told = self._verdict_of(reply, verdict)
            if told:
                self._tell("refuse_text" if not reply.calls else "refuse_call" if verdict.refused else "ask", told)
        except Exception:
            log.exception("shadow: the reply could not be judged")

    def _reply(self, kind: str, data: bytes) -> Reply | None:
        if kind == "text/event-stream":
            splitter = Splitter()
            events = splitter.feed(data)
            reply, whole = self._dialect.stream(self._served.known).read([*events, splitter.rest] if splitter.rest else events)
            return reply if whole else None
        answer = read_once(data.decode("utf-8"))
        return None if answer is None else self._dialect.read_reply(answer, self._served.known)

    def _request_of(self, asked: Asked, checkpoint: Checkpoint) -> dict[str, Any]:
        permit = checkpoint.permit
        return {"allowed": list(permit.allowed), "choice": permit.tool_choice, "may_stop": permit.may_stop}

    def _verdict_of(self, reply: Reply, verdict: Verdict) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if verdict.refused:
            told["refused"] = {call.name: verdict.refused[call.place] for call in reply.calls if call.place in verdict.refused}
        if verdict.answers.nudge:
            told["text"] = verdict.answers.nudge
        if self._asking:
            told["ask"] = self._asking
        return told

    def _tell(self, would: str, what: Mapping[str, Any]) -> None:
        self._parts.metrics.would(self._served.name, would)
        told = json.dumps({"policy": self._served.name, "would": would, **what})
        log.log(logging.DEBUG if would == "pass" else logging.INFO, "shadow %s", told)

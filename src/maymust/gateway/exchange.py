"""One request of a client from its beginning to its end: shaped, asked, checked, asked again, answered."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import httpx

from maymust.gateway import replies
from maymust.gateway.approvals import Approver, closed_tools
from maymust.gateway.checkpoint import Checkpoint
from maymust.gateway.client import Client
from maymust.gateway.conversation import Asked
from maymust.gateway.dialect import Dialect
from maymust.gateway.parts import Incoming, Parts
from maymust.gateway.raw_json import read_once
from maymust.gateway.rejected import Rejected
from maymust.gateway.served import Served
from maymust.gateway.shape import Shaped, shape
from maymust.gateway.steps import read_story
from maymust.gateway.streaming import Streaming
from maymust.gateway.upstream import returned_headers, sent_headers
from maymust.models.refusals import refused_ability

_LONGEST_ERROR = 1024 * 1024


class Exchange:
    """One request. `outcome` is how it ended, in a word of the metrics."""

    def __init__(self, parts: Parts, served: Served, dialect: Dialect, incoming: Incoming, asked: Asked, client: Client) -> None:
        self.outcome: str = "passed"
        self.streaming: Streaming = Streaming(dialect.stream(served.known), client, parts.options.max_reply)
        self._parts = parts
        self._served = served
        self._dialect = dialect
        self._incoming = incoming
        self._asked = asked
        self._client = client
        self._warnings: tuple[str, ...] = ()
        self.checkpoint: Checkpoint | None = None

    async def run(self) -> None:
        """Get the client a reply that the rules allow. Raises Rejected."""
        story = read_story(self._asked.past, self._served.terms)
        if story.gaps:
            self._note_gaps(story.gaps)
        approve = Approver(self._served, self._parts.webhook, self._asked.model)
        checkpoint = Checkpoint(self._served, self._asked, story, approve, most=self._parts.options.asks, now=time.time())
        self.checkpoint = checkpoint
        while not await self._ask(checkpoint):
            self.outcome = "changed"

    def _note_gaps(self, gaps: Sequence[str]) -> None:
        if self._served.terms.on_truncated == "refuse":
            why = "; ".join(gaps[:3])
            raise Rejected(
                400, "truncated", f"{why}. Rules need the whole run: send it all, or set `on_truncated: warn` in the policy file"
            )
        self._warnings = tuple(gaps)

    async def _ask(self, checkpoint: Checkpoint) -> bool:
        """Ask the model once. True when the client has its reply."""
        parts, asked, dialect = self._parts, self._asked, self._dialect
        closed = closed_tools(self._served, checkpoint.permit)
        shaped = shape(dialect, asked, self._incoming.body, checkpoint, closed, parts.lost.of(dialect.name, asked.model))
        asked.forget()
        incoming = self._incoming
        headers = sent_headers(incoming.headers)
        async with parts.upstream.asked(incoming.method, incoming.path, incoming.query, headers, shaped.body) as response:
            if response.status_code >= 300:
                return await self._not_a_reply(response, shaped)
            checkpoint.asks += 1
            kind = replies.kind(response)
            if kind == "text/event-stream":
                head = (response.status_code, self._headers(response, checkpoint, shaped))
                done = await self.streaming.take(response, checkpoint, head)
                self.outcome = "changed" if self.streaming.changed else self.outcome
                return done
            if kind == "application/json" and not self._client.started:
                return await self._whole(response, checkpoint, shaped)
            raise Rejected(502, "upstream", f"the upstream sent {kind or 'something without a type'}, which cannot be judged")

    async def _not_a_reply(self, response: httpx.Response, shaped: Shaped) -> bool:
        """Hand on an error of the upstream, unless it says that the model does not take what the gateway has added."""
        if response.status_code < 400:
            where = response.headers.get("location", "elsewhere")
            raise Rejected(502, "upstream", f"the upstream redirects to {where}, where nothing would be checked; give that as the upstream")
        data = await replies.body(response, _LONGEST_ERROR)
        if response.status_code == 400 and shaped.encoding is not None and shaped.capabilities is not None:
            ability = refused_ability(data.decode("utf-8", "replace"), shaped.encoding, shaped.capabilities)
            known = self._parts.lost.of(self._dialect.name, self._asked.model)
            if ability is not None and ability not in known and shaped.body != self._incoming.body:
                self._parts.lost.add(self._dialect.name, self._asked.model, ability)
                return False
        if self._client.started:
            raise Rejected(502, "upstream", f"the model was asked again, and the upstream answered with status {response.status_code}")
        self.outcome = "upstream_error"
        await self._client.whole(response.status_code, returned_headers(response.headers.raw), data)
        return True

    async def _whole(self, response: httpx.Response, checkpoint: Checkpoint, shaped: Shaped) -> bool:
        """Judge a reply in one piece."""
        data = await replies.body(response, self._parts.options.max_reply)
        try:
            answer = read_once(data.decode("utf-8"))
            if answer is None:
                raise ValueError("it is no JSON object, or one that could be read in two ways")
            reply = self._dialect.read_reply(answer, self._served.known)
        except ValueError as error:
            raise Rejected(502, "upstream", f"the reply cannot be judged: {error}") from error
        verdict = await checkpoint.judge(reply)
        if not verdict.legal:
            checkpoint.again(reply, verdict)
            return False
        if verdict.refused:
            self.outcome = "changed"
            try:
                data = json.dumps(self._dialect.without(answer, verdict.refused), allow_nan=False).encode()
            except ValueError:
                raise Rejected(502, "upstream", "the reply has a number that is too large to be written again") from None
        await self._client.whole(response.status_code, self._headers(response, checkpoint, shaped), data)
        return True

    def _headers(self, response: httpx.Response, checkpoint: Checkpoint, shaped: Shaped) -> list[tuple[bytes, bytes]]:
        """Those of the response, with what the gateway has done."""
        headers = [pair for pair in returned_headers(response.headers.raw) if not pair[0].startswith(b"x-maymust-")]
        said = (
            (b"x-maymust-policy", self._served.name),
            (b"x-maymust-asks", str(checkpoint.asks)),
            (b"x-maymust-refused", str(checkpoint.refusals) if checkpoint.refusals else ""),
            (b"x-maymust-enforced-by", shaped.encoding.enforced_by if shaped.encoding is not None else ""),
            (b"x-maymust-overruled", "tool_choice" if shaped.overruled else ""),
            (b"x-maymust-unmet", ", ".join(checkpoint.unmet)),
            (b"x-maymust-warning", "; ".join(self._warnings[:3])),
        )
        headers += [(key, _header_text(value)) for key, value in said if value]
        return headers


def _header_text(value: str) -> bytes:
    """A text that may stand in a header."""
    if not value.isprintable():
        value = "".join(mark if mark.isprintable() else " " for mark in value)
    return value.encode("ascii", "backslashreplace")[:500]

"""Asking about a call: handlers of the policy first, then the webhook. Whatever goes wrong there, the call stays closed."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import httpx

from maymust.adapters.questions import Memories, Questions
from maymust.agent.call_record import PendingCall
from maymust.core.permit import Permit
from maymust.gateway.served import Served
from maymust.requirements.permission import Decision

log: logging.Logger = logging.getLogger(__name__)

_LONGEST = 65_536
_JSON = {"content-type": "application/json"}


class Webhook:
    """Posts a question as JSON, and reads `{"allow": true|false, "reason": "..."}`.

    token    sent as `Authorization: Bearer`, None for none
    timeout  seconds that a person has
    """

    def __init__(self, *, token: str | None = None, timeout: float = 300.0) -> None:
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._timeout = httpx.Timeout(10.0, read=timeout)
        self._client: httpx.AsyncClient | None = None

    async def ask(self, url: str, question: Mapping[str, Any]) -> Decision:
        """The decision. A no, with the reason, when there is none."""
        try:
            # In ASCII: what a model writes may have no form in UTF-8.
            async with self._opened().stream("POST", url, content=json.dumps(dict(question)), headers=_JSON) as response:
                data = b""
                async for chunk in response.aiter_bytes():
                    data += chunk
                    if len(data) > _LONGEST:
                        return _no("the approval service sent too much", question)
            if response.status_code != 200:
                return _no(f"the approval service answered with status {response.status_code}", question)
            said = json.loads(data)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return _no(f"the approval service did not answer ({type(error).__name__})", question)
        except (ValueError, RecursionError):
            return _no("the approval service did not answer with JSON", question)
        if not isinstance(said, dict) or not isinstance(said.get("allow"), bool):
            return _no('the approval service did not answer with {"allow": true} or {"allow": false}', question)
        reason = said.get("reason")
        return Decision(said["allow"], reason=reason if isinstance(reason, str) else None)

    def _opened(self) -> httpx.AsyncClient:
        # Most gateways never ask; a client takes its time to read certificates.
        if self._client is None:
            self._client = httpx.AsyncClient(headers=self._headers, timeout=self._timeout, follow_redirects=False)
        return self._client

    async def close(self) -> None:
        """Close its connections."""
        if self._client is not None:
            await self._client.aclose()


def _no(why: str, question: Mapping[str, Any]) -> Decision:
    log.warning("%s: %s, so the call stays closed", question.get("tool"), why)
    return Decision(False, reason=why)


class Approver:
    """Whoever has to agree to the calls of one request. `model` is the model that was asked."""

    def __init__(self, served: Served, webhook: Webhook, model: str) -> None:
        self._served = served
        self._webhook = webhook
        self._model = model

    @cached_property
    def _questions(self) -> Questions:
        """Made for the first question: most requests have none."""
        return Questions(self._served.policy)

    async def __call__(self, call: Mapping[str, Any], permit: Permit, memories: Memories) -> str | None:
        """None after a yes, the text for the model after a no."""
        try:
            no, left = await self._questions.ask(call, permit, memories)
        except Exception as error:
            # A handler is the author's own code.
            log.exception("the question about %s could not be asked", call["name"])
            return f"not now: the question about {call['name']} could not be asked ({type(error).__name__})"
        if no is not None or left is None:
            return no
        url = self._served.terms.approvals
        if url is None:
            return f"not now: a person has to agree to {left.tool}, and nobody can be asked here"
        decision = await self._webhook.ask(url, {**_told(left), "policy": self._served.name, "model": self._model})
        return self._questions.settle(left, decision, memories)


def _told(call: PendingCall) -> dict[str, Any]:
    return {
        "call_id": call.call_id,
        "tool": call.tool,
        "arguments": dict(call.arguments),
        "requirements": list(call.requirements),
        "reasons": list(call.reasons),
    }


def closed_tools(served: Served, permit: Permit) -> frozenset[str]:
    """Tools that somebody has to agree to whatever the arguments are, and nobody can be asked about: offering them would be in vain."""
    if served.terms.approvals is not None or not permit.asks:
        return frozenset()
    sources = {one.name: one for one in served.policy.requirements}
    found = set()
    for name in permit.asks:
        always = (by for by, when in permit.questions(name) if when is True)
        if any(getattr(sources.get(by), "handler", None) is None and not _may_excuse(sources.get(by)) for by in always):
            found.add(name)
    return frozenset(found)


def _may_excuse(requirement: Any) -> bool:
    """Whether a requirement may waive its question once it sees the arguments."""
    return callable(getattr(requirement, "excuses", None))

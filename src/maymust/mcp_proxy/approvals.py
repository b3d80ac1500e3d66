"""Asking the person at the client about a call by elicitation: by a request, or where there are none, by having the call sent again."""

from __future__ import annotations

import json
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maymust.agent.call_record import PendingCall
from maymust.mcp_proxy.messages import ELICIT, INPUT_REQUIRED, plain
from maymust.mcp_proxy.peer import Faulted, Peer
from maymust.requirements.permission import Decision

_KEY = "maymust"
_STATE = "maymust:"
_KEPT = 256
_LONGEST = 4000


def can_ask(capabilities: Any) -> bool:
    """Whether a client with these capabilities shows forms to a person."""
    found = capabilities.get("elicitation") if isinstance(capabilities, Mapping) else None
    return isinstance(found, Mapping) and (not found or "form" in found)


def form(call: PendingCall) -> dict[str, Any]:
    """The question. Accepting is the yes, so there is nothing to fill in."""
    arguments = json.dumps(call.arguments, ensure_ascii=False, indent=1)
    if len(arguments) > _LONGEST:
        arguments = f"{arguments[:_LONGEST]}… ({len(arguments)} characters in all)"
    why = f"\n\n{'; '.join(call.reasons)}" if call.reasons else ""
    return {"message": plain(f"Allow this call of {call.tool}?\n{arguments}{why}"), "requestedSchema": {"type": "object", "properties": {}}}


def decision(result: Any) -> Decision:
    """What a person has said. Everything but a clear yes is a no."""
    action = result.get("action") if isinstance(result, Mapping) else None
    if action == "accept":
        return Decision(True)
    return Decision(False, None if action == "decline" else "the question was not answered")


async def ask(client: Peer, call: PendingCall) -> Decision:
    """Ask by a request to the client, in the era with a handshake. Raises Gone."""
    try:
        return decision(await client.ask(ELICIT, form(call)))
    except Faulted as fault:
        return Decision(False, f"the client could not ask: {fault}")


@dataclass(frozen=True, slots=True)
class Held:
    """A call that is to be sent again. Another one does not get its answer."""

    name: str
    arguments: str


class Rounds:
    """Calls that come in several rounds: each is sent again, with answers and with the `requestState` that was given along.

    A question of the proxy's is answered once; a person's yes holds for the further rounds that the server wants of the same call.
    """

    def __init__(self) -> None:
        self._asked: OrderedDict[str, Held] = OrderedDict()
        self._approved: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    def ask(self, call: PendingCall, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A result that lets the client ask, and send the call again."""
        state = f"{_STATE}{secrets.token_urlsafe(16)}"
        self._asked[state] = Held(call.tool, _text(arguments))
        while len(self._asked) > _KEPT:
            self._asked.popitem(last=False)
        question = {"method": ELICIT, "params": {"mode": "form", **form(call)}}
        return {"resultType": INPUT_REQUIRED, "inputRequests": {_KEY: question}, "requestState": state}

    def answer(self, params: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> Decision | None:
        """The answer that comes with a call, if it is one to a question about this very call. It counts once."""
        state = params.get("requestState")
        if not isinstance(state, str) or not state.startswith(_STATE):
            return None
        held = self._asked.pop(state, None)
        if held != Held(name, _text(arguments)):
            return None
        responses = params.get("inputResponses")
        return decision(responses.get(_KEY) if isinstance(responses, Mapping) else None)

    def cleared(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters without what was meant for the proxy."""
        state = params.get("requestState")
        if isinstance(state, str) and state.startswith(_STATE):
            return {key: value for key, value in params.items() if key not in ("requestState", "inputResponses")}
        return dict(params)

    def approve(self, result: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> None:
        """The server wants another round of a call that a person has agreed to."""
        self._approved[name, _text(arguments), str(result.get("requestState"))] = None
        while len(self._approved) > _KEPT:
            self._approved.popitem(last=False)

    def is_approved(self, params: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether this is such another round. It counts once."""
        key = name, _text(arguments), str(params.get("requestState"))
        return "inputResponses" in params and self._approved.pop(key, self) is None


def _text(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True, default=repr)

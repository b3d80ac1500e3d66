"""Calls of tools, from the client to the server and back."""

from __future__ import annotations

import asyncio
import itertools
import logging
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.types import INVALID_PARAMS, CallToolResult, JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId

from maymust.core.step import Outcome
from maymust.errors import MaymustError, ToolError
from maymust.mcp_proxy import approvals
from maymust.mcp_proxy.approvals import Rounds
from maymust.mcp_proxy.messages import CAPABILITIES_KEY, INPUT_REQUIRED, envelope_of, failure, meta_of, refused, request, response
from maymust.mcp_proxy.peer import Faulted, Gone
from maymust.tools.mcp_results import value_of

if TYPE_CHECKING:
    from maymust.mcp_proxy.relay import Relay

log: logging.Logger = logging.getLogger(__name__)

_NO_ELICITATION = "this client cannot ask one (it has no elicitation)"


@dataclass(slots=True)
class _Call:
    """A call under way. `call_id` is the proxy's own, for a client may use an id again."""

    call_id: str
    request: JSONRPCRequest
    task: asyncio.Task[None] | None = None
    is_sent: bool = False

    @property
    def params(self) -> dict[str, Any]:
        return self.request.params or {}

    @property
    def name(self) -> str:
        return str(self.params.get("name"))

    @property
    def arguments(self) -> dict[str, Any]:
        found = self.params.get("arguments")
        return found if isinstance(found, dict) else {}


class Calls:
    """The calls of one client."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._rounds = Rounds()
        self._numbers = itertools.count(1)
        self._open: dict[RequestId, _Call] = {}

    @property
    def ids(self) -> tuple[RequestId, ...]:
        """The ids of the calls that are under way."""
        return tuple(self._open)

    def knows(self, id: RequestId) -> bool:
        """Whether a call with this id is under way."""
        return id in self._open

    def begin(self, request: JSONRPCRequest) -> None:
        """Take a call; what comes of it is sent to the client."""
        call = self._open[request.id] = _Call(f"call-{next(self._numbers)}", request)
        call.task = self._relay.spawn(self._bring_through, call)

    def cancel(self, id: RequestId) -> bool:
        """The client takes a call back. True when the server has it already."""
        call = self._open.pop(id)
        if call.task is not None:
            call.task.add_done_callback(lambda _: self._relay.spawn(self._relay.announce))
            call.task.cancel()
        return call.is_sent

    async def _bring_through(self, call: _Call) -> None:
        relay = self._relay
        try:
            answer = await self._answer(call)
        except asyncio.CancelledError:
            if call.is_sent:
                # What runs may still take effect.
                relay.session.leave(call.call_id, Outcome.FAILED)
            else:
                relay.session.withdraw(call.call_id)
            raise
        except Gone:
            raise
        except Exception as fault:
            # A handler that raises, say: the call stays closed.
            relay.session.withdraw(call.call_id)
            said = str(fault) if isinstance(fault, MaymustError) else f"a rule or a handler raised {type(fault).__name__}"
            if isinstance(fault, Faulted):
                said = "the server does not list its tools"
            log.error("%r was not called: %s%s", call.name[:80], said, "" if isinstance(fault, MaymustError | Faulted) else place_of(fault))
            answer = refused(call.request, f"not now: {said}")
        finally:
            if self._open.get(call.request.id) is call:
                del self._open[call.request.id]
        try:
            await relay.announce()
        finally:
            await relay.client.send(answer)

    async def _answer(self, call: _Call) -> JSONRPCResponse | JSONRPCError:
        """What the client gets: the server's answer as it is, or a refusal."""
        relay = self._relay
        arguments = call.params.get("arguments")
        if not isinstance(call.params.get("name"), str) or not (arguments is None or isinstance(arguments, dict)):
            # What cannot be judged is not passed on, whatever the server would make of it.
            return failure(call.request.id, "a call has the name of a tool, and an object of arguments", INVALID_PARAMS)
        await relay.ready(call.request)
        relay.session.begin(relay.catalog.present)
        why, asks = await relay.session.admit(call.call_id, call.name, call.arguments)
        if why is not None:
            log.warning("a call of %r was refused", call.name[:80])
            return refused(call.request, why)
        approved = False
        if asks:
            answer = await self._ask(call)
            if answer is not None:
                return answer
            approved = True
        call.is_sent = True
        return self._settled(call, await relay.forward(self._plain(call)), approved=approved)

    def _plain(self, call: _Call) -> JSONRPCRequest:
        """The call as the server gets it: not as a task, and without answers that were meant for the proxy."""
        params = {key: value for key, value in self._rounds.cleared(call.params).items() if key != "task"}
        return request(call.request.id, call.request.method, params)

    async def _ask(self, call: _Call) -> JSONRPCResponse | None:
        """Have somebody asked. None after a yes."""
        relay, session = self._relay, self._relay.session
        if self._rounds.is_approved(call.params, call.name, call.arguments):
            return None
        why, pending = await session.question(call.call_id, call.name, call.arguments)
        if why is None and pending is None:
            return None
        if pending is not None:
            modern = bool(envelope_of(call.request))
            answer = self._rounds.answer(call.params, call.name, call.arguments)
            capabilities = meta_of(call.request).get(CAPABILITIES_KEY) if modern else relay.capabilities
            if answer is None and not approvals.can_ask(capabilities):
                session.leave(call.call_id, Outcome.REFUSED)
                said = f" ({'; '.join(pending.reasons)})" if pending.reasons else ""
                return refused(call.request, f"not now: {call.name} needs a person's yes{said}, and {_NO_ELICITATION}")
            if answer is None and modern:
                # It comes again with the answer, and is judged again then.
                session.leave(call.call_id, Outcome.REFUSED)
                return response(call.request.id, self._rounds.ask(pending, call.arguments))
            why = session.settle(pending, answer if answer is not None else await approvals.ask(relay.client, pending))
        if why is None:
            return None
        session.leave(call.call_id, Outcome.DENIED)
        return refused(call.request, why)

    def _settled(self, call: _Call, answer: JSONRPCResponse | JSONRPCError, *, approved: bool) -> JSONRPCResponse | JSONRPCError:
        """Note how a call came back."""
        session = self._relay.session
        if isinstance(answer, JSONRPCError):
            session.leave(call.call_id, Outcome.FAILED)
        elif answer.result.get("resultType") == INPUT_REQUIRED:
            # It has not come back yet: it is sent once more, with what the server wants to know.
            session.leave(call.call_id, Outcome.REFUSED)
            if approved:
                self._rounds.approve(answer.result, call.name, call.arguments)
        else:
            tool = self._relay.catalog.tools.get(call.name, {})
            outcome, output = _came_back(answer.result, tool.get("outputSchema"))
            session.leave(call.call_id, outcome, output)
        return answer


def place_of(fault: BaseException) -> str:
    """Where a fault comes from, for a log in which its text has no place."""
    frames = traceback.extract_tb(fault.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _came_back(result: Mapping[str, Any], output_schema: Any) -> tuple[Outcome, Any]:
    """The outcome of a call, and its value for the rules."""
    if result.get("isError"):
        return Outcome.FAILED, None
    try:
        return Outcome.OK, value_of(CallToolResult.model_validate(result, by_name=False), output_schema)
    except ToolError:
        return Outcome.FAILED, None
    except ValueError:
        # Blocks of a kind that is not known here; the client may know it.
        return Outcome.OK, None

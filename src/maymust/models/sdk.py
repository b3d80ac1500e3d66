"""What the adapters over official SDKs have in common: clients, attempts, and the way down when a provider refuses something."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import uuid
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maymust.models.capabilities import Capabilities
from maymust.models.chat_model import CallDelta, Lost, ModelDelta, ModelReply, ModelRequest, TextDelta, Usage
from maymust.models.encode import Encoding, encode
from maymust.models.failures import FailureKind, MissingExtra, ModelFailure, OutputError
from maymust.models.message import Message, ToolCall
from maymust.models.plain import read_output
from maymust.models.refusals import refused_ability
from maymust.models.structured import NotACall

log: logging.Logger = logging.getLogger(__name__)

RETRIES = 3
TIMEOUT = 600.0


def sdk(module: str, extra: str) -> Any:
    """The SDK, imported when it is needed. Raises MissingExtra that names the line to type."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise MissingExtra(f"this model needs the {module} package: pip install 'maymust[{extra}]' ({problem})") from problem


class Clients:
    """The client a model was given, or one client for each event loop: connections belong to the loop that opened them."""

    def __init__(self, given: Any, make: Callable[[], Any]) -> None:
        self._given, self._make = given, make
        self._made: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = weakref.WeakKeyDictionary()

    def get(self) -> Any:
        """The client for the running event loop."""
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        if loop not in self._made:
            self._made[loop] = self._make()
        return self._made[loop]

    async def close(self) -> None:
        """Close the client that was made for the running event loop; one that was given is its owner's to close."""
        made = self._made.pop(asyncio.get_running_loop(), None)
        if made is not None:
            await made.close()


@dataclass(frozen=True, slots=True)
class Asked:
    """One attempt as an adapter sees it: the request, how it is encoded, and what the model can still be told."""

    request: ModelRequest
    encoding: Encoding
    capabilities: Capabilities


class SdkModel:
    """Base of the adapters. An adapter says how a body is written (`_body`), sent (`_send`), and read (`_read`, `_deltas`).

    The SDK tries again after 408, 409, 429, 5xx and lost connections, and heeds `retry-after`; how often is the client's
    `max_retries`. A 400 that says that something is not supported is answered here: the request is made one level lower.
    """

    provider = ""
    key_variable = ""
    """The variable of the environment in which the SDK looks for a key."""

    def __init__(self, model: str, capabilities: Capabilities, clients: Clients, thinking: bool | None = None) -> None:
        if thinking is not None:
            capabilities = replace(capabilities, thinks=thinking)
        self._model, self._capabilities, self._clients = model, capabilities, clients

    @property
    def name(self) -> str:
        """The provider and the model, such as "openai:gpt-5"."""
        return f"{self.provider}:{self._model}"

    @property
    def capabilities(self) -> Capabilities:
        """What the model can be told about tools, by the table or as given."""
        return self._capabilities

    async def aclose(self) -> None:
        """Close the connections that this model has opened in the running event loop."""
        await self._clients.close()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The whole reply. Raises ModelFailure; OutputError for a second output that is no call, where the output has to be one."""
        lost: tuple[Lost, ...] = ()
        spent, objected = Usage(), False
        while True:
            asked = self._asked(request, lost)
            try:
                raw = await self._send(self._client(), self._body(asked), stream=False)
                reply = _finished(self._read(await _parsed(raw), asked), asked, lost, raw.retries_taken)
            except ModelFailure:
                raise
            except Exception as problem:
                lost = (*lost, self._lost(problem, asked, lost))
                continue
            try:
                return replace(_settled(reply, asked.encoding), usage=spent + reply.usage)
            except NotACall as fault:
                spent += reply.usage
                if objected:
                    said = f"the model {self.name} gave no usable output in two attempts: {fault}; shorten the tool's schema"
                    raise OutputError(said, output=reply.text, usage=spent) from None
                log.warning("%s: an output was not usable, asking once more: %s", self.name, fault)
                request, objected = _objecting(request, reply.text, str(fault)), True

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        """Deltas as they come; the last item is the whole reply. Raises ModelFailure, also for a stream that is cut off.

        Where the output has to be a call it comes in one piece: it is checked whole before any of it is passed on.
        """
        lost: tuple[Lost, ...] = ()
        while True:
            asked = self._asked(request, lost)
            if asked.encoding.level == 5:
                whole = await self.complete(replace(request, lost=(*request.lost, *(one.ability for one in lost))))
                for delta in _in_one_piece(whole):
                    yield delta
                yield replace(whole, lost=(*lost, *whole.lost), usage=whole.usage + Usage(requests=len(lost)))
                return
            try:
                raw = await self._send(self._client(), self._body(asked), stream=True)
                break
            except ModelFailure:
                raise
            except Exception as problem:
                lost = (*lost, self._lost(problem, asked, lost))
        events, reply = await _parsed(raw), ModelReply()
        try:
            # To the end, also after the reply: an iteration that is left early has to be cleaned up by the event loop.
            async for item in self._deltas(events, asked):
                if isinstance(item, ModelReply):
                    reply = item
                else:
                    yield item
        except ModelFailure:
            raise
        except Exception as problem:
            if not _theirs(problem):
                raise
            raise self._failure(problem, lost, raw.retries_taken + 1) from problem
        finally:
            await events.close()
        yield _finished(reply, asked, lost, raw.retries_taken)

    def _asked(self, request: ModelRequest, lost: tuple[Lost, ...]) -> Asked:
        capabilities = self._capabilities.without((*request.lost, *(one.ability for one in lost)))
        return Asked(request, encode(request, capabilities), capabilities)

    def _lost(self, problem: Exception, asked: Asked, lost: tuple[Lost, ...]) -> Lost:
        """What has to be done without from now on. Raises ModelFailure when the problem is another one; our own faults as they are."""
        if _has_no_key(problem):
            raise self._keyless(problem) from problem
        if not _theirs(problem):
            raise problem
        said = str(problem)
        ability = refused_ability(said, asked.encoding, asked.capabilities) if getattr(problem, "status_code", None) in (400, 422) else None
        if ability is None or ability in (one.ability for one in lost):
            raise self._failure(problem, lost, _attempts(problem, self._clients)) from problem
        log.warning("%s does not take %s, so the run goes on without it: %s", self.name, ability, said)
        return Lost(ability, said)

    def _client(self) -> Any:
        """The client for this event loop. Raises ModelFailure when the SDK makes none, which is how it says that there is no key."""
        try:
            return self._clients.get()
        except Exception as problem:
            if not _theirs(problem):
                raise
            raise self._keyless(problem) from problem

    def _keyless(self, problem: Exception) -> ModelFailure:
        said = f"the model {self.name} cannot be asked without credentials: set {self.key_variable}, or give the model api_key="
        return ModelFailure(f"{said} ({problem})", kind="credentials", attempts=0)

    def _failure(self, problem: Exception, lost: tuple[Lost, ...], attempts: int) -> ModelFailure:
        kind = failure_kind(problem)
        what = _WHAT[kind].format(address=_address(self._clients.get()))
        return ModelFailure(f"the model {self.name} gave no reply ({what}): {problem}", kind=kind, attempts=attempts + len(lost), lost=lost)

    # --- what an adapter says ---
    def _body(self, asked: Asked) -> dict[str, Any]:
        raise NotImplementedError

    async def _send(self, client: Any, body: Mapping[str, Any], *, stream: bool) -> Any:
        raise NotImplementedError

    def _read(self, answer: Any, asked: Asked) -> ModelReply:
        raise NotImplementedError

    def _deltas(self, events: Any, asked: Asked) -> AsyncIterator[ModelDelta | ModelReply]:
        raise NotImplementedError


async def _parsed(raw: Any) -> Any:
    """What a raw response holds; newer SDKs parse it in a coroutine."""
    parsed = raw.parse()
    return await parsed if inspect.isawaitable(parsed) else parsed


def _theirs(problem: Exception) -> bool:
    """Whether a problem came from the SDK or what it stands on: everything else is a fault of ours, and not hidden."""
    return isinstance(problem, OSError) or type(problem).__module__.partition(".")[0] in _LIBRARIES


_LIBRARIES = ("openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2", "h11", "json", "anyio")

_WHAT: dict[FailureKind, str] = {
    "rate_limited": "it limits the rate of requests; wait, or set max_retries higher",
    "timeout": "it did not answer in time",
    "connection": "the connection{address} was refused or lost",
    "server": "the server has a fault",
    "rejected": "it rejects the request",
    "credentials": "it does not accept the credentials; check the API key",
}


def _has_no_key(problem: Exception) -> bool:
    """Whether an SDK says that it was given no key. Anthropic's does so at the first request, with a bare TypeError."""
    return isinstance(problem, TypeError) and "authentication method" in str(problem)


def _address(client: Any) -> str:
    """Where a client of an SDK goes to, in words, without what is secret in it; nothing for a client that does not say."""
    url = getattr(client, "base_url", None)
    host = getattr(url, "netloc", b"")
    return f" to {url.scheme}://{host.decode()}{url.path}" if url is not None and isinstance(host, bytes) and host else ""


def failure_kind(problem: Exception) -> FailureKind:
    """The kind of a problem that came out of an SDK."""
    status = getattr(problem, "status_code", None)
    if isinstance(status, int):
        if status in (401, 403):
            return "credentials"
        # A fault in the middle of a stream comes with the status of the stream, which is 200.
        return "rate_limited" if status == 429 else "server" if status >= 500 or status < 400 else "rejected"
    if "Timeout" in type(problem).__name__:
        return "timeout"
    body = str(getattr(problem, "body", ""))
    return "server" if "error" in body else "connection"


def _attempts(problem: Exception, clients: Clients) -> int:
    """How often it was tried: all attempts for what is tried again, else one."""
    again = failure_kind(problem) in ("rate_limited", "timeout", "connection", "server")
    return 1 + int(getattr(clients.get(), "max_retries", 0)) if again else 1


def _settled(reply: ModelReply, encoding: Encoding) -> ModelReply:
    """At level 5, the output as a call or a text. Raises NotACall."""
    if encoding.level != 5 or not encoding.output:
        return reply
    name, content = read_output(reply.text, encoding.output, text=encoding.text)
    if not name:
        return replace(reply, text=content)
    return replace(reply, text="", calls=(ToolCall(f"call_{uuid.uuid4().hex[:12]}", name, content),))


def _objecting(request: ModelRequest, output: str, fault: str) -> ModelRequest:
    """The request with the bad output and what is wrong with it."""
    said = [Message("assistant", output)] if output.strip() else []
    return replace(
        request, messages=[*request.messages, *said, Message("user", f"That cannot be used: {fault}. Reply with one JSON object.")]
    )


def _in_one_piece(reply: ModelReply) -> Iterator[ModelDelta]:
    if reply.text:
        yield TextDelta(reply.text)
    for index, made in enumerate(reply.calls):
        yield CallDelta(index, made.call_id, made.name, made.raw_arguments)


def _finished(reply: ModelReply, asked: Asked, lost: tuple[Lost, ...], retries: int) -> ModelReply:
    spent = reply.usage + Usage(requests=retries + len(lost))
    by, level = asked.encoding.enforced_by, asked.encoding.level
    return replace(reply, usage=spent, enforced_by=by, level=level, lost=lost, retries=retries)

"""The server: real HTTP on loopback, a script or a function as the model behind it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

from maymust.models import ModelReply, ToolCall, Usage, scripted
from tests.models.picky import chat, messages, responses
from tests.models.picky.faults import Broken, Drop, Fault, Hang, Limited, Refuse
from tests.models.picky.manners import Manners
from tests.models.picky.wire import Bad, Wire

APIS: dict[str, ModuleType] = {api.PATH: api for api in (chat, responses, messages)}
Turn = scripted.Turn | Fault | ModelReply
Brain = Callable[[dict[str, Any], Wire], Turn]


@dataclass(frozen=True)
class Seen:
    """One request as it came: its body, what it allows, and the status of the answer."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    wire: Wire | None
    status: int


class PickyServer:
    """Give it a script, or a function of the request. `seen` holds all requests, refused ones too."""

    def __init__(self, turns: Iterable[Turn] | Brain, *, manners: Manners | None = None) -> None:
        self.manners = manners or Manners()
        self.seen: list[Seen] = []
        self._brain = turns if callable(turns) else _reader(turns)
        self._lock = threading.Lock()
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> PickyServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the requests that were answered."""
        return [one.body for one in self.seen if one.status == 200]

    def judge(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any, Wire | None]:
        """Status and turn (or error text) for one request."""
        with self._lock:
            wire: Wire | None = None
            status, turn = 200, None
            try:
                wire = APIS[path].check(body, self.manners, headers)
                turn = self._brain(body, wire)
                if isinstance(turn, Refuse):
                    raise Bad(turn.message)
                status = {Limited: 429, Hang: 0, Drop: 0}.get(type(turn), 200)
                status = turn.status if isinstance(turn, Broken) else status
            except (Bad, KeyError, TypeError) as problem:
                status, turn = 400, str(problem)
            self.seen.append(Seen(path, body, headers, wire, status))
            number = len(self.seen)
        if status == 200:
            turn = _reply(turn, number)
            if wire is not None and not self.manners.ignores:
                turn = _obedient(turn, wire, number)
        return status, turn, wire


def _reader(turns: Iterable[Turn]) -> Brain:
    script: Iterator[Turn] = iter(turns)

    def brain(body: dict[str, Any], wire: Wire) -> Turn:
        try:
            return next(script)
        except StopIteration:
            raise Bad("the script is over") from None

    return brain


def _reply(turn: Any, number: int) -> ModelReply:
    if isinstance(turn, ModelReply):
        return turn
    made = scripted._reply_of(turn)
    calls = tuple(ToolCall(one.call_id or f"call_{number}_{place}", one.name, one.raw_arguments) for place, one in enumerate(made.calls))
    return ModelReply(made.text, calls, Usage(100 * number, made.tokens or 10, 50 * (number - 1), 1))


def _obedient(reply: ModelReply, wire: Wire, number: int) -> ModelReply:
    """The reply, made to fit what the request allows, as constrained decoding would."""
    if wire.schema is not None:
        return reply
    calls = () if wire.choice == "none" else tuple(call for call in reply.calls if call.name in wire.allowed)
    if not calls and wire.choice not in ("auto", "none"):
        calls = (ToolCall(f"call_{number}_x", wire.allowed[0], "{}"),)
    text = reply.text if reply.text or calls or not reply.calls else "as you like"
    return replace(reply, calls=calls, text=text)


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, picky: PickyServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.picky = picky

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        headers = {key.lower(): value for key, value in self.headers.items()}
        status, turn, _ = self.server.picky.judge(path, body, headers)
        api = APIS[path]
        if isinstance(turn, Hang):
            time.sleep(turn.seconds)
            self.close_connection = True
        elif isinstance(turn, Drop):
            self._drop(turn, api, body)
        elif isinstance(turn, Limited):
            self._send(429, api.error("slow down", "rate_limit_error"), {"retry-after": str(turn.retry_after)})
        elif status != 200:
            kind = "invalid_request_error" if status == 400 else "api_error"
            self._send(status, api.error(turn if isinstance(turn, str) else "broken", kind), {"retry-after-ms": "10"})
        elif body.get("stream"):
            self._stream(api.events(turn, body, self.server.picky.manners, len(self.server.picky.seen)))
        else:
            self._send(200, api.answer(turn, body, self.server.picky.manners, len(self.server.picky.seen)), {})

    def _drop(self, turn: Drop, api: ModuleType, body: dict[str, Any]) -> None:
        if turn.after is not None:
            manners = self.server.picky.manners
            data = "".join(api.events(ModelReply(turn.text), body, manners, len(self.server.picky.seen))).encode()
            self._head()
            self._piece(data[: turn.after])
        self.close_connection = True
        self.connection.close()

    def _send(self, status: int, value: Any, headers: dict[str, str]) -> None:
        data = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for key, text in headers.items():
            self.send_header(key, text)
        self.end_headers()
        self.wfile.write(data)

    def _head(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _stream(self, events: list[str]) -> None:
        self._head()
        piece = self.server.picky.manners.piece
        data = [event.encode() for event in events]
        if piece is not None:
            whole = b"".join(data)
            data = [whole[at : at + piece] for at in range(0, len(whole), piece)]
        for part in data:
            self._piece(part)
        self._piece(b"")

    def _piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

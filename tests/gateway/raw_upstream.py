"""An upstream that sends exactly the bytes it is given, and keeps the bytes it gets."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """One response.

    pieces    written one after another; a number is a pause in seconds
    cut       the connection is closed in the middle of it
    endless   pieces go round until the client leaves
    """

    pieces: list[bytes | float]
    kind: str = "application/json"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    endless: bool = False


@dataclass(frozen=True)
class Got:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RawUpstream:
    """Give it answers; the last one is given again and again. `left` is set when a client leaves in the middle of an answer."""

    def __init__(self, *answers: Answer) -> None:
        self.seen: list[Got] = []
        self.left = threading.Event()
        self._answers = list(answers)
        self._come = threading.Condition()
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> RawUpstream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def wait_for(self, count: int = 1) -> None:
        """Wait until so many requests have come."""
        with self._come:
            assert self._come.wait_for(lambda: len(self.seen) >= count, 30), f"{len(self.seen)} requests came"

    def take(self, got: Got) -> Answer:
        with self._come:
            self.seen.append(got)
            self._come.notify_all()
            return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream: RawUpstream) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {key.lower(): value for key, value in self.headers.items()}
        answer = self.server.upstream.take(Got(self.command, self.path, headers, body))
        self.send_response_only(answer.status)
        self.send_header("content-type", answer.kind)
        self.send_header("transfer-encoding", "chunked")
        for key, value in answer.headers.items():
            self.send_header(key, value)
        self.end_headers()
        try:
            self._write(answer)
        except OSError:
            self.server.upstream.left.set()
            self.close_connection = True

    def _write(self, answer: Answer) -> None:
        while True:
            for piece in answer.pieces:
                if isinstance(piece, float):
                    time.sleep(piece)
                else:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
            if not answer.endless:
                break
        if answer.cut:
            self.close_connection = True
            self.connection.close()
        else:
            self.wfile.write(b"0\r\n\r\n")


def whole(value: Any, **more: Any) -> Answer:
    """A JSON answer."""
    return Answer([json.dumps(value, ensure_ascii=False).encode()], **more)


def stream(pieces: Iterable[bytes | float | dict[str, Any]], **more: Any) -> Answer:
    """A stream; objects become events, named by their type where they have one."""
    return Answer([piece if isinstance(piece, bytes | float) else event(piece) for piece in pieces], "text/event-stream", **more)


def event(value: dict[str, Any]) -> bytes:
    name = f"event: {value['type']}\n" if "type" in value else ""
    return f"{name}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def chat_reply(text: str | None = None, *calls: tuple[str, str], **more: Any) -> dict[str, Any]:
    """A reply of Chat Completions; calls are (name, arguments)."""
    made = [
        {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": raw}} for place, (name, raw) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    finish = "tool_calls" if made else "stop"
    return {"id": "x", "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}


def chat_chunks(*deltas: dict[str, Any], finish: str | None = "stop", name: str = "x") -> list[dict[str, Any] | bytes]:
    """A stream of Chat Completions, with its end."""
    made: list[dict[str, Any] | bytes] = [
        {"id": name, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    if finish is not None:
        made += [{"id": name, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}, b"data: [DONE]\n\n"]
    return made


def call_delta(index: int, name: str, arguments: str = "{}") -> dict[str, Any]:
    """A whole call in one delta."""
    return {"tool_calls": [{"index": index, "id": f"c{index}", "type": "function", "function": {"name": name, "arguments": arguments}}]}

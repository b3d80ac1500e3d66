"""A scripted peer of the bundled Claude Code program: as much of the Messages API as it asks for, on this machine only."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Peer:
    """Says what its script says. `heard` are the last messages of the requests, `offered` the tools."""

    def __init__(self, turns: list[Any]) -> None:
        self.turns, self.heard, self.offered = turns, list[Any](), list[list[str]]()
        peer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *parts: Any) -> None:
                return None

            def do_HEAD(self) -> None:
                self.answer(b"", "text/plain")

            def do_GET(self) -> None:
                self.answer(b"{}", "application/json")

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
                    self.answer(b'{"input_tokens": 1}', "application/json")
                    return
                self.answer(peer.reply(body).encode(), "text/event-stream")

            def answer(self, content: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Peer:
        self._thread.start()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reply(self, body: Any) -> str:
        """The next turn as server-sent events; requests without tools are not the agent's."""
        turn: Any = "a title"
        if body.get("tools"):
            self.heard.append(body["messages"][-1]["content"])
            self.offered.append([one["name"] for one in body["tools"]])
            turn = self.turns[len(self.heard) - 1]
        place, is_text = len(self.heard), isinstance(turn, str)
        message: dict[str, Any] = {
            "id": f"msg_{place}",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
        }
        usage = {"input_tokens": 1, "output_tokens": 1}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, "stop_sequence": None, "usage": usage}}]
        for i, one in enumerate([turn] if is_text else turn):
            if is_text:
                start: dict[str, Any] = {"type": "text", "text": ""}
                delta = {"type": "text_delta", "text": one}
            else:
                start = {"type": "tool_use", "id": f"toolu_{place}_{i}", "name": one[0], "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(one[1])}
            events.append({"type": "content_block_start", "index": i, "content_block": start})
            events.append({"type": "content_block_delta", "index": i, "delta": delta})
            events.append({"type": "content_block_stop", "index": i})
        reason = "end_turn" if is_text else "tool_use"
        events.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 1}})
        events.append({"type": "message_stop"})
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)

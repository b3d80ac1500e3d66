"""What goes over the wire, byte for byte: one file for each adapter, kind of model, and permit.

`MAYMUST_GOLDEN=write pytest tests/models/test_golden.py` writes the files anew; read the difference before committing it.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from maymust.models import Message, ModelReply, ModelRequest, Part, ToolCall, ToolDefinition
from maymust.models.chat_model import Offer
from tests.models.adapters import opened
from tests.models.picky import PickyServer

GOLDEN = Path(__file__).parent / "golden"
MODELS = {
    "chat": {"subset": "gpt-6-sol", "filter": "some-model", "no_force": "openai/gpt-oss-120b", "no_tools": "o1-mini"},
    "responses": {"subset": "gpt-6-sol", "filter": "gpt-4.1"},
    "messages": {"changes": "claude-opus-5-5", "whole": "claude-opus-4-6", "thinking": "claude-sonnet-5"},
}
TEXT = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}
TOOLS = tuple(ToolDefinition(name, f"Does {name}.", TEXT) for name in ("think", "search", "read", "final_answer"))
NAMES = tuple(tool.name for tool in TOOLS)
CONVERSATION = (
    Message("system", "Be brief."),
    Message("user", "What is in ünïcode.txt?"),
    Message("assistant", "Let me see.", (ToolCall("c1", "think", '{"q": "x"}'), ToolCall("c2", "search", "{broken"))),
    Message("tool", "thought", call_id="c1"),
    Message("tool", "the arguments are no JSON", call_id="c2"),
    Message("user", "A text is not enough here.", kind="nudge"),
)
STATUS = "This step you may call: search, read. Not now: final_answer (read first)."
IMAGE = Part("image", url="data:image/png;base64,AAAA")


def _case(allowed: tuple[str, ...], choice: str, *, status: str = "", shown: tuple[ToolDefinition, ...] = TOOLS) -> ModelRequest:
    said = (*CONVERSATION, Message("user", status, kind="status")) if status else CONVERSATION
    wanted = (choice,) if choice in NAMES else allowed
    offers = (Offer(1, TOOLS[:3] + shown[-1:], NAMES[:3] + NAMES[-1:]), Offer(5, (), wanted)) if allowed else (Offer(1, TOOLS, NAMES),)
    return ModelRequest(said, shown, allowed, choice, status, offers)


CASES = {
    "open": _case(NAMES, "required"),
    "open_auto": _case(NAMES, "auto"),
    "some": _case(("search", "read"), "required", status=STATUS),
    "named": _case(("search", "final_answer"), "search", status="You have to call search now."),
    "last": _case(("final_answer",), "final_answer", status="You have to call final_answer now."),
    "none": _case((), "none"),
    "hidden": _case(("think", "final_answer"), "required", shown=(TOOLS[0], TOOLS[3])),
    "appeared": ModelRequest(CONVERSATION, TOOLS, NAMES, "required", "", (Offer(1, TOOLS[:3], NAMES[:3]), Offer(5, TOOLS[3:], NAMES))),
    "parts": ModelRequest([Message("user", "What is it?", parts=(IMAGE, Part("text", text="Look.")))], TOOLS, NAMES, "auto"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("api", "kind"), [(api, kind) for api, kinds in MODELS.items() for kind in kinds])
def test_golden(api: str, kind: str, case: str) -> None:
    body = sent(api, MODELS[api][kind], CASES[case])
    path = GOLDEN / f"{api}.{kind}.{case}.json"
    if os.environ.get("MAYMUST_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(body, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    assert body == json.loads(path.read_text(encoding="utf-8"))


def sent(api: str, model: str, request: ModelRequest) -> dict[str, Any]:
    """The body of the one request that an adapter makes of this; the server takes it."""
    name = request.allowed[0] if request.allowed else "nothing"
    output = f'{{"call": {{"name": "{name}", "arguments": {{"q": "x"}}}}}}'

    async def ask(server: PickyServer) -> ModelReply:
        async with opened(api, server, model) as adapter:
            return await adapter.complete(request)

    with PickyServer([output]) as server:
        reply = asyncio.run(ask(server))
        assert len(server.bodies) == 1
        assert not reply.lost
        return server.bodies[0]


def test_no_golden_file_is_left_over() -> None:
    wanted = {f"{api}.{kind}.{case}.json" for api, kinds in MODELS.items() for kind in kinds for case in CASES}
    assert {path.name for path in GOLDEN.iterdir()} == wanted

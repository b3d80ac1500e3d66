"""Anthropic Messages: what is refused, and how a reply looks."""

from __future__ import annotations

import json
from typing import Any

from maymust.models import ModelReply
from tests.models.picky.manners import Manners
from tests.models.picky.wire import Wire, digest, named, need, no_marks, unique

PATH = "/v1/messages"
KNOWN = {
    "model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "thinking", "temperature", "output_config",
    "cache_control", "stop_sequences",
}  # fmt: skip
CHANGES = "mid-conversation-tool-changes-2026-07-01"
INLINE = "inline-tools-2026-09-15"


def check(body: dict[str, Any], manners: Manners, headers: dict[str, str]) -> Wire:
    """What the request allows. Raises Bad."""
    unknown = body.keys() - KNOWN
    need(not unknown, f"{', '.join(sorted(unknown))}: Extra inputs are not permitted")
    need(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
    need(_marks(body) <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {_marks(body)}.")
    tools = body.get("tools") or []
    need(manners.tools or not tools, "This model does not support tools.")
    shown = list(unique([tool["name"] for tool in tools], "tools"))
    open_now = list(shown)
    for tool in tools:
        need(isinstance(tool["input_schema"], dict) and tool["input_schema"].get("type") == "object", "tools: input_schema: type: object")
        need(manners.schemas or not tool.get("strict"), "tools.0.strict: Extra inputs are not permitted")
    betas = set(headers.get("anthropic-beta", "").replace(" ", "").split(","))
    _messages(body["messages"], manners, shown, open_now, betas)
    if manners.bound:
        _prefixes(body)
    choice = body.get("tool_choice", {"type": "auto" if tools else "none"})
    need("tool_choice" not in body or shown, "tool_choice may only be specified while providing tools.")
    if choice["type"] in ("any", "tool"):
        need(manners.forced, "tool_choice forces tool use, which is not supported for this model. Use `auto` or `none`.")
        thinking = (body.get("thinking") or {}).get("type")
        need(thinking in (None, "disabled"), "Thinking may not be enabled when tool_choice forces tool use.")
    need(choice["type"] != "tool" or choice.get("name") in open_now, f"Tool '{choice.get('name')}' not found in provided tools")
    given = ((body.get("output_config") or {}).get("format")) or None
    need(given is None or manners.schemas, "output_config.format: Extra inputs are not permitted")
    name = choice["name"] if choice["type"] == "tool" else {"any": "required"}.get(choice["type"], choice["type"])
    allowed = (name,) if choice["type"] == "tool" else tuple(one for one in shown if one in open_now)
    return Wire(tuple(shown), allowed, name, given["schema"] if given else None)


def _marks(value: Any) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(_marks(item) for item in value.values())
    return sum(_marks(item) for item in value) if isinstance(value, list) else 0


def _messages(messages: list[dict[str, Any]], manners: Manners, shown: list[str], open_now: list[str], betas: set[str]) -> None:
    need(messages and messages[0]["role"] == "user", "messages: first message must use the user role")
    owed: list[str] = []
    before = ""
    for place, message in enumerate(messages):
        role, content = message["role"], message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        need(blocks, f"messages.{place}: content must not be empty")
        for block in blocks:
            need(
                block["type"] != "text" or block["text"].strip(), f"messages.{place}: text content blocks must contain non-whitespace text"
            )
        if role == "system":
            need(manners.late_system, f"messages.{place}.role: system is not supported on this model")
            need(before == "user", f"messages.{place}: a system message must follow a user message")
            _changes(place, blocks, manners, shown, open_now, betas)
        elif role == "user":
            results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            missing = [one for one in owed if one not in results]
            need(
                not missing,
                f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}",
            )
            need(
                set(results) <= set(owed) and len(set(results)) == len(results),
                f"messages.{place}: unexpected `tool_use_id` in `tool_result`",
            )
            first = [block["type"] == "tool_result" for block in blocks]
            need(first == sorted(first, reverse=True), f"messages.{place}: tool_result blocks must come first")
            owed = []
        else:
            need(role == "assistant", f"messages.{place}.role: {role!r}")
            need(not owed, f"messages.{place}: `tool_use` without `tool_result`: {', '.join(owed)}")
            need(
                blocks[-1]["type"] not in ("thinking", "redacted_thinking"), "The final block in an assistant message cannot be `thinking`."
            )
            named([block["name"] for block in blocks if block["type"] == "tool_use"], f"messages.{place}.tool_use.name")
            owed = list(unique([block["id"] for block in blocks if block["type"] == "tool_use"], f"messages.{place}: `tool_use` ids"))
            need(
                all(isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use"),
                "tool_use.input: must be an object",
            )
        before = role
    need(not owed, f"`tool_use` ids were found without `tool_result` blocks: {', '.join(owed)}")
    need(before != "assistant", "This model does not support assistant message prefill. The conversation must end with a user message.")


def _changes(place: int, blocks: list[dict[str, Any]], manners: Manners, shown: list[str], open_now: list[str], betas: set[str]) -> None:
    for block in blocks:
        if block["type"] == "text":
            continue
        need(manners.changes and CHANGES in betas, f"messages.{place}: `{block['type']}` needs the beta {CHANGES}")
        tool = block["tool"]
        if tool["type"] == "tool_definition":
            need(INLINE in betas, f"messages.{place}: `tool_definition` needs the beta {INLINE}")
            name = tool["definition"]["name"]
            need(name not in shown, f"messages.{place}: tool {name!r} is defined already")
            shown.append(name)
        else:
            name = tool["name"]
            need(name in shown, f"messages.{place}: tool reference {name!r} not found")
        if block["type"] == "tool_addition":
            need(name not in open_now, f"messages.{place}: {name!r} is offered already")
            open_now.append(name)
        else:
            need(name in open_now, f"messages.{place}: {name!r} is not offered")
            open_now.remove(name)


def _prefixes(body: dict[str, Any]) -> None:
    """Each thinking block must come after exactly what it came after when it was made: its signature is a digest of that."""
    for place, message in enumerate(body["messages"]):
        if message["role"] != "assistant" or isinstance(message["content"], str):
            continue
        for spot, block in enumerate(message["content"]):
            if block["type"] == "thinking":
                same = block["signature"] == _signature(body, place, spot)
                where = f"messages.{place}.content.{spot}"
                need(same, f"{where}: Invalid `signature` in `thinking` block. The block is bound to a different conversation.")


def _signature(body: dict[str, Any], place: int, spot: int) -> str:
    before = no_marks([body.get("system"), body.get("tools"), body["messages"][:place]])
    return f"{spot}:{digest(before)}"


def _content(reply: ModelReply, body: dict[str, Any], manners: Manners, number: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if manners.thinks:
        blocks.append({"type": "thinking", "thinking": f"thought {number}", "signature": _signature(body, len(body["messages"]), 0)})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text, "citations": None})
    blocks += [{"type": "tool_use", "id": call.call_id, "name": call.name, "input": _input(call.raw_arguments)} for call in reply.calls]
    return blocks


def _input(raw: str) -> Any:
    """This provider hands out objects only, whatever its model wrote."""
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def answer(reply: ModelReply, body: dict[str, Any], manners: Manners, number: int) -> dict[str, Any]:
    """The reply in one piece."""
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": _content(reply, body, manners, number),
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.usage.input_tokens - reply.usage.cached_tokens,
            "cache_read_input_tokens": reply.usage.cached_tokens,
            "cache_creation_input_tokens": 0,
            "output_tokens": reply.usage.output_tokens,
        },
    }


_BLANK: dict[str, dict[str, Any]] = {"text": {"text": ""}, "tool_use": {"input": {}}, "thinking": {"thinking": "", "signature": ""}}


def events(reply: ModelReply, body: dict[str, Any], manners: Manners, number: int) -> list[str]:
    """The reply as a stream. Broken arguments are passed on as they were written, as this provider does in streams."""
    whole = answer(reply, body, manners, number)
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    raws = iter([call.raw_arguments for call in reply.calls])
    for place, block in enumerate(whole["content"]):
        blank = _BLANK[block["type"]]
        sent.append({"type": "content_block_start", "index": place, "content_block": {**block, **blank}})
        deltas: list[dict[str, Any]] = []
        if block["type"] == "text":
            deltas = [{"type": "text_delta", "text": block["text"][at : at + 4]} for at in range(0, len(block["text"]), 4)]
        elif block["type"] == "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        else:
            raw = next(raws)
            deltas = [{"type": "input_json_delta", "partial_json": raw[at : at + 3]} for at in range(0, len(raw), 3)]
        sent += [{"type": "content_block_delta", "index": place, "delta": delta} for delta in deltas]
        sent.append({"type": "content_block_stop", "index": place})
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    sent.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": reply.usage.output_tokens}})
    sent.append({"type": "message_stop"})
    return ['event: ping\ndata: {"type": "ping"}\n\n'] + [
        f"event: {one['type']}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n" for one in sent
    ]


def error(message: str, kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}

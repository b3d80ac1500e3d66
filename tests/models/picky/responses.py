"""OpenAI Responses: what is refused, and how a reply looks."""

from __future__ import annotations

import json
from typing import Any

from maymust.models import ModelReply
from tests.models.picky import chat
from tests.models.picky.manners import Manners
from tests.models.picky.wire import Wire, named, need, unique

PATH = "/v1/responses"
KNOWN = {
    "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream", "store", "include", "text",
    "reasoning", "max_output_tokens", "temperature", "prompt_cache_key",
}  # fmt: skip


def check(body: dict[str, Any], manners: Manners, headers: dict[str, str]) -> Wire:
    """What the request allows. Raises Bad."""
    unknown = body.keys() - KNOWN
    need(not unknown, f"Unknown parameter: {', '.join(sorted(unknown))}")
    tools = list(body.get("tools") or ())
    for item in body["input"]:
        if item.get("type") == "additional_tools":
            need(manners.changes, "Invalid value: 'additional_tools'. (input)")
            need(item["role"] == "developer" and item["tools"], "additional_tools: bad form")
            tools += item["tools"]
    need(manners.tools or not tools, "This model does not support tools.")
    for tool in tools:
        need(tool["type"] == "function" and isinstance(tool["parameters"], dict), "tools: bad form")
        need(manners.schemas or not tool.get("strict"), "Unknown parameter: 'tools[0].strict'.")
    shown = unique([tool["name"] for tool in tools], "tools")
    _items(body["input"], manners)
    need(
        "parallel_tool_calls" not in body or manners.parallel,
        "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
    )
    need("tool_choice" not in body or tools, "'tool_choice' is only allowed when 'tools' are specified.")
    allowed, choice = _choice(body.get("tool_choice", "auto" if tools else "none"), shown, manners)
    given = (body.get("text") or {}).get("format")
    need(given is None or manners.schemas, "'text.format' of type 'json_schema' is not supported with this model.")
    return Wire(shown, allowed, choice, given["schema"] if given else None)


def _choice(choice: Any, shown: tuple[str, ...], manners: Manners) -> tuple[tuple[str, ...], str]:
    if choice in ("auto", "none"):
        return shown, choice
    need(manners.forced or (isinstance(choice, dict) and choice.get("mode") == "auto"), "Thinking mode does not support this tool_choice")
    if choice == "required":
        return shown, "required"
    if choice["type"] == "allowed_tools":
        need(manners.subsets, "Invalid value: 'allowed_tools'. (tool_choice.type)")
        names = unique([tool["name"] for tool in choice["tools"]], "tool_choice")
        need(names and set(names) <= set(shown), "Tool choice 'allowed_tools' names a tool that is not in 'tools'")
        return names, choice["mode"]
    need(choice["name"] in shown, f"Tool choice 'function' not found in 'tools' parameter: {choice['name']}")
    return (choice["name"],), choice["name"]


def _items(items: list[dict[str, Any]], manners: Manners) -> None:
    need(items, "input: must not be empty")
    owed: list[str] = []
    reasoned: str | None = None
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        if reasoned is not None:
            follows = kind in ("function_call", "reasoning") or (kind == "message" and item["role"] == "assistant")
            need(follows, f"Item {reasoned!r} of type 'reasoning' was provided without its required following item.")
        if kind == "reasoning":
            need(item.get("encrypted_content"), f"input[{place}]: reasoning without encrypted_content")
        if kind == "function_call":
            if manners.thinks and item.get("id", "").startswith("fc_own"):
                need(
                    f"rs_own{item['id'][6:].split('_')[0]}" in [one.get("id") for one in items[:place]],
                    f"Item {item['id']!r} of type 'function_call' was provided without its required 'reasoning' item.",
                )
            named([item["name"]], f"input[{place}].name")
            need(item["call_id"] and item["call_id"] not in owed, f"input[{place}].call_id: missing or repeated")
            owed.append(item["call_id"])
        elif kind == "function_call_output":
            need(item["call_id"] in owed, f"No tool call found for function call output with call_id {item['call_id']}.")
            owed.remove(item["call_id"])
        elif kind == "message":
            need(not owed or item["role"] == "assistant", f"No tool output found for function call {', '.join(owed)}.")
            need(item.get("content"), f"input[{place}].content: must not be empty")
        reasoned = item.get("id") if kind == "reasoning" else None
    need(not owed, f"No tool output found for function call {', '.join(owed)}.")


def answer(reply: ModelReply, body: dict[str, Any], manners: Manners, number: int) -> dict[str, Any]:
    """The reply in one piece."""
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": body["model"],
        "output": _output(reply, manners, number),
        "parallel_tool_calls": True,
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "error": None,
        "incomplete_details": None,
        "usage": {
            "input_tokens": reply.usage.input_tokens,
            "input_tokens_details": {"cached_tokens": reply.usage.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": reply.usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reply.usage.total_tokens,
        },
    }


def _output(reply: ModelReply, manners: Manners, number: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if manners.thinks:
        items.append({"type": "reasoning", "id": f"rs_own{number}", "summary": [], "encrypted_content": f"secret {number}", "status": None})
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}]
        items.append({"type": "message", "id": f"msg_own{number}", "role": "assistant", "status": "completed", "content": content})
    for place, call in enumerate(reply.calls):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_own{number}_{place}",
                "call_id": call.call_id,
                "name": call.name,
                "arguments": call.raw_arguments,
                "status": "completed",
            }
        )
    return items


def events(reply: ModelReply, body: dict[str, Any], manners: Manners, number: int) -> list[str]:
    """The reply as a stream."""
    whole = answer(reply, body, manners, number)
    empty = {**whole, "output": [], "status": "in_progress", "usage": None}
    sent: list[dict[str, Any]] = [{"type": "response.created", "response": empty}, {"type": "response.in_progress", "response": empty}]
    for place, item in enumerate(whole["output"]):
        sent.append({"type": "response.output_item.added", "output_index": place, "item": _blank(item)})
        where = {"item_id": item["id"], "output_index": place}
        if item["type"] == "function_call":
            text = item["arguments"]
            sent += [
                {"type": "response.function_call_arguments.delta", **where, "delta": text[at : at + 3]} for at in range(0, len(text), 3)
            ]
            sent.append({"type": "response.function_call_arguments.done", **where, "arguments": text, "name": item["name"]})
        elif item["type"] == "message":
            text = item["content"][0]["text"]
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            sent.append({"type": "response.content_part.added", **where, "content_index": 0, "part": part})
            sent += [
                {"type": "response.output_text.delta", **where, "content_index": 0, "delta": text[at : at + 4], "logprobs": []}
                for at in range(0, len(text), 4)
            ]
            sent.append({"type": "response.output_text.done", **where, "content_index": 0, "text": text, "logprobs": []})
        sent.append({"type": "response.output_item.done", "output_index": place, "item": item})
    sent.append({"type": "response.completed", "response": whole})
    return [
        f"event: {one['type']}\ndata: {json.dumps({**one, 'sequence_number': count}, ensure_ascii=False)}\n\n"
        for count, one in enumerate(sent)
    ]


def _blank(item: dict[str, Any]) -> dict[str, Any]:
    if item["type"] == "function_call":
        return {**item, "arguments": "", "status": "in_progress"}
    return {**item, "content": []} if item["type"] == "message" else item


error = chat.error

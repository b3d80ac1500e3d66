"""OpenAI Chat Completions: what is refused, and how a reply looks."""

from __future__ import annotations

import json
from typing import Any

from maymust.models import ModelReply
from tests.models.picky.manners import Manners
from tests.models.picky.wire import Bad, Wire, named, need, unique

PATH = "/v1/chat/completions"
KNOWN = {
    "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "response_format",
    "max_tokens", "max_completion_tokens", "temperature", "seed", "store", "prompt_cache_key", "reasoning_effort",
}  # fmt: skip


def check(body: dict[str, Any], manners: Manners, headers: dict[str, str]) -> Wire:
    """What the request allows. Raises Bad."""
    unknown = body.keys() - KNOWN
    need(not unknown, f"Unrecognized request argument supplied: {', '.join(sorted(unknown))}")
    _messages(body["messages"], manners)
    tools = body.get("tools")
    need(manners.tools or not tools, "This model does not support tools.")
    need(tools is None or tools, "[] is too short - 'tools'")
    shown = unique([tool["function"]["name"] for tool in tools or ()], "tools")
    for tool in tools or ():
        need(manners.schemas or "strict" not in tool["function"], "Unknown parameter: 'tools[0].function.strict'.")
    need("parallel_tool_calls" not in body or tools, "'parallel_tool_calls' is only allowed when 'tools' are specified.")
    need(
        "parallel_tool_calls" not in body or manners.parallel,
        "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
    )
    need("tool_choice" not in body or tools, "'tool_choice' is only allowed when 'tools' are specified.")
    allowed, choice = _choice(body.get("tool_choice", "auto" if tools else "none"), shown, manners)
    return Wire(shown, allowed, choice, _schema(body.get("response_format"), manners))


def _choice(choice: Any, shown: tuple[str, ...], manners: Manners) -> tuple[tuple[str, ...], str]:
    if choice in ("auto", "none"):
        return shown, choice
    if choice == "required":
        need(manners.forced, "Thinking mode does not support this tool_choice")
        return shown, "required"
    need(isinstance(choice, dict), f"Invalid value: {choice!r} for 'tool_choice'.")
    if choice["type"] == "allowed_tools":
        need(manners.subsets, "Invalid value: 'allowed_tools'. Supported values are: 'function'. (tool_choice.type)")
        given = choice["allowed_tools"]
        names = unique([tool["function"]["name"] for tool in given["tools"]], "tool_choice.allowed_tools")
        need(names and set(names) <= set(shown), "tool_choice.allowed_tools: a tool that is not in 'tools'")
        need(given["mode"] != "required" or manners.forced, "Thinking mode does not support this tool_choice")
        return names, given["mode"]
    need(manners.forced, "Thinking mode does not support this tool_choice")
    name = choice["function"]["name"]
    need(name in shown, f"Invalid value: 'tool_choice.function.name': {name!r} not found in 'tools'.")
    return (name,), name


def _schema(given: Any, manners: Manners) -> Any:
    if given is None:
        return None
    need(manners.schemas, "'response_format' of type 'json_schema' is not supported with this model.")
    need(given["type"] == "json_schema" and given["json_schema"]["name"], "response_format: bad form")
    return given["json_schema"]["schema"]


def _messages(messages: list[dict[str, Any]], manners: Manners) -> None:
    need(messages, "[] is too short - 'messages'")
    owed: list[str] = []
    for place, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            need(message["tool_call_id"] in owed, f"messages[{place}]: 'tool' must be a response to a preceding message with 'tool_calls'.")
            owed.remove(message["tool_call_id"])
            need(isinstance(message["content"], str), f"messages[{place}].content: a string is needed")
            continue
        need(not owed, f"An assistant message with 'tool_calls' must be followed by tool messages; missing: {', '.join(owed)}")
        need(role in ("system", "developer", "user", "assistant"), f"messages[{place}].role: {role!r}")
        need(place == 0 or role not in ("system", "developer") or manners.late_system, "System message must be at the beginning.")
        if role == "assistant":
            calls = message.get("tool_calls")
            need(calls is None or calls, f"messages[{place}].tool_calls: too short")
            need(calls or message.get("content"), f"messages[{place}]: content is needed without tool_calls")
            owed = list(unique([call["id"] for call in calls or ()], f"messages[{place}].tool_calls"))
            need(all(call["id"] for call in calls or ()), "tool_calls: an id is needed")
            named([call["function"]["name"] for call in calls or ()], f"messages[{place}].tool_calls.function.name")
        else:
            need(message.get("content"), f"messages[{place}].content: must not be empty")
    need(not owed, f"An assistant message with 'tool_calls' must be followed by tool messages; missing: {', '.join(owed)}")


def answer(reply: ModelReply, body: dict[str, Any], manners: Manners, number: int) -> dict[str, Any]:
    """The reply in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if manners.thinks:
        message["reasoning_content"] = f"thought {number}"
    if reply.calls:
        message["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.raw_arguments}}
            for call in reply.calls
        ]
    finish = "tool_calls" if reply.calls else "stop"
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "model": body["model"]}
    return {**head, "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}], "usage": usage(reply)}


def usage(reply: ModelReply) -> dict[str, Any]:
    given = reply.usage
    return {
        "prompt_tokens": given.input_tokens,
        "completion_tokens": given.output_tokens,
        "total_tokens": given.total_tokens,
        "prompt_tokens_details": {"cached_tokens": given.cached_tokens},
    }


def events(reply: ModelReply, body: dict[str, Any], manners: Manners, number: int) -> list[str]:
    """The reply as a stream: several calls interleaved, arguments three characters at a time."""
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}

    chunks = [chunk({"role": "assistant", "content": ""})]
    if manners.thinks:
        chunks += [chunk({"reasoning_content": piece}) for piece in ("thought ", str(number))]
    chunks += [chunk({"content": reply.text[at : at + 4]}) for at in range(0, len(reply.text), 4)]
    for index, call in enumerate(reply.calls):
        start = {"index": index, "id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        chunks.append(chunk({"tool_calls": [start]}))
    longest = max((len(call.raw_arguments) for call in reply.calls), default=0)
    for at in range(0, longest, 3):
        pieces = [
            {"index": index, "function": {"arguments": call.raw_arguments[at : at + 3]}}
            for index, call in enumerate(reply.calls)
            if call.raw_arguments[at : at + 3]
        ]
        chunks.append(chunk({"tool_calls": pieces}))
    chunks.append(chunk({}, "tool_calls" if reply.calls else "stop"))
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**head, "choices": [], "usage": usage(reply)})
    return [f"data: {json.dumps(one, ensure_ascii=False)}\n\n" for one in chunks] + ["data: [DONE]\n\n"]


def error(message: str, kind: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


__all__ = ["PATH", "Bad", "answer", "check", "error", "events"]

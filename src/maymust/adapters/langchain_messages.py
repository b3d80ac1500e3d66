"""LangChain's requests and messages, as the policy reads and writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from maymust.errors import missing

try:
    from langchain.agents.middleware import ModelRequest
    from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
    from langchain_core.messages import AIMessage, ToolMessage
    from langgraph.types import Command
except ImportError as _fault:
    raise missing("this adapter needs LangChain", "langchain", _fault) from _fault

from maymust.adapters.limits import choice, shown
from maymust.adapters.turnstile import Turnstile
from maymust.core.step import Outcome


def narrowed(request: ModelRequest[Any], run: Turnstile) -> ModelRequest[Any]:
    """The request under the permit: only what may be called, the choice, and no structured answer where the run may not end."""
    permit = run.current
    if permit is None:
        return request
    wanted, names = choice(permit), shown(permit)
    tools = [tool for tool in request.tools if isinstance(tool, dict) or tool.name in names]
    if request.response_format is not None and permit.may_stop:
        # Without a tool to call, the structured answer is all that is left.
        return request.override(tools=tools)
    if wanted == "none":
        return request.override(tool_choice="none")
    picked = {"required": "any", "auto": request.tool_choice}.get(wanted, wanted)
    return request.override(tools=tools, tool_choice=picked, response_format=None)


def answer_names(response_format: Any) -> frozenset[str]:
    """Names of the tools that LangChain makes for structured output."""
    if response_format is None or isinstance(response_format, ProviderStrategy):
        return frozenset()
    if isinstance(response_format, AutoStrategy):
        response_format = response_format.schema
    strategy = response_format if isinstance(response_format, ToolStrategy) else ToolStrategy(schema=response_format)
    return frozenset(spec.name for spec in strategy.schema_specs)


def batch(messages: Sequence[Any]) -> list[tuple[dict[str, Any], Outcome | None, Any]]:
    """The last reply's calls, each with its outcome if a result is there."""
    results: dict[str, ToolMessage] = {}
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            results[message.tool_call_id] = message
        elif isinstance(message, AIMessage):
            calls = [{"name": call["name"], "arguments": call["args"], "call_id": call["id"]} for call in message.tool_calls]
            return [(call, *outcome(results.get(call["call_id"]))) for call in calls]
    return []


def outcome(message: ToolMessage | None) -> tuple[Outcome | None, Any]:
    """How a call came back, by its result; None where there is none yet."""
    if message is None:
        return None, None
    if isinstance(message.artifact, dict) and "maymust" in message.artifact:
        return Outcome(message.artifact["maymust"]), None
    return (Outcome.FAILED, None) if message.status == "error" else (Outcome.OK, _json(message.content))


def take_over(run: Turnstile, calls: Sequence[tuple[dict[str, Any], Outcome | None, Any]]) -> None:
    """Record a batch that was run elsewhere."""
    for call, how, output in calls:
        run.record(call, how or Outcome.REFUSED, output)


def report(run: Turnstile, call: Mapping[str, Any], result: Any) -> Any:
    """Report how a call came back, and pass the result on."""
    update = result.update if isinstance(result, Command) else None
    found = [result] if isinstance(result, ToolMessage) else update.get("messages", ()) if isinstance(update, dict) else ()
    how, output = outcome(next((one for one in found if isinstance(one, ToolMessage) and one.tool_call_id == call["id"]), None))
    run.leave(call["id"], how or Outcome.OK, output)
    return result


def _json(content: Any) -> Any:
    try:
        return json.loads(content)
    except (TypeError, ValueError):
        return content

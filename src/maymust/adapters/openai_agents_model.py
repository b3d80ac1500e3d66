"""A model of the OpenAI Agents SDK in one run under a policy."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from maymust.errors import missing

try:
    from agents import FunctionTool, Model, ModelProvider
except ImportError as _fault:
    raise missing("this adapter needs the OpenAI Agents SDK", "openai-agents", _fault) from _fault

from maymust.adapters.limits import choice, shown
from maymust.adapters.turnstile import Turnstile

_CALLS = (
    "function_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "custom_tool_call",
    "mcp_approval_request",
)
"""Items that make the SDK go on instead of taking the text as the answer."""


class GatedProvider(ModelProvider):
    """A provider whose models are asked under the permit of one run."""

    def __init__(self, inner: Any, run: Turnstile) -> None:
        self._inner, self._run = inner, run

    def get_model(self, model_name: str | None) -> Any:
        return GatedModel(self._inner.get_model(model_name), self._run)

    async def aclose(self) -> None:
        await self._inner.aclose()


class GatedModel(Model):
    """A model that is asked under the permit, and asked again for a text where the run may not end."""

    def __init__(self, inner: Any, run: Turnstile) -> None:
        self._inner, self._run = inner, run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def close(self) -> None:
        await self._inner.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self._inner.get_retry_advice(request)

    async def get_response(self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *rest: Any, **options: Any) -> Any:
        """`Model.get_response`."""
        usage, asked = None, input
        while True:
            settings, offered = self._narrowed(model_settings, tools)
            response = await self._inner.get_response(system_instructions, asked, settings, offered, *rest, **options)
            if usage is not None:
                response.usage.add(usage)
            objection = self._objection(response.output)
            if objection is None:
                return response
            usage = response.usage
            asked, options = _again(asked, options, response.response_id, response.to_input_items(), objection)

    async def stream_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *rest: Any, **options: Any
    ) -> AsyncIterator[Any]:
        """`Model.stream_response`. Where the run may not end, a reply is held back until it is known that it is no answer."""
        asked, again = input, True
        while again:
            again = False
            settings, offered = self._narrowed(model_settings, tools)
            held: list[Any] | None = None if self._run.current is not None and self._run.current.may_stop else []
            async for event in self._inner.stream_response(system_instructions, asked, settings, offered, *rest, **options):
                objection = self._objection(event.response.output) if event.type == "response.completed" else None
                if objection is not None:
                    items = [item.model_dump(exclude_unset=True) for item in event.response.output]
                    asked, options = _again(asked, options, event.response.id, items, objection)
                    again = True
                    break
                if held is None:
                    yield event
                else:
                    held.append(event)
            for event in [] if again else held or []:
                yield event

    def _narrowed(self, settings: Any, tools: Any) -> tuple[Any, list[Any]]:
        permit = self._run.permit(tool.name for tool in tools if isinstance(tool, FunctionTool))
        wanted, names = choice(permit), shown(permit)
        if wanted == "none":
            return replace(settings, tool_choice="none"), tools
        offered = [tool for tool in tools if tool.name in names or not isinstance(tool, FunctionTool)]
        return (settings if wanted == "auto" else replace(settings, tool_choice=wanted)), offered

    def _objection(self, output: list[Any]) -> str | None:
        self._run.begin(
            {"name": item.name, "arguments": as_object(item.arguments), "call_id": item.call_id}
            for item in output
            if item.type == "function_call"
        )
        if any(item.type in _CALLS for item in output):
            return None
        texts = [part for item in output if item.type == "message" for part in item.content if getattr(part, "text", "")]
        return self._run.objection(empty=not texts)


def _again(asked: Any, options: dict[str, Any], response_id: Any, items: list[Any], objection: str) -> tuple[list[Any], dict[str, Any]]:
    """What to ask next after a reply that may not end the run; a provider that keeps the conversation has the reply already."""
    nudge = {"role": "user", "content": objection}
    if options.get("previous_response_id"):
        return [nudge], {**options, "previous_response_id": response_id}
    if options.get("conversation_id"):
        return [nudge], options
    before = [{"role": "user", "content": asked}] if isinstance(asked, str) else list(asked)
    return [*before, *items, nudge], options


def as_object(arguments: str | None) -> dict[str, Any] | None:
    """A call's arguments; None for what is no JSON object."""
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

"""Chat Completions, over OpenAI's own SDK (extra `openai`): OpenAI's models, and every server that speaks the protocol.

model = OpenAIChatModel("gpt-5")                                                       # the key is in OPENAI_API_KEY
model = OpenAIChatModel("qwen3", base_url="http://localhost:11434/v1", api_key="-")    # Ollama, vLLM, llama.cpp, LM Studio
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from maymust.models.capabilities import Capabilities
from maymust.models.capability_table import capabilities_of
from maymust.models.chat_model import CallDelta, Finish, ModelDelta, ModelReply, TextDelta, ToolDefinition, Usage
from maymust.models.failures import ModelFailure
from maymust.models.message import Message, Part, ToolCall
from maymust.models.openai_responses import OpenAIResponsesModel
from maymust.models.past_call import name_of, object_text
from maymust.models.plain import in_words, output_schema
from maymust.models.sdk import RETRIES, TIMEOUT, Asked, Clients, SdkModel, sdk
from maymust.models.strict import is_strict

__all__ = ["OpenAIChatModel", "OpenAIResponsesModel"]

KEY = "openai-chat"
"""The key in `Message.extra` under which the reasoning of a reply is kept, for servers that want it back."""

_REASONING = ("reasoning_content", "reasoning", "reasoning_details")


class OpenAIChatModel(SdkModel):
    """A model of the Chat Completions API, streamed or not.

    model              its name, such as "gpt-5"
    client             an `openai.AsyncOpenAI` (or `AsyncAzureOpenAI`, ...) of yours; without one, a client is made from the environment
    base_url, api_key  another server
    capabilities       replace what the table says of the name
    parallel           False asks for one call in a reply
    strict             constrain arguments to the tools' schemas, for tools whose schema the strict mode takes
    settings           go into each request as they are: `temperature`, `max_completion_tokens`, `extra_body`, ...

    Raises MissingExtra without the SDK.
    """

    provider = "openai"
    key_variable = "OPENAI_API_KEY"

    def __init__(
        self,
        model: str,
        *,
        client: Any = None,
        base_url: str | None = None,
        api_key: str | None = None,
        capabilities: Capabilities | None = None,
        max_retries: int = RETRIES,
        timeout: float = TIMEOUT,
        parallel: bool = True,
        strict: bool = False,
        **settings: Any,
    ) -> None:
        library = sdk("openai", "openai")
        clients = Clients(client, lambda: library.AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=max_retries, timeout=timeout))
        super().__init__(model, capabilities or capabilities_of(model, "chat"), clients, _thinking(settings))
        self._parallel, self._strict, self._settings = parallel, strict, settings

    def _body(self, asked: Asked) -> dict[str, Any]:
        request, encoding, told = asked.request, asked.encoding, asked.capabilities
        body: dict[str, Any] = {"model": self._model, **self._settings}
        messages = list(request.messages)
        if encoding.level == 5:
            messages = in_words(messages, encoding.output, text=encoding.text)
            if encoding.output and told.json_schema:
                form = {"name": "call", "schema": output_schema(encoding.output, text=encoding.text)}
                body["response_format"] = {"type": "json_schema", "json_schema": form}
        role = "system" if told.late_system else "user"
        body["messages"] = [_message(message, role) for message in messages]
        if encoding.reason:
            body["messages"].append({"role": role, "content": encoding.reason})
        if encoding.tools:
            body["tools"] = [self._tool(tool, told) for tool in encoding.tools]
            body["tool_choice"] = _choice(encoding.choice, encoding.subset)
            if not self._parallel and told.parallel_switch:
                body["parallel_tool_calls"] = False
        return body

    def _tool(self, tool: ToolDefinition, told: Capabilities) -> dict[str, Any]:
        function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        if self._strict and told.strict_schemas and is_strict(tool.parameters):
            function["strict"] = True
        return {"type": "function", "function": function}

    async def _send(self, client: Any, body: Mapping[str, Any], *, stream: bool) -> Any:
        more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        return await client.chat.completions.with_raw_response.create(**body, **more)

    def _read(self, answer: Any, asked: Asked) -> ModelReply:
        if not answer.choices:
            return ModelReply(usage=_usage(answer.usage))
        said = answer.choices[0]
        calls = [(call.id or "", call.function.name, call.function.arguments) for call in said.message.tool_calls or ()]
        kept = {key: value for key, value in (said.message.model_extra or {}).items() if key in _REASONING and value}
        return _reply(said.message.content or "", calls, kept, said.finish_reason, bool(said.message.refusal), _usage(answer.usage))

    async def _deltas(self, events: Any, asked: Asked) -> AsyncIterator[ModelDelta | ModelReply]:
        partial = _Partial()
        async for chunk in events:
            for delta in partial.take(chunk):
                yield delta
        if partial.finish is None:
            raise ModelFailure(f"the stream of {self.name} ended before the reply did", kind="connection")
        calls = [(made.call_id, made.name, made.arguments) for made in partial.calls]
        yield _reply(partial.text, calls, partial.kept, partial.finish, partial.refused, partial.usage)


def _thinking(settings: Mapping[str, Any]) -> bool | None:
    """Whether the settings say that the model is to reason; None where they do not say."""
    said = (settings.get("extra_body") or {}).get("thinking")
    if isinstance(said, Mapping):
        return said.get("type") != "disabled"
    return False if settings.get("reasoning_effort") == "none" else None


def _choice(choice: str, subset: tuple[str, ...] | None) -> Any:
    if subset is not None and choice in ("auto", "required"):
        tools = [{"type": "function", "function": {"name": name}} for name in subset]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice, "tools": tools}}
    return choice if choice in ("auto", "required", "none") else {"type": "function", "function": {"name": choice}}


def _message(message: Message, role: str) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if message.role == "assistant":
        kept = message.extra.get(KEY, {})
        said: dict[str, Any] = {"role": "assistant", "content": message.text or None, **kept}
        if message.calls:
            said["tool_calls"] = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": name_of(call.name), "arguments": object_text(call.raw_arguments)},
                }
                for call in message.calls
            ]
        return said
    return {"role": role if message.kind == "status" else message.role, "content": _content(message)}


def _content(message: Message) -> Any:
    if not message.parts:
        return message.text or "(empty)"
    texts = [{"type": "text", "text": message.text}] if message.text.strip() else []
    return [*texts, *(_part(part) for part in message.parts)]


def _part(part: Part) -> dict[str, Any]:
    if part.kind == "text":
        return {"type": "text", "text": part.text or "(empty)"}
    if part.kind == "image":
        return {"type": "image_url", "image_url": {"url": part.url}}
    return {"type": "file", "file": {"filename": part.filename or "file", "file_data": part.url}}


def _reply(text: str, calls: list[tuple[str, str, str]], kept: dict[str, Any], stop: str | None, refused: bool, usage: Usage) -> ModelReply:
    finish: Finish = "refused" if refused or stop == "content_filter" else "cut_off" if stop == "length" else "stop"
    made = tuple(ToolCall(call_id, name, arguments or "{}") for call_id, name, arguments in calls)
    return ModelReply(text, made, usage, {KEY: kept} if kept else {}, finish=finish, thought=bool(kept))


def _usage(given: Any) -> Usage:
    if given is None:
        return Usage(requests=1)
    details = given.prompt_tokens_details
    return Usage(given.prompt_tokens or 0, given.completion_tokens or 0, (details.cached_tokens if details else 0) or 0, 1)


@dataclass
class _Call:
    call_id: str
    name: str
    arguments: str = ""


@dataclass
class _Partial:
    """A reply that is being streamed."""

    text: str = ""
    calls: list[_Call] = field(default_factory=list)
    kept: dict[str, Any] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=lambda: Usage(requests=1))
    finish: str | None = None
    refused: bool = False

    def take(self, chunk: Any) -> list[ModelDelta]:
        """Add a chunk; what of it can be shown."""
        if chunk.usage is not None:
            self.usage = _usage(chunk.usage)
        if not chunk.choices:
            return []
        said = chunk.choices[0]
        self.finish = said.finish_reason or self.finish
        self.refused = self.refused or bool(said.delta.refusal)
        for key, value in (said.delta.model_extra or {}).items():
            if key in _REASONING and value:
                self.kept[key] = self.kept[key] + value if key in self.kept else value
        shown: list[ModelDelta] = []
        if said.delta.content:
            self.text += said.delta.content
            shown.append(TextDelta(said.delta.content))
        shown.extend(self._call(piece) for piece in said.delta.tool_calls or ())
        return shown

    def _call(self, piece: Any) -> ModelDelta:
        """Add a piece of a call. Some servers give every call the index 0: another id is another call."""
        function, index = piece.function, piece.index or 0
        place = self.places.get(index)
        if place is None or (piece.id and piece.id != self.calls[place].call_id):
            place = self.places[index] = len(self.calls)
            self.calls.append(_Call(piece.id or "", (function.name if function else None) or ""))
        made, arguments = self.calls[place], (function.arguments if function else None) or ""
        made.arguments += arguments
        return CallDelta(place, made.call_id, made.name, arguments)

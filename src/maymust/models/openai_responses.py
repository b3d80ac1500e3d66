"""Models of OpenAI's Responses API, over OpenAI's own SDK (extra `openai`).

model = OpenAIResponsesModel("gpt-6-sol")                     # the key is in OPENAI_API_KEY
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from maymust.models.capabilities import Capabilities
from maymust.models.capability_table import capabilities_of
from maymust.models.chat_model import CallDelta, Finish, ModelDelta, ModelReply, Offer, TextDelta, ToolDefinition, Usage
from maymust.models.failures import ModelFailure
from maymust.models.message import Message, Part, ToolCall
from maymust.models.past_call import name_of
from maymust.models.plain import in_words, output_schema
from maymust.models.sdk import RETRIES, TIMEOUT, Asked, Clients, SdkModel, sdk
from maymust.models.strict import is_strict

KEY = "openai-responses"
"""The key in `Message.extra` under which the items of a reply are kept, reasoning among them."""

Item = dict[str, Any]


class OpenAIResponsesModel(SdkModel):
    """A model of the Responses API, streamed or not. Nothing is stored at the provider: reasoning goes to and fro encrypted.

    model              its name, such as "gpt-6-sol"
    client             an `openai.AsyncOpenAI` of yours; without one, a client is made from the environment
    base_url, api_key  another server that speaks the protocol
    capabilities       replace what the table says of the name
    parallel           False asks for one call in a reply
    strict             constrain arguments to the tools' schemas, for tools whose schema the strict mode takes
    settings           go into each request as they are: `reasoning`, `max_output_tokens`, `prompt_cache_key`, ...

    Raises MissingExtra without the SDK.
    """

    provider = "openai-responses"
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
        super().__init__(model, capabilities or capabilities_of(model, "responses"), clients)
        self._parallel, self._strict, self._settings = parallel, strict, settings

    def _body(self, asked: Asked) -> dict[str, Any]:
        request, encoding, told = asked.request, asked.encoding, asked.capabilities
        body: dict[str, Any] = {"model": self._model, "store": False, **self._settings}
        if told.thinks:
            body.setdefault("include", ["reasoning.encrypted_content"])
        messages = list(request.messages)
        if encoding.level == 5:
            messages = in_words(messages, encoding.output, text=encoding.text)
            if encoding.output and told.json_schema:
                form = {"type": "json_schema", "name": "call", "schema": output_schema(encoding.output, text=encoding.text)}
                body["text"] = {**body.get("text", {}), "format": {**form, "strict": False}}
        if messages and messages[0].role == "system":
            body["instructions"] = messages.pop(0).text
        offers = request.offers if told.inline_tools and encoding.tools else ()
        first = {tool.name for tool in offers[0].added} if offers else {tool.name for tool in encoding.tools}
        later = {tool.name: tool for tool in encoding.tools if tool.name not in first}
        tools = [tool for tool in encoding.tools if tool.name in first]
        role = "developer" if told.late_system else "user"
        body["input"] = list(self._items(messages, offers, later, role))
        if encoding.reason:
            body["input"].append({"type": "message", "role": role, "content": encoding.reason})
        if encoding.tools:
            body["tools"] = [self._tool(tool, told) for tool in tools]
            body["tool_choice"] = _choice(encoding.choice, encoding.subset)
            if not self._parallel and told.parallel_switch:
                body["parallel_tool_calls"] = False
        return body

    def _items(
        self, messages: Sequence[Message], offers: Sequence[Offer], later: Mapping[str, ToolDefinition], role: str
    ) -> Iterable[Item]:
        """The conversation, with tools that came later defined at the place where they came."""
        added = {offer.at: [tool for tool in offer.added if tool.name in later] for offer in offers}
        for place, message in enumerate(messages):
            yield from self._added(added.get(place, ()))
            yield from _items_of(message, role)
        yield from self._added(added.get(len(messages), ()))

    def _added(self, tools: Sequence[ToolDefinition]) -> Iterable[Item]:
        if tools:
            yield {"type": "additional_tools", "role": "developer", "tools": [self._tool(tool, self._capabilities) for tool in tools]}

    def _tool(self, tool: ToolDefinition, told: Capabilities) -> Item:
        strict = self._strict and told.strict_schemas and is_strict(tool.parameters)
        # This API takes a missing `strict` for true.
        form = {"type": "function", "name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        return {**form, "strict": strict}

    async def _send(self, client: Any, body: Mapping[str, Any], *, stream: bool) -> Any:
        return await client.responses.with_raw_response.create(**body, stream=stream)

    def _read(self, answer: Any, asked: Asked) -> ModelReply:
        return _reply(answer)

    async def _deltas(self, events: Any, asked: Asked) -> AsyncIterator[ModelDelta | ModelReply]:
        calls: dict[int, Any] = {}
        whole: ModelReply | None = None
        async for event in events:
            if event.type == "response.output_text.delta":
                yield TextDelta(event.delta)
            elif event.type == "response.output_item.added" and event.item.type == "function_call":
                calls[event.output_index] = event.item
            elif event.type == "response.function_call_arguments.delta":
                item = calls[event.output_index]
                yield CallDelta(event.output_index, item.call_id, item.name, event.delta)
            elif event.type in ("response.completed", "response.incomplete"):
                whole = _reply(event.response)
            elif event.type in ("response.failed", "error"):
                raise ModelFailure(f"the model {self.name} gave no reply: {_fault(event)}", kind="server")
        if whole is None:
            raise ModelFailure(f"the stream of {self.name} ended before the reply did", kind="connection")
        yield whole


def _fault(event: Any) -> str:
    error = event.response.error if event.type == "response.failed" else event
    return getattr(error, "message", None) or "the response failed"


def _choice(choice: str, subset: tuple[str, ...] | None) -> Any:
    if subset is not None and choice in ("auto", "required"):
        return {"type": "allowed_tools", "mode": choice, "tools": [{"type": "function", "name": name} for name in subset]}
    return choice if choice in ("auto", "required", "none") else {"type": "function", "name": choice}


def _items_of(message: Message, role: str) -> Iterable[Item]:
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.call_id, "output": message.text}
    elif message.role == "assistant":
        yield from _assistant(message)
    else:
        who = role if message.kind == "status" else "developer" if message.role == "system" else "user"
        yield {"type": "message", "role": who, "content": _content(message)}


def _assistant(message: Message) -> Iterable[Item]:
    """The items of a reply. Ids of calls are those of the message: missing and repeated ones have been replaced."""
    kept, calls = message.extra.get(KEY), iter(message.calls)
    if isinstance(kept, Mapping) and sum(item["type"] == "function_call" for item in kept["items"]) == len(message.calls):
        for item in kept["items"]:
            own = {"call_id": next(calls).call_id, "name": name_of(item["name"])} if item["type"] == "function_call" else {}
            yield {**item, **own}
        return
    if message.text.strip():
        yield {"type": "message", "role": "assistant", "content": message.text}
    for call in calls:
        yield {"type": "function_call", "call_id": call.call_id, "name": name_of(call.name), "arguments": call.raw_arguments}


def _content(message: Message) -> Any:
    if not message.parts:
        return message.text or "(empty)"
    texts = [{"type": "input_text", "text": message.text}] if message.text.strip() else []
    return [*texts, *(_part(part) for part in message.parts)]


def _part(part: Part) -> Item:
    if part.kind == "text":
        return {"type": "input_text", "text": part.text or "(empty)"}
    if part.kind == "image":
        return {"type": "input_image", "image_url": part.url, "detail": "auto"}
    if (part.url or "").startswith("data:"):
        return {"type": "input_file", "filename": part.filename or "file", "file_data": part.url}
    return {"type": "input_file", "file_url": part.url}


def _reply(answer: Any) -> ModelReply:
    items = [_without_nothing(item.to_dict()) for item in answer.output]
    texts = [part["text"] for item in items if item["type"] == "message" for part in item["content"] if part["type"] == "output_text"]
    refused = any(part["type"] == "refusal" for item in items if item["type"] == "message" for part in item["content"])
    uses = [item for item in items if item["type"] == "function_call"]
    calls = tuple(ToolCall(item.get("call_id", ""), item["name"], item["arguments"]) for item in uses)
    thought = any(item["type"] == "reasoning" for item in items)
    why = answer.incomplete_details.reason if answer.incomplete_details else None
    finish: Finish = "refused" if refused or why == "content_filter" else "cut_off" if why else "stop"
    extra = {KEY: {"items": items}} if thought else {}
    return ModelReply("".join(texts), calls, _usage(answer.usage), extra, finish=finish, thought=thought)


def _without_nothing(item: Item) -> Item:
    """The item as JSON, without what is null: the API hands out more than it takes."""
    kept: Item = json.loads(json.dumps(item))
    return {key: value for key, value in kept.items() if value is not None}


def _usage(given: Any) -> Usage:
    if given is None:
        return Usage(requests=1)
    details = given.input_tokens_details
    return Usage(given.input_tokens, given.output_tokens, (details.cached_tokens if details else 0) or 0, 1)

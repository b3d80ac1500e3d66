"""Any model that pydantic-ai knows (extra `pydantic-ai`): Gemini, Bedrock, Mistral, Groq, Cohere, xAI, and what comes.

model = PydanticAIModel("google:gemini-3-pro")
model = PydanticAIModel("bedrock:us.amazon.nova-pro-v1:0")     # pip install 'pydantic-ai-slim[bedrock]'

How a subset of the tools is expressed there is pydantic-ai's business: `allowed_function_names` for Gemini, `allowed_tools` for
OpenAI, a filtered list elsewhere.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from maymust.models.capabilities import Capabilities
from maymust.models.chat_model import CallDelta, Finish, Lost, ModelDelta, ModelReply, ModelRequest, TextDelta, Usage
from maymust.models.encode import Encoding, encode
from maymust.models.failures import ModelFailure
from maymust.models.message import Message, Part, ToolCall
from maymust.models.past_call import name_of, object_text
from maymust.models.refusals import refused_ability
from maymust.models.sdk import failure_kind, sdk

log: logging.Logger = logging.getLogger("maymust.models")

KEY = "pydantic-ai"
"""The key in `Message.extra` under which a whole reply is kept, thinking and what providers hang on it included."""

_TOLD = Capabilities(subset="allowed_function_names", images=True, files=True)


class PydanticAIModel:
    """A model of pydantic-ai.

    model         its name there, such as "google:gemini-3-pro", or a `pydantic_ai.models.Model`
    capabilities  what the model can be told about tools; the default takes all that pydantic-ai takes
    settings      pydantic-ai's `ModelSettings`: `temperature`, `max_tokens`, ...

    Raises MissingExtra without pydantic-ai.
    """

    def __init__(self, model: Any, *, capabilities: Capabilities | None = None, **settings: Any) -> None:
        sdk("pydantic_ai", "pydantic-ai")
        self._model = sdk("pydantic_ai.models", "pydantic-ai").infer_model(model) if isinstance(model, str) else model
        self._capabilities, self._settings = capabilities or _TOLD, settings

    @property
    def name(self) -> str:
        """The model's name, after "pydantic-ai:"."""
        return f"pydantic-ai:{self._model.system}:{self._model.model_name}"

    @property
    def capabilities(self) -> Capabilities:
        """What the model can be told about tools."""
        return self._capabilities

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The whole reply. Raises ModelFailure."""
        lost: tuple[Lost, ...] = ()
        while True:
            encoding = self._encoding(request, lost)
            try:
                answer = await sdk("pydantic_ai.direct", "pydantic-ai").model_request(self._model, **self._asked(request, encoding))
                return _finished(_reply(answer), encoding, lost)
            except Exception as problem:
                lost = (*lost, self._lost(problem, request, encoding, lost))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        """Deltas as they come; the last item is the whole reply. Raises ModelFailure."""
        lost: tuple[Lost, ...] = ()
        while True:
            encoding, begun = self._encoding(request, lost), False
            open_stream = sdk("pydantic_ai.direct", "pydantic-ai").model_request_stream
            try:
                async with open_stream(self._model, **self._asked(request, encoding)) as events:
                    calls: dict[int, tuple[str, str]] = {}
                    async for event in events:
                        for delta in _deltas(event, calls):
                            begun = True
                            yield delta
                    answer = events.get()
                break
            except Exception as problem:
                lost = (*lost, self._lost(problem, request, encoding, lost, final=begun))
        yield _finished(_reply(answer), encoding, lost)

    def _encoding(self, request: ModelRequest, lost: tuple[Lost, ...]) -> Encoding:
        told = self._capabilities.without((*request.lost, *(one.ability for one in lost)))
        encoding = encode(request, told)
        if encoding.level == 5:
            # Without a tool API there is nothing to ask pydantic-ai for: the choice is left to the model.
            return Encoding(4, request.tools, "auto", reason=request.guidance, enforced_by="maymust")
        return encoding

    def _lost(self, problem: Exception, request: ModelRequest, sent: Encoding, lost: tuple[Lost, ...], *, final: bool = False) -> Lost:
        errors = sdk("pydantic_ai.exceptions", "pydantic-ai")
        if not isinstance(problem, errors.AgentRunError | errors.UserError):
            raise problem
        told = self._capabilities.without((*request.lost, *(one.ability for one in lost)))
        refusal = isinstance(problem, errors.UserError) or getattr(problem, "status_code", None) in (400, 422)
        ability = refused_ability(str(problem), sent, told) if refusal and not final else None
        if ability is None or ability in (one.ability for one in lost):
            kind = "rejected" if isinstance(problem, errors.UserError) else failure_kind(problem)
            said = f"the model {self.name} gave no reply ({kind.replace('_', ' ')}): {problem}"
            raise ModelFailure(said, kind=kind, attempts=1 + len(lost), lost=lost) from problem
        log.warning("%s does not take %s, so the run goes on without it: %s", self.name, ability, problem)
        return Lost(ability, str(problem))

    def _asked(self, request: ModelRequest, encoding: Encoding) -> dict[str, Any]:
        """What pydantic-ai is asked."""
        models = sdk("pydantic_ai.models", "pydantic-ai")
        definition = sdk("pydantic_ai.tools", "pydantic-ai").ToolDefinition
        tools = [
            definition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
            for tool in encoding.tools
        ]
        messages = list(request.messages)
        if encoding.reason:
            messages.append(Message("user", encoding.reason))
        settings = {**self._settings, **({"tool_choice": _choice(encoding)} if tools else {})}
        parameters = models.ModelRequestParameters(function_tools=tools, allow_text_output=True)
        return {"messages": _conversation(messages), "model_settings": settings, "model_request_parameters": parameters}


def _choice(encoding: Encoding) -> Any:
    if encoding.choice not in ("auto", "required", "none"):
        return [encoding.choice]
    if encoding.subset is None or encoding.choice == "none":
        return encoding.choice
    if encoding.choice == "required":
        return list(encoding.subset)
    return sdk("pydantic_ai.settings", "pydantic-ai").ToolOrOutput(function_tools=list(encoding.subset))


def _conversation(messages: Sequence[Message]) -> list[Any]:
    """The messages as pydantic-ai's."""
    kinds = sdk("pydantic_ai.messages", "pydantic-ai")
    names = {call.call_id: name_of(call.name) for message in messages for call in message.calls}
    said: list[Any] = []
    for message in messages:
        if message.role == "assistant":
            said.append(_response(message, kinds))
            continue
        if message.role == "system":
            part = kinds.SystemPromptPart(content=message.text)
        elif message.role == "tool":
            part = kinds.ToolReturnPart(
                tool_name=names.get(message.call_id or "", "tool"), content=message.text, tool_call_id=message.call_id
            )
        else:
            part = kinds.UserPromptPart(content=_content(message, kinds))
        if said and isinstance(said[-1], kinds.ModelRequest):
            said[-1].parts.append(part)
        else:
            said.append(kinds.ModelRequest(parts=[part]))
    return said


def _response(message: Message, kinds: Any) -> Any:
    """A reply as it came, thinking included, with the ids that the run knows its calls by."""
    kept = message.extra.get(KEY)
    if isinstance(kept, Mapping):
        response = kinds.ModelMessagesTypeAdapter.validate_python([dict(kept)])[0]
        calls = [part for part in response.parts if isinstance(part, kinds.ToolCallPart)]
        if len(calls) == len(message.calls):
            for part, call in zip(calls, message.calls, strict=True):
                part.tool_call_id = call.call_id
            return response
    text = [kinds.TextPart(content=message.text)] if message.text.strip() else []
    return kinds.ModelResponse(
        parts=[
            *text,
            *(
                kinds.ToolCallPart(tool_name=name_of(call.name), args=object_text(call.raw_arguments), tool_call_id=call.call_id)
                for call in message.calls
            ),
        ]
    )


def _content(message: Message, kinds: Any) -> Any:
    if not message.parts:
        return message.text or "(empty)"
    return [*([message.text] if message.text.strip() else []), *(_part(part, kinds) for part in message.parts)]


def _part(part: Part, kinds: Any) -> Any:
    if part.kind == "text":
        return part.text or "(empty)"
    url = part.url or ""
    if url.startswith("data:"):
        return kinds.BinaryContent.from_data_uri(url)
    return kinds.ImageUrl(url=url) if part.kind == "image" else kinds.DocumentUrl(url=url)


def _deltas(event: Any, calls: dict[int, tuple[str, str]]) -> list[ModelDelta]:
    """What of an event can be shown. `calls` has the id and name of each call that has begun."""
    if event.event_kind == "part_start":
        part = event.part
        if part.part_kind == "text":
            return [TextDelta(part.content)] if part.content else []
        if part.part_kind == "tool-call":
            calls[event.index] = (part.tool_call_id, part.tool_name)
            return [CallDelta(event.index, *calls[event.index], _raw(part))] if part.args else []
    elif event.event_kind == "part_delta":
        delta = event.delta
        if delta.part_delta_kind == "text":
            return [TextDelta(delta.content_delta)]
        if delta.part_delta_kind == "tool_call" and event.index in calls and isinstance(delta.args_delta, str):
            return [CallDelta(event.index, *calls[event.index], delta.args_delta)]
    return []


def _raw(part: Any) -> str:
    return part.args if isinstance(part.args, str) else part.args_as_json_str()


def _reply(answer: Any) -> ModelReply:
    kinds = sdk("pydantic_ai.messages", "pydantic-ai")
    texts = [part.content for part in answer.parts if isinstance(part, kinds.TextPart)]
    uses = [part for part in answer.parts if isinstance(part, kinds.ToolCallPart)]
    calls = tuple(ToolCall(part.tool_call_id or "", part.tool_name, _raw(part) if part.args else "{}") for part in uses)
    thought = any(isinstance(part, kinds.ThinkingPart) for part in answer.parts)
    finish: Finish = "cut_off" if answer.finish_reason == "length" else "refused" if answer.finish_reason == "content_filter" else "stop"
    kept = kinds.ModelMessagesTypeAdapter.dump_python([answer], mode="json")[0] if thought else None
    spent = answer.usage
    usage = Usage(spent.input_tokens or 0, spent.output_tokens or 0, spent.cache_read_tokens or 0, 1)
    return ModelReply("".join(texts), calls, usage, {KEY: kept} if kept else {}, finish=finish, thought=thought)


def _finished(reply: ModelReply, encoding: Encoding, lost: tuple[Lost, ...]) -> ModelReply:
    spent = reply.usage + Usage(requests=len(lost))
    return replace(reply, usage=spent, enforced_by=encoding.enforced_by, level=encoding.level, lost=lost)

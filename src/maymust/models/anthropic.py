"""Claude, over Anthropic's own SDK (extra `anthropic`).

model = AnthropicModel("claude-opus-5-5")                      # the key is in ANTHROPIC_API_KEY
model = AnthropicModel("my-model", base_url="http://localhost:8000", api_key="-")
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maymust.models.anthropic_messages import KEY, conversation, mark, tool_block
from maymust.models.capabilities import Capabilities
from maymust.models.capability_table import capabilities_of
from maymust.models.chat_model import CallDelta, Finish, ModelDelta, ModelReply, TextDelta, Usage
from maymust.models.failures import ModelFailure
from maymust.models.message import ToolCall
from maymust.models.past_call import object_of
from maymust.models.plain import in_words, output_schema
from maymust.models.sdk import RETRIES, TIMEOUT, Asked, Clients, SdkModel, sdk

CHANGES = "mid-conversation-tool-changes-2026-07-01"
INLINE = "inline-tools-2026-09-15"


class AnthropicModel(SdkModel):
    """A model of the Messages API, streamed or not.

    model              its name, such as "claude-opus-5-5"
    client             an `anthropic.AsyncAnthropic` of yours; without one, a client is made from the environment
    base_url, api_key  another server that speaks the protocol
    capabilities       replace what the table says of the name
    max_tokens         the longest reply, thinking included
    parallel           False asks for one call in a reply
    strict             constrain arguments to the tools' schemas where the model can
    cache              False leaves out the marks for the prompt cache
    settings           go into each request as they are: `thinking`, `temperature`, `output_config`, ...

    Raises MissingExtra without the SDK.
    """

    provider = "anthropic"
    key_variable = "ANTHROPIC_API_KEY"

    def __init__(
        self,
        model: str,
        *,
        client: Any = None,
        base_url: str | None = None,
        api_key: str | None = None,
        capabilities: Capabilities | None = None,
        max_tokens: int = 8192,
        max_retries: int = RETRIES,
        timeout: float = TIMEOUT,
        parallel: bool = True,
        strict: bool = False,
        cache: bool = True,
        **settings: Any,
    ) -> None:
        library = sdk("anthropic", "anthropic")
        at = {"base_url": base_url, "api_key": api_key}
        clients = Clients(client, lambda: library.AsyncAnthropic(**at, max_retries=max_retries, timeout=timeout))
        told = capabilities or capabilities_of(model, "messages")
        thinking = settings.get("thinking")
        super().__init__(model, told, clients, None if thinking is None else thinking.get("type") != "disabled")
        self._max_tokens, self._parallel, self._strict, self._cache, self._settings = max_tokens, parallel, strict, cache, settings

    def _body(self, asked: Asked) -> dict[str, Any]:
        request, encoding, told = asked.request, asked.encoding, asked.capabilities
        body: dict[str, Any] = {"model": self._model, "max_tokens": self._max_tokens, **self._settings}
        messages = list(request.messages)
        if encoding.level == 5:
            messages = in_words(messages, encoding.output, text=encoding.text)
            if encoding.output and told.json_schema:
                schema = output_schema(encoding.output, text=encoding.text)
                body["output_config"] = {**body.get("output_config", {}), "format": {"type": "json_schema", "schema": schema}}
        changing = told.subset == "tool_changes" and encoding.level != 5
        offers = request.offers if changing else ()
        system = messages.pop(0).text if messages and messages[0].role == "system" else ""
        written = conversation(messages, offers, late_system=told.late_system, inline=told.inline_tools)
        stable = len(written)
        if messages and messages[-1].kind == "status" and not self._status_stays:
            stable -= 1
        if encoding.reason:
            reason = [{"type": "text", "text": encoding.reason}]
            written.append({"role": "system" if told.late_system and written[-1]["role"] == "user" else "user", "content": reason})
        tools = self._tools(asked, changing=bool(offers))
        if tools:
            body["tools"], body["tool_choice"] = tools, self._choice(encoding.choice, told)
        if system:
            body["system"] = [{"type": "text", "text": system}]
        if self._cache:
            _mark_all(body, written, stable)
        body["messages"] = written
        betas = [beta for beta, used in ((CHANGES, bool(offers)), (INLINE, bool(offers) and told.inline_tools)) if used]
        return {**body, "betas": betas} if betas else body

    @property
    def _status_stays(self) -> bool:
        return self._capabilities.prefix_bound or self._capabilities.subset == "tool_changes"

    def _tools(self, asked: Asked, *, changing: bool) -> list[dict[str, Any]]:
        tools = asked.encoding.tools
        if changing and tools:
            offers = asked.request.offers
            inline = asked.capabilities.inline_tools
            tools = offers[0].added if inline else tuple({tool.name: tool for offer in offers for tool in offer.added}.values())
        strict = self._strict and asked.capabilities.strict_schemas
        return [{**tool_block(tool, strict=strict)} for tool in tools]

    def _choice(self, choice: str, told: Capabilities) -> dict[str, Any]:
        kind = {"auto": "auto", "required": "any", "none": "none"}.get(choice, "tool")
        written: dict[str, Any] = {"type": kind}
        if kind == "tool":
            written["name"] = choice
        if not self._parallel and told.parallel_switch and kind != "none":
            written["disable_parallel_tool_use"] = True
        return written

    async def _send(self, client: Any, body: Mapping[str, Any], *, stream: bool) -> Any:
        messages = client.beta.messages if "betas" in body else client.messages
        return await messages.with_raw_response.create(**body, stream=stream)

    def _read(self, answer: Any, asked: Asked) -> ModelReply:
        return _reply([_plain(block) for block in answer.content], [], answer.stop_reason, _usage(answer.usage))

    async def _deltas(self, events: Any, asked: Asked) -> AsyncIterator[ModelDelta | ModelReply]:
        partial = _Partial()
        async for event in events:
            for delta in partial.take(event):
                yield delta
        if not partial.over:
            raise ModelFailure(f"the stream of {self.name} ended before the reply did", kind="connection")
        places = sorted(partial.blocks)
        raw = [partial.raw.get(at, "") for at in places if partial.blocks[at]["type"] == "tool_use"]
        yield _reply([partial.blocks[at] for at in places], raw, partial.stop, partial.usage)


def _mark_all(body: dict[str, Any], written: list[dict[str, Any]], stable: int) -> None:
    """Breakpoints after the tools and the system prompt, and after the last message that the next request will hold as well."""
    if "system" in body:
        mark(body["system"])
    elif body.get("tools"):
        body["tools"][-1] = {**body["tools"][-1], "cache_control": {"type": "ephemeral"}}
    if stable:
        mark(written[stable - 1]["content"])


def _plain(block: Any) -> dict[str, Any]:
    """A block of a reply, with what the API wants back."""
    wanted = {
        "text": ("type", "text"),
        "thinking": ("type", "thinking", "signature"),
        "redacted_thinking": ("type", "data"),
        "tool_use": ("type", "id", "name", "input"),
    }
    whole = block.to_dict()
    return {key: whole[key] for key in wanted.get(block.type, whole) if key in whole}


def _reply(blocks: list[dict[str, Any]], raw: Sequence[str], stop: str | None, usage: Usage) -> ModelReply:
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    uses = [block for block in blocks if block["type"] == "tool_use"]
    calls = tuple(
        ToolCall(use["id"], use["name"], text or json.dumps(use["input"], ensure_ascii=False))
        for use, text in zip(uses, raw or [""] * len(uses), strict=True)
    )
    thought = any(block["type"] in ("thinking", "redacted_thinking") for block in blocks)
    finish: Finish = "refused" if stop == "refusal" else "cut_off" if stop in ("max_tokens", "model_context_window_exceeded") else "stop"
    # A text of nothing but space comes back from the API, which does not take it.
    kept = [_storable(block) for block in blocks if block["type"] != "text" or block["text"].strip()]
    extra = {KEY: {"content": kept}} if thought else {}
    return ModelReply("\n".join(texts), calls, usage, extra, finish=finish, thought=thought)


def _storable(block: dict[str, Any]) -> dict[str, Any]:
    """The block without numbers in its input that no JSON can hold; the SDK reads them as infinities."""
    return {**block, "input": object_of(json.dumps(block["input"]))} if block["type"] == "tool_use" else block


def _usage(given: Any) -> Usage:
    read, made = given.cache_read_input_tokens or 0, given.cache_creation_input_tokens or 0
    return Usage((given.input_tokens or 0) + read + made, given.output_tokens or 0, read, 1)


@dataclass
class _Partial:
    """A reply that is being streamed. `raw` has the arguments by the place of their block, as they were written."""

    blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    raw: dict[int, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    stop: str | None = None
    over: bool = False

    def take(self, event: Any) -> list[ModelDelta]:
        """Add an event; what of it can be shown."""
        if event.type == "message_start":
            self.usage = _usage(event.message.usage)
        elif event.type == "content_block_start":
            self.blocks[event.index] = _plain(event.content_block)
        elif event.type == "content_block_delta":
            return self._delta(self.blocks[event.index], event.index, event.delta)
        elif event.type == "content_block_stop" and self.blocks[event.index]["type"] == "tool_use":
            block = self.blocks[event.index]
            block["input"] = object_of(self.raw.get(event.index) or "{}")
        elif event.type == "message_delta":
            self.stop = event.delta.stop_reason
            self.usage = Usage(self.usage.input_tokens, event.usage.output_tokens or 0, self.usage.cached_tokens, 1)
        elif event.type == "message_stop":
            self.over = True
        return []

    def _delta(self, block: dict[str, Any], index: int, delta: Any) -> list[ModelDelta]:
        if delta.type == "text_delta":
            block["text"] += delta.text
            return [TextDelta(delta.text)]
        if delta.type == "input_json_delta":
            self.raw[index] = self.raw.get(index, "") + delta.partial_json
            return [CallDelta(index, block["id"], block["name"], delta.partial_json)] if delta.partial_json else []
        if delta.type == "thinking_delta":
            block["thinking"] += delta.thinking
        elif delta.type == "signature_delta":
            block["signature"] = delta.signature
        return []

"""The three adapters over official SDKs, pointed at a picky server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import openai

from maymust.models import Capabilities, ChatModel, ModelReply, ModelRequest
from maymust.models.anthropic import AnthropicModel
from maymust.models.openai import OpenAIChatModel, OpenAIResponsesModel
from tests.models.picky import PickyServer

NEWEST = {"chat": "gpt-6-sol", "responses": "gpt-6-sol", "messages": "claude-opus-5-5"}
FORCEABLE = {"chat": "gpt-6-sol", "responses": "gpt-6-sol", "messages": "claude-opus-4-6"}
APIS = tuple(NEWEST)


@asynccontextmanager
async def opened(api: str, server: PickyServer, model: str | None = None, **settings: Any) -> AsyncIterator[ChatModel]:
    """The adapter for an API, and its client closed in the end."""
    made = adapter(api, server, model, **settings)
    try:
        yield made
    finally:
        await made._clients.get().close()  # type: ignore[attr-defined]  # the client is ours


def adapter(
    api: str,
    server: PickyServer,
    model: str | None = None,
    *,
    capabilities: Capabilities | None = None,
    retries: int = 2,
    timeout: float = 5,
    **settings: Any,
) -> ChatModel:
    """The adapter for an API. Its client waits as short as the SDK lets it."""
    name = model or NEWEST[api]
    if api == "messages":
        claude = anthropic.AsyncAnthropic(base_url=server.url, api_key="-", max_retries=retries, timeout=timeout)
        return AnthropicModel(name, client=claude, capabilities=capabilities, **settings)
    client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="-", max_retries=retries, timeout=timeout)
    kind: Callable[..., ChatModel] = OpenAIChatModel if api == "chat" else OpenAIResponsesModel
    return kind(name, client=client, capabilities=capabilities, **settings)


async def streamed(model: ChatModel, request: ModelRequest) -> tuple[list[Any], ModelReply]:
    """All deltas, and the reply at the end."""
    items = [item async for item in model.stream(request)]
    assert isinstance(items[-1], ModelReply)
    return items[:-1], items[-1]

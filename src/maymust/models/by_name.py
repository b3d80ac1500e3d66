"""A model from a short text: "local", "openai:NAME", "anthropic:NAME"."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from maymust.core.tool_spec import closest
from maymust.errors import PolicyError
from maymust.models.chat_model import ChatModel

_PROVIDERS = {
    "local": ("maymust.models.local", "LocalModel"),
    "openai": ("maymust.models.openai", "OpenAIChatModel"),
    "openai-responses": ("maymust.models.openai_responses", "OpenAIResponsesModel"),
    "anthropic": ("maymust.models.anthropic", "AnthropicModel"),
    "pydantic-ai": ("maymust.models.pydantic_ai", "PydanticAIModel"),
}


_GIVE = (
    'Give "local", "openai:NAME", "anthropic:NAME", "pydantic-ai:PROVIDER:NAME", or a ChatModel; '
    'for a server of your own, maymust.models.openai.OpenAIChatModel("NAME", base_url="http://...").'
)


def model_by_name(text: str) -> ChatModel:
    """The model a text such as "local", "local:path.gguf" or "openai:gpt-5" stands for.

    Raises PolicyError for an unknown provider or a missing name, and what the adapter raises when its extra is not installed.
    """
    provider, colon, name = text.partition(":")
    if provider not in _PROVIDERS:
        meant = closest(provider, tuple(_PROVIDERS))
        hint = f"; did you mean {meant[0]!r}?" if meant else "."
        what = f"unknown provider {provider!r}" if colon else "the provider is missing"
        raise PolicyError(f"model {text!r}: {what}{hint} {_GIVE}")
    if not name and provider != "local":
        raise PolicyError(f'model {text!r}: the name is missing; write "{provider}:NAME"')
    module, kind = _PROVIDERS[provider]
    make = getattr(import_module(module), kind)
    return cast("ChatModel", make(name) if name else make())

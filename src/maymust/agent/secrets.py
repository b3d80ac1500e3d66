"""Secrets in arguments (`SecretStr` and its kin): they reach the tool's body, and nothing that is shown or stored.

Masked are the conversation, steps, events and the JSON of a state. Only the record of a call that has no result yet holds what the
model wrote, and only in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass, replace
from typing import Any, NoReturn

from maymust.agent.call_arguments import read_arguments
from maymust.agent.present import Present
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import RunError, text_of
from maymust.models.chat_model import ModelReply
from maymust.models.message import ToolCall

MASK = "**********"
"""What stands in the place of a secret; the word pydantic uses."""

_SHORTEST = 4


class Veil:
    """Hides what must not be seen of one call: the values of its secret parameters, wherever they turn up.

    names    parameters that take secrets
    strict   the tool takes no other parameters than those in `known`, so a value under another name may be a misspelt secret
    """

    def __init__(self, names: frozenset[str], known: frozenset[str] = frozenset(), *, strict: bool = False) -> None:
        self._names, self._known, self._strict = names, known, strict
        self._values: dict[str, None] = {}

    def learn(self, arguments: Any) -> Veil:
        """Remember the secrets in these arguments, as the model wrote them or validated, to find them in texts."""
        if isinstance(arguments, Mapping):
            for name, value in arguments.items():
                if self._hides(name):
                    self._values.update(dict.fromkeys(text for text in _texts(value) if len(text) >= _SHORTEST and text != MASK))
        return self

    def arguments(self, arguments: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """The arguments with secrets masked."""
        if arguments is None:
            return None
        return {name: MASK if self._hides(name) and value not in (None, "") else self.value(value) for name, value in arguments.items()}

    def raw(self, raw: str) -> str:
        """The arguments as text with secrets masked. Of what is no JSON object only the names of the secrets are left."""
        arguments, _ = read_arguments(raw)
        if arguments is None:
            return json.dumps(dict.fromkeys(sorted(self._names), MASK))
        shown = self.learn(arguments).arguments(arguments)
        return raw if shown == arguments else json.dumps(shown, ensure_ascii=False)

    def text(self, text: str) -> str:
        """A text with secrets masked."""
        for secret in self._values:
            for form in {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
                text = text.replace(form, MASK)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value with secrets masked in its texts."""
        if not self._values:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.value(part) for key, part in value.items()}
        return [self.value(part) for part in value] if isinstance(value, list | tuple) else value

    def _hides(self, name: str) -> bool:
        return name in self._names or (self._strict and name not in self._known)


def _texts(value: Any) -> Iterable[str]:
    reveal = getattr(value, "get_secret_value", None)
    if reveal is not None:
        value = reveal()
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, Mapping):
        value = list(value.values())
    elif hasattr(type(value), "model_fields") or (is_dataclass(value) and not isinstance(value, type)):
        value = list(vars(value).values())
    if isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _texts(part)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def raise_veiled(fault: Exception, veil: Veil | None) -> NoReturn:
    """Raise a fault; where a secret stands in its text, which is kept with the run, an error of the run without it."""
    if veil is None:
        raise fault
    text = f"the run broke off: {type(fault).__name__}: {text_of(fault)}"
    shown = veil.text(text)
    if shown == text:
        raise fault
    raise RunError(shown) from fault


def veil_of(name: str, present: Present) -> Veil | None:
    """The veil of a call of this name; None when there is nothing to hide. A misspelt name may stand for any tool with secrets."""
    if name == FINAL_ANSWER or not present.takes_secrets():
        return None
    meant = present.by_name.get(name)
    if meant is None:
        return Veil(frozenset(secret for tool in present.tools for secret in tool.secrets))
    if not meant.secrets:
        return None
    schema = meant.parameters
    return Veil(meant.secrets, frozenset(schema.get("properties", ())), strict=schema.get("additionalProperties") is False)


def shown_reply(reply: ModelReply, present: Present) -> ModelReply:
    """The reply as it may be shown and stored; the very same object when there is nothing to hide."""
    if not present.takes_secrets():
        return reply
    veils = [veil_of(call.name, present) for call in reply.calls]
    if not any(veils):
        return reply
    calls = tuple(
        call if veil is None else ToolCall(call.call_id, call.name, veil.raw(call.raw_arguments))
        for call, veil in zip(reply.calls, veils, strict=True)
    )
    text, extra = reply.text, reply.extra
    for veil in veils:
        if veil is not None:
            text, extra = veil.text(text), veil.value(extra)
    return replace(reply, text=text, calls=calls, extra=extra)

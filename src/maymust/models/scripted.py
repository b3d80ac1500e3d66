"""A model that says what its script says: for tests, and for showing what rules do without a model.

model = ScriptedModel([call("search", q="x"), [call("read", page=1), call("read", page=2)], "That is all I found."])
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maymust.errors import RunError
from maymust.models.capabilities import Capabilities
from maymust.models.chat_model import CallDelta, ModelDelta, ModelReply, ModelRequest, TextDelta, Usage
from maymust.models.message import ToolCall


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One call of a script, made by `call`. Without a `call_id` the script numbers it."""

    name: str
    raw_arguments: str = "{}"
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One turn of a script, made by `reply`."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    tokens: int = 0


Turn = str | ScriptedCall | ScriptedReply | Iterable[ScriptedCall]


def call(name: str, /, *, call_id: str | None = None, raw_arguments: str | None = None, **arguments: Any) -> ScriptedCall:
    """A call of the tool `name` with these arguments, or with `raw_arguments` as the text the model wrote, be it JSON or not."""
    if raw_arguments is None:
        raw_arguments = json.dumps(arguments, ensure_ascii=False)
    elif arguments:
        raise TypeError(f"call({name!r}): give raw_arguments or arguments by name, not both")
    return ScriptedCall(name, raw_arguments, call_id)


def reply(*texts_and_calls: str | ScriptedCall, tokens: int = 0) -> ScriptedReply:
    """A turn with text and calls together; `reply()` is an empty one. `tokens` is the usage it reports."""
    texts = [item for item in texts_and_calls if isinstance(item, str)]
    calls = [item for item in texts_and_calls if isinstance(item, ScriptedCall)]
    if len(texts) + len(calls) != len(texts_and_calls):
        raise TypeError("reply takes texts and call(...), nothing else")
    return ScriptedReply("\n".join(texts), tuple(calls), tokens)


class ScriptedModel:
    """Replies with the turns of a script, in order.

    A turn is a text, one `call(...)`, a list of them, or a `reply(...)`. Calls without an id are numbered c1, c2, … by their
    place among the calls of the script. `requests` holds what the model was asked, oldest first. Several runs may share one
    object; each model call takes the next turn. A script that runs out raises RunError.
    """

    def __init__(self, turns: Iterable[Turn], *, capabilities: Capabilities | None = None, name: str = "scripted") -> None:
        if isinstance(turns, str | ScriptedCall | ScriptedReply):
            raise TypeError("a script is a list of turns: ScriptedModel([turn, ...])")
        self._replies = tuple(_numbered(_reply_of(turn) for turn in turns))
        self._requests: list[ModelRequest] = []
        self._lock = threading.Lock()
        self._capabilities = capabilities or Capabilities()
        self._name = name

    @property
    def name(self) -> str:
        """The name given at construction."""
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """What the script's model claims to be able to do; it does what the script says all the same."""
        return self._capabilities

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """What was asked so far."""
        with self._lock:
            return tuple(self._requests)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next turn. Raises RunError when the script has no more."""
        return self._next(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        """The next turn word by word, then whole."""
        whole = self._next(request)
        for piece in re.findall(r"\s*\S+|\s+$", whole.text):
            yield TextDelta(piece)
        for index, made in enumerate(whole.calls):
            for start in range(0, max(len(made.raw_arguments), 1), 8):
                yield CallDelta(index, made.call_id, made.name, made.raw_arguments[start : start + 8])
        yield whole

    def _next(self, request: ModelRequest) -> ModelReply:
        with self._lock:
            turn = len(self._requests)
            if turn >= len(self._replies):
                raise RunError(
                    f"The script of this ScriptedModel is too short: it has {len(self._replies)} turns and was asked for turn {turn + 1}. "
                    "Add a turn to the script, or let it end the run (a call of final_answer, or a text where stopping is allowed)."
                )
            self._requests.append(request)
            return self._replies[turn]


def _reply_of(turn: Turn) -> ScriptedReply:
    if isinstance(turn, ScriptedReply):
        return turn
    if isinstance(turn, bytes | Mapping) or not isinstance(turn, str | ScriptedCall | Iterable):
        raise TypeError(f"{turn!r:.80} is no turn of a script; a turn is a text, call(...), a list of calls, or reply(...)")
    return reply(turn) if isinstance(turn, str | ScriptedCall) else reply(*turn)


def _numbered(turns: Iterable[ScriptedReply]) -> Iterator[ModelReply]:
    numbers = itertools.count(1)
    for turn in turns:
        calls = [
            replace(made, call_id=made.call_id or default) for made, default in zip(turn.calls, (f"c{n}" for n in numbers), strict=False)
        ]
        yield ModelReply(
            text=turn.text,
            calls=tuple(ToolCall(made.call_id or "", made.name, made.raw_arguments) for made in calls),
            usage=Usage(output_tokens=turn.tokens, requests=1),
        )

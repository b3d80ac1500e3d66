"""The scripted model. Where one agent makes several runs, it serves each run its own script by the first thing the user said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from maymust.models import Capabilities, ScriptedModel, call, reply
from tests.tables.harness.rows import ScriptedTurn


def scripted_model(script: Sequence[ScriptedTurn]) -> ScriptedModel:
    """A model that makes these turns."""
    return ScriptedModel([_turn(turn) for turn in script])


def _turn(turn: ScriptedTurn) -> Any:
    calls = [
        call(item.name, call_id=item.call_id, raw_arguments=item.raw)
        if item.args is None
        else call(item.name, call_id=item.call_id, **item.args)
        for item in turn.calls
    ]
    return reply(*([turn.text] if turn.text is not None else []), *calls, tokens=turn.tokens)


class ModelOfManyRuns:
    """A peer that holds a script for each run and tells the runs apart by the user's first words."""

    name = "scripted:many"
    capabilities = Capabilities()

    def __init__(self, scripts: dict[str, ScriptedModel]) -> None:
        self.scripts = scripts

    async def complete(self, request: Any) -> Any:
        """The next turn of the script of this run."""
        return await self._script(request).complete(request)

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        """The same in pieces."""
        async for piece in self._script(request).stream(request):
            yield piece

    def _script(self, request: Any) -> ScriptedModel:
        first = next(message.text for message in request.messages if message.role == "user")
        return self.scripts[first]

"""A step as a conversation tells it: what nobody looks at is not read."""

from __future__ import annotations

import json
from typing import Any

from maymust.core.step import Outcome, Step
from maymust.gateway.conversation import Called, arguments_of

_set = object.__setattr__


class ToldStep(Step):
    """A step that is read from its call when somebody first asks: of most calls, rules only want the tool and the outcome."""

    __slots__ = ("_arguments", "_output", "_told")
    _arguments: Any
    _output: Any
    _told: Called

    def __init__(self, told: Called, outcome: Outcome) -> None:
        _set(self, "tool", told.name)
        _set(self, "outcome", outcome)
        _set(self, "_told", told)

    @property
    def arguments(self) -> Any:
        """See `Step`."""
        try:
            return self._arguments
        except AttributeError:
            _set(self, "_arguments", arguments_of(self._told.arguments))
            return self._arguments

    @property
    def output(self) -> Any:
        """See `Step`. Clients send it as text."""
        try:
            return self._output
        except AttributeError:
            _set(self, "_output", _value(self.text) if self.outcome is Outcome.OK else None)
            return self._output

    @property
    def call_id(self) -> str | None:
        """See `Step`."""
        return self._told.call_id

    @property
    def text(self) -> str | None:
        """See `Step`."""
        returned = self._told.returned
        return None if returned is None else returned.text

    @property
    def untrusted(self) -> bool:
        """See `Step`. A conversation does not tell it."""
        return False

    def __eq__(self, other: object) -> bool:
        return self.plain() == (other.plain() if isinstance(other, ToldStep) else other)

    __hash__ = Step.__hash__

    def plain(self) -> Step:
        """The same step with everything read."""
        return Step(self.tool, self.outcome, self.arguments, self.output, self.call_id, self.text, self.untrusted)


def _value(text: str | None) -> Any:
    if text is None or text[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

"""A step as a conversation tells it: what nobody looks at is not read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from maymust.core.step import Outcome, Step
from maymust.gateway.conversation import Called, arguments_of

_STEP: Any = Step


class _Late:
    """A field of a step that is made when it is first read."""

    __slots__ = ("_make", "_slot")

    def __init__(self, slot: Any, make: Callable[[Any], Any]) -> None:
        self._slot = slot
        self._make = make

    def __get__(self, step: Any, owner: Any = None) -> Any:
        if step is None:
            return self
        try:
            return self._slot.__get__(step)
        except AttributeError:
            self._slot.__set__(step, self._make(step))
            return self._slot.__get__(step)

    def __set__(self, step: Any, value: Any) -> None:
        self._slot.__set__(step, value)


class ToldStep(Step):
    """A step that is read from its call when somebody first asks: of most calls, rules only want the tool and the outcome."""

    __slots__ = ("_told",)

    arguments: Any = _Late(_STEP.arguments, lambda step: arguments_of(step._told.arguments))
    output: Any = _Late(_STEP.output, lambda step: _value(step.text) if step.outcome is Outcome.OK else None)
    call_id: Any = _Late(_STEP.call_id, lambda step: step._told.call_id)
    text: Any = _Late(_STEP.text, lambda step: None if step._told.returned is None else step._told.returned.text)
    untrusted: Any = _Late(_STEP.untrusted, lambda step: False)

    def __eq__(self, other: object) -> bool:
        return self.plain() == (other.plain() if isinstance(other, ToldStep) else other)

    __hash__ = Step.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return (Step, self._fields())

    def plain(self) -> Step:
        """The same step with everything read."""
        return Step(*self._fields())

    def _fields(self) -> tuple[Any, ...]:
        return self.tool, self.outcome, self.arguments, self.output, self.call_id, self.text, self.untrusted


# As a frozen class sets them, without looking up their names.
_set_tool: Callable[[ToldStep, str], None] = _STEP.tool.__set__
_set_outcome: Callable[[ToldStep, Outcome], None] = _STEP.outcome.__set__
_set_told: Callable[[ToldStep, Called], None] = ToldStep.__dict__["_told"].__set__
_new = ToldStep.__new__


def told_step(called: Called, outcome: Outcome) -> ToldStep:
    """The step that a call and its result are."""
    made = _new(ToldStep)
    _set_tool(made, called.name)
    _set_outcome(made, outcome)
    _set_told(made, called)
    return made


def _value(text: str | None) -> Any:
    """The JSON form of what a tool returned: clients send it as text."""
    if text is None or text[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

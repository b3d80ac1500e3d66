"""How much a run may use, and whether it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maymust.errors import PolicyError

if TYPE_CHECKING:
    from maymust.agent.state import RunState


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one run. None is no limit.

    turns    model calls; in the last one the model can only answer, if answering is allowed
    steps    invocations (calls that ran); a call beyond it is refused
    errors   failing turns in a row: a turn with a failed step and none that is ok
    tokens   tokens of all model calls together
    seconds  running time; the time a run is paused does not count

    When steps, errors, tokens or seconds are spent, one more turn is made if it can force `final_answer`.
    Raises PolicyError for a limit below 1 (below 0 for `steps`, above 0 for `seconds`).
    """

    turns: int | None = 20
    steps: int | None = None
    errors: int | None = 3
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("turns", 1), ("steps", 0), ("errors", 1), ("tokens", 1)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise PolicyError(f"Budget({name}={value!r}): give a whole number of at least {least}, or None for no limit")
        seconds: Any = self.seconds
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0):
            raise PolicyError(f"Budget(seconds={self.seconds!r}): give a number of seconds above 0, or None for no limit")

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"turns": self.turns, "steps": self.steps, "errors": self.errors, "tokens": self.tokens, "seconds": self.seconds}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Budget:
        """The budget whose `to_dict` gave `data`."""
        return cls(**data)


def spent(state: RunState) -> str | None:
    """What is spent (apart from turns), in words; None while there is something left."""
    budget = state.budget
    if budget.steps is not None and state.invocations >= budget.steps:
        return f"the budget of {budget.steps} steps is spent"
    if budget.errors is not None and state.failing_turns >= budget.errors:
        return f"{state.failing_turns} turns in a row failed"
    if budget.tokens is not None and state.usage.total_tokens >= budget.tokens:
        return f"the budget of {budget.tokens} tokens is spent"
    if budget.seconds is not None and state.seconds >= budget.seconds:
        return f"the budget of {budget.seconds:g} seconds is spent"
    return None

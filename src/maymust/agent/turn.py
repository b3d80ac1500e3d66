"""A turn of a run: planned, made, and what is known beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from maymust.agent.loop_guard import Measure
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.rule import Rule
from maymust.models.chat_model import NO_USAGE, Usage

Phase = Literal["plan", "model", "batch", "ended"]
StopReason = Literal["final_answer", "text_answer", "paused", "stalled", "budget", "aborted", "error"]


@dataclass(slots=True)
class Turn:
    """One model call: the permit that shaped it, and what came back. Nobody changes it; not frozen, for that costs in every turn.

    first_step   index in `RunState.steps` of the first step of this turn
    relaxed      obligations were off
    grace        made beyond the budget, to answer
    measure      what the loop guard did about this turn
    finish       who forced the final answer beside the policy: "budget", "loop_guard", "ladder"
    enforced_by  "provider" when the request itself could express the permit, else "maymust"
    level        how the permit reached the model, 1 to 5 (design 3.11)
    """

    number: int
    permit: Permit
    text: str = ""
    call_ids: tuple[str, ...] = ()
    first_step: int = 0
    usage: Usage = NO_USAGE
    relaxed: bool = False
    grace: bool = False
    measure: Measure | None = None
    enforced_by: str = "maymust"
    guidance: str = ""
    level: int = 0
    finish: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "number": self.number,
            "permit": self.permit.to_dict(),
            "text": self.text,
            "call_ids": list(self.call_ids),
            "first_step": self.first_step,
            "usage": self.usage.to_dict(),
            "relaxed": self.relaxed,
            "grace": self.grace,
            "measure": None if self.measure is None else asdict(self.measure),
            "enforced_by": self.enforced_by,
            "guidance": self.guidance,
            "level": self.level,
            "finish": self.finish,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], history: History) -> Turn:
        """The turn whose `to_dict` gave `data`, over the history of its run."""
        permit, measure = data["permit"], data["measure"]
        fields = {
            **data,
            "permit": Permit.from_dict(permit, history.at(permit["steps"])),
            "call_ids": tuple(data["call_ids"]),
            "usage": Usage(**data["usage"]),
            "measure": None if measure is None else Measure(**measure),
        }
        return cls(**fields)


@dataclass(slots=True)
class TurnPlan:
    """The coming turn. `ends` is set when there is none: the stop reason of the run."""

    permit: Permit | None = None
    relaxed: bool = False
    grace: bool = False
    measure: Measure | None = None
    finish: str | None = None
    ends: StopReason | None = None


@dataclass(frozen=True, slots=True)
class GivenRules:
    """What an opaque requirement said, and after how many steps."""

    rules: tuple[Rule, ...]
    at: int

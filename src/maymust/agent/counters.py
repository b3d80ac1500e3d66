"""How often a model did not play along in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts of one run.

    coercions    texts that were taken for the answer where a call of `final_answer` was expected
    nudges       messages that asked for a usable reply
    relaxations  turns with obligations relaxed
    reissues     turns shaped by the loop guard
    refusals     steps that were refused
    """

    coercions: int = 0
    nudges: int = 0
    relaxations: int = 0
    reissues: int = 0
    refusals: int = 0

    def to_dict(self) -> dict[str, int]:
        """JSON form."""
        return {
            "coercions": self.coercions,
            "nudges": self.nudges,
            "relaxations": self.relaxations,
            "reissues": self.reissues,
            "refusals": self.refusals,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, int]) -> Counters:
        """The counters whose `to_dict` gave `data`."""
        return cls(**data)

    def __getitem__(self, name: str) -> int:
        return self.to_dict()[name]

"""The words of a permit: its verdicts, and the voices that led to them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from maymust.core.rule import Rule


class Verdict(Enum):
    """What a permit says of one tool. Each has a glyph, so that verdicts are never told by colour alone."""

    FORCED = "forced"
    """The one tool that must be called."""
    ALLOWED = "allowed"
    """May be called."""
    ASK = "ask"
    """May be called after a person's yes."""
    DENIED = "denied"
    """Shown, and closed, with a reason."""
    WITHHELD = "withheld"
    """Open by itself, but another tool is forced."""
    HIDDEN = "hidden"
    """Neither shown nor callable."""

    @property
    def glyph(self) -> str:
        """One character: ★ ● ? ⊘ ○ ·"""
        return _GLYPHS[self]

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return self.value


_GLYPHS = {
    Verdict.FORCED: "★",
    Verdict.ALLOWED: "●",
    Verdict.ASK: "?",
    Verdict.DENIED: "⊘",
    Verdict.WITHHELD: "○",
    Verdict.HIDDEN: "·",
}


@dataclass(frozen=True, slots=True)
class Spoken:
    """A rule that spoke about a tool.

    requirement   name of the requirement that gave it
    priority      its priority; infinite for the run's own rules (loop guard, forced finish, tool_choice)
    rule          the rule
    evidence      the facts of the history it rests on, in one line; empty when there is nothing to add
    """

    requirement: str
    priority: float
    rule: Rule
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Extra:
    """A rule of the run itself (loop guard, forced finish, `tool_choice`), above every requirement.

    Of several extras the one given first ranks highest. With `lapses_force` nothing of it is a conflict: where it denies, the force
    of others lapses; where it forces a closed tool, its own force lapses. `priority` 0 is for a rule that lifts nothing (a tool's own ask).
    """

    name: str
    rule: Rule
    lapses_force: bool = False
    priority: float = math.inf


class Voice:
    """A rule in a fold, with whose it is. `seat` is the place of its requirement in the policy, -1 for none.

    `evidence` and `unlock` are filled in for a permit that was read from JSON; otherwise the requirement is asked when they are wanted.
    """

    __slots__ = ("evidence", "lapses_force", "order", "priority", "requirement", "rule", "seat", "unlock")

    def __init__(
        self,
        requirement: str,
        priority: float,
        rule: Rule,
        *,
        order: int = 0,
        seat: int = -1,
        lapses_force: bool = False,
        evidence: str | None = None,
        unlock: str | None = None,
    ) -> None:
        self.requirement: str = requirement
        self.priority: float = priority
        self.rule: Rule = rule
        self.order: int = order
        self.seat: int = seat
        self.lapses_force: bool = lapses_force
        self.evidence: str | None = evidence
        self.unlock: str | None = unlock

    @property
    def reason(self) -> str | None:
        """Why it closes its tool: what its rule says, or that the limits of several leave no call."""
        rule = self.rule
        if rule.reason or not rule.arguments or not rule.allowed or rule.hidden or rule.prevent_stop:
            return rule.reason
        return f"no call satisfies all that rules and schema say of {' and '.join(rule.arguments)}"

    def saying(self, rule: Rule) -> Voice:
        """The same voice with another rule on the same tool."""
        other = Voice.__new__(Voice)
        other.requirement, other.priority, other.rule, other.order, other.seat = (
            self.requirement,
            self.priority,
            rule,
            self.order,
            self.seat,
        )
        other.lapses_force, other.evidence, other.unlock = self.lapses_force, self.evidence, self.unlock
        return other

    @property
    def is_extra(self) -> bool:
        """True for a rule of the run itself."""
        return self.priority == math.inf

    @property
    def rank(self) -> tuple[float, int]:
        """Sort key, highest priority first, equal ones in the order of the policy."""
        return (-self.priority, self.order)

    @property
    def level(self) -> tuple[float, int]:
        """What decides between forced tools, lowest first: the priority, and among extras the order in which they were given."""
        return (-self.priority, self.order if self.is_extra else 0)

    def to_dict(self) -> dict[str, Any]:
        """JSON form. The infinite priority of an extra is left out, since JSON has no such number."""
        data: dict[str, Any] = {"requirement": self.requirement, "rule": self.rule.to_dict()}
        if not self.is_extra:
            data["priority"] = self.priority
        if self.evidence:
            data["evidence"] = self.evidence
        if self.unlock:
            data["unlock"] = self.unlock
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], order: int) -> Voice:
        """Read the JSON form."""
        return cls(
            data["requirement"],
            data.get("priority", math.inf),
            Rule.from_dict(data["rule"]),
            order=order,
            evidence=data.get("evidence", ""),
            unlock=data.get("unlock", ""),
        )

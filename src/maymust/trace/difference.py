"""Where two records of a run differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from maymust.core.permit import Permit
from maymust.core.rule import Rule
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.core.verdict import Verdict

Kind: TypeAlias = Literal["verdict", "choice", "error", "call", "end"]
_OPEN = (Verdict.ALLOWED,)


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    turn           the turn, and `step`, the number of the step that comes next in the run, both from 1
    kind           verdict: of `tool`; choice: of `tool_choice` or `may_stop`; error: there is no next step on one side; call: of `tool`,
                   what was called or let through; end: how the run ended
    before, after  what is on the first side, and on the second one, in a word
    rules          the rules that make the difference, and `reasons`, what they say
    """

    turn: int
    step: int
    kind: Kind
    before: str
    after: str
    tool: str | None = None
    rules: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "turn": self.turn,
            "step": self.step,
            "kind": self.kind,
            "tool": self.tool,
            "before": self.before,
            "after": self.after,
            "rules": list(self.rules),
            "reasons": list(self.reasons),
        }

    def __str__(self) -> str:
        about = f"{self.tool} " if self.tool else ""
        return f"step {self.step} (turn {self.turn}): {about}{self.before} → {self.after}"


def of_permits(turn: int, step: int, before: Permit, after: Permit) -> Iterator[Difference]:
    """What two permits say differently; of `tool_choice` and `may_stop` only when no verdict does."""
    same = True
    for tool in dict.fromkeys((*before.tools, *after.tools)):
        one = before.verdict(tool) if tool in before.tools else None
        other = after.verdict(tool) if tool in after.tools else None
        if one is not other:
            same = False
            rules, reasons = cause(before if other in _OPEN or other is None else after, tool)
            yield Difference(turn, step, "verdict", _word(one), _word(other), tool, rules, reasons)
    if same and (before.tool_choice, before.may_stop) != (after.tool_choice, after.may_stop):
        yield Difference(turn, step, "choice", _choice(before), _choice(after))


def cause(permit: Permit, tool: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rules behind a verdict, and their reasons."""
    if tool not in permit.tools:
        return (), ()
    verdict = permit.verdict(tool)
    spoken = [one for one in permit.why(tool) if _speaks(one.rule, verdict, tool)]
    said = [*(one.rule.reason for one in spoken if one.rule.reason), *permit.reasons.get(tool, ())]
    return tuple(dict.fromkeys(one.requirement for one in spoken)), tuple(dict.fromkeys(said))


def _speaks(rule: Rule, verdict: Verdict, tool: str) -> bool:
    if verdict in (Verdict.FORCED, Verdict.WITHHELD):
        return rule.forced
    if verdict is Verdict.ASK:
        return bool(rule.ask)
    return not rule.allowed or rule.hidden or (rule.prevent_stop and tool == FINAL_ANSWER)


def _word(verdict: Verdict | None) -> str:
    return "absent" if verdict is None else verdict.word


def _choice(permit: Permit) -> str:
    return f"tool_choice {permit.tool_choice}, {'may stop' if permit.may_stop else 'may not stop'}"

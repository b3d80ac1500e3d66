"""What `verify` gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from maymust.verify.finding import Finding

Word: TypeAlias = Literal["ok", "conflict", "unreachable", "dead_end", "livelock", "undecided"]
"""The verdict: the first of conflict, unreachable, dead_end, livelock that applies; ok when none does, undecided when that is not known."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was proved of a policy, what was found wrong, and under which assumptions.

    verdict            see `Word`
    witness            for the verdict: a shortest sequence of "tool", "tool!failed", "tool!denied"; None when there is none to show
    findings           everything there is to say, gravest first
    min_steps          fewest steps of any run that ends, `final_answer` counted; None when none ends
    dead_tools         tools that no run can call
    supervisor_exists  `supervise(policy)` can keep the end reachable from the start, whatever the outcomes (within `max_turns`, if given);
                       None when that was not found out
    stays_reachable    from every reachable state some run ends; None when undecided
    forced_within      steps within which a model that plays along surely ends, whatever the outcomes; None when it cannot be sure
    worst_steps        the greatest distance to the end from any state that can reach it; None when it was not computed
    doomed_after       a shortest sequence after which no run ends any more; None when there is none
    relies_on          tools that have to succeed at least once in every run that ends
    provided           checks that have to pass eventually for the verdict to hold
    assumptions        what was taken for granted
    states, moves      how much was looked at
    seconds            how long it took
    """

    verdict: Word
    witness: tuple[str, ...] | None = None
    findings: tuple[Finding, ...] = ()
    min_steps: int | None = None
    dead_tools: tuple[str, ...] = ()
    supervisor_exists: bool | None = False
    stays_reachable: bool | None = None
    forced_within: int | None = None
    worst_steps: int | None = None
    doomed_after: tuple[str, ...] | None = None
    relies_on: tuple[str, ...] = ()
    provided: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    states: int = 0
    moves: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """True when the verdict is ok."""
        return self.verdict == "ok"

    @property
    def facts(self) -> tuple[str, ...]:
        """What holds, in sentences; there also when nothing is wrong."""
        facts = [f"{self.states} states, {self.moves} moves, {self.seconds * 1000:.1f} ms"]
        if self.min_steps is None:
            facts.append("no run is known to end" if self.verdict == "undecided" else "no run ends")
        else:
            worst = f"; from the worst state that can still end, {_steps(self.worst_steps)}" if self.worst_steps is not None else ""
            facts.append(f"some run ends: the shortest takes {_steps(self.min_steps)}{worst}")
        if self.stays_reachable is not None:
            facts.append("the end stays reachable whatever happens" if self.stays_reachable else "the end does not stay reachable")
        if self.forced_within is not None:
            facts.append(f"the end can be forced within {_steps(self.forced_within)} whatever the outcomes")
        elif self.min_steps is not None and self.verdict != "undecided":
            facts.append("the end cannot be forced: it needs outcomes that the model does not choose")
        facts.extend(f"relies on {tool} succeeding at least once" for tool in self.relies_on)
        facts.extend(f"relies on {check} passing eventually" for check in self.provided)
        return tuple(facts)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "verdict": self.verdict,
            "witness": None if self.witness is None else list(self.witness),
            "findings": [finding.to_dict() for finding in self.findings],
            "min_steps": self.min_steps,
            "dead_tools": list(self.dead_tools),
            "supervisor_exists": self.supervisor_exists,
            "stays_reachable": self.stays_reachable,
            "forced_within": self.forced_within,
            "worst_steps": self.worst_steps,
            "doomed_after": None if self.doomed_after is None else list(self.doomed_after),
            "relies_on": list(self.relies_on),
            "provided": list(self.provided),
            "assumptions": list(self.assumptions),
            "states": self.states,
            "moves": self.moves,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        provided = f", provided {' and '.join(self.provided)} eventually pass{'es' if len(self.provided) == 1 else ''}"
        lines = [f"{self.verdict}{provided if self.ok and self.provided else ''}"]
        lines.extend(f"  {finding}" for finding in self.findings)
        lines.extend(f"  - {fact}" for fact in self.facts)
        lines.extend(f"  assumed: {assumption}" for assumption in self.assumptions)
        return "\n".join(lines)


def _steps(number: int | None) -> str:
    return f"{number} step{'' if number == 1 else 's'}"

"""One cell of the matrix: a verdict, the rules behind it, and what would change it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from maymust.core.compiled import CompiledPolicy
from maymust.core.permit import Permit, Spoken, Verdict
from maymust.core.policy import Policy
from maymust.explanation import Explanation, explain, facts
from maymust.trace.recording import RecordedTurn
from maymust.views.anew import permit_anew
from maymust.web.texts import shortened

NEAR = 1_500
"""How many states are looked at for what would open a tool, when that is asked of a whole run."""

_OPEN = (Verdict.FORCED, Verdict.ALLOWED, Verdict.ASK)
_MOST_FACTS = 20


def cell_of(permit: Permit, tool: str) -> dict[str, Any]:
    """A verdict with the rules that spoke, as JSON data. What is empty is left out."""
    said: dict[str, Any] = {"v": permit.verdict(tool).word}
    rules = [_rule(spoken, tool) for spoken in permit.why(tool)]
    if rules:
        said["rules"] = rules
    narrowed = permit.arguments(tool)
    if narrowed:
        said["only"] = [
            shortened(f"{parameter} within {' and '.join(str(dict(fragment)) for fragment in fragments)}")
            for parameter, fragments in narrowed.items()
        ]
    return said


def _rule(spoken: Spoken, tool: str) -> dict[str, Any]:
    rule = spoken.rule
    words = (
        ("denies", not rule.allowed and not rule.hidden),
        ("hides", rule.hidden),
        ("forces", rule.forced),
        ("asks", bool(rule.ask)),
        ("narrows", bool(rule.arguments)),
        ("keeps the run going", rule.prevent_stop),
    )
    said: dict[str, Any] = {"name": shortened(spoken.requirement), "does": [word for word, on in words if on]}
    if spoken.priority != float("inf"):
        said["priority"] = spoken.priority
    if rule.target != tool:
        said["of"] = shortened(str(rule.target))
    if rule.reason:
        said["reason"] = shortened(rule.reason, 2_000)
    if spoken.evidence:
        said["evidence"] = shortened(spoken.evidence)
    if isinstance(rule.ask, dict) or (rule.ask and not isinstance(rule.ask, bool)):
        said["when"] = shortened(" and ".join(f"{name} within {dict(part)}" for name, part in rule.ask.items()))
    return said


def says_the_same(anew: Permit, recorded: Permit, tool: str) -> bool:
    """Whether a permit that was made anew has the verdict of the recorded one, and from the same requirements."""
    if tool not in anew.tools or anew.verdict(tool) is not recorded.verdict(tool):
        return False
    known = {spoken.requirement for spoken in anew.why(tool)}
    return all(spoken.requirement in known for spoken in recorded.why(tool))


def facts_of(permit: Permit, tool: str) -> dict[str, Any]:
    """The facts behind a verdict that no rule has told as its evidence, as JSON data."""
    told = {spoken.evidence for spoken in permit.why(tool)}
    found = [shortened(fact) for fact in facts(permit, tool) if fact not in told]
    return {"facts": found[:_MOST_FACTS]} if found else {}


def outlook_of(explained: Explanation) -> dict[str, Any]:
    """What would change a verdict, as JSON data."""
    said: dict[str, Any] = {"outlook": shortened(explained.outlook, 2_000)}
    if explained.change:
        said["opens"] = list(explained.change)
    return said


class Explainer:
    """Explains the verdicts of a run, each situation once, for so many seconds at most.

    policy   the policy of the run; None where it is not known, then no way to open a tool can be told
    seconds  how long it may take in all, in time of the processor; what comes later has its rules and no more
    limit    how many states are looked at for what would open a tool
    """

    def __init__(self, policy: Policy | None, seconds: float, *, limit: int = NEAR, clock: Callable[[], float] = time.process_time) -> None:
        self._policy = policy
        self._left = seconds
        self._clock = clock
        self._limit = limit
        self._compiled = None if policy is None else CompiledPolicy(policy, opaque="open")
        self._known: dict[object, dict[str, Any]] = {}
        self._before: dict[str, tuple[object, dict[str, Any]]] = {}
        self.gave_up: bool = False
        """Some verdict was not explained, for lack of time."""

    def explained(self, turn: RecordedTurn) -> dict[str, dict[str, Any]]:
        """Per tool the cell of a turn, as far as it can be explained."""
        began = self._clock()
        anew = None if self._policy is None or self._left <= 0 else permit_anew(turn, self._policy)
        cells = {}
        for tool in turn.permit.tools:
            permit = anew if anew is not None and says_the_same(anew, turn.permit, tool) else turn.permit
            cells[tool] = self.cell(permit, tool, self._left - (self._clock() - began))
        self._left -= self._clock() - began
        return cells

    def explained_cell(self, turn: RecordedTurn, tool: str) -> dict[str, Any]:
        """One cell of a turn."""
        anew = None if self._policy is None else permit_anew(turn, self._policy)
        return self.cell(anew if anew is not None and says_the_same(anew, turn.permit, tool) else turn.permit, tool, self._left)

    def cell(self, permit: Permit, tool: str, left: float) -> dict[str, Any]:
        """One cell."""
        said = cell_of(permit, tool)
        if permit.verdict(tool) in _OPEN:
            return said
        if left <= 0:
            self.gave_up = True
            return said
        return said | facts_of(permit, tool) | self._outlook(permit, tool, said)

    def _outlook(self, permit: Permit, tool: str, said: dict[str, Any]) -> dict[str, Any]:
        """The way to open a tool depends on the situation only, so that a long run asks for few of them."""
        if self._compiled is None or not permit.requirements:
            return {}
        if self._compiled.left_open:
            return outlook_of(explain(permit, tool, limit=self._limit))
        rules = tuple((rule["name"], rule.get("reason"), rule.get("evidence")) for rule in said.get("rules", ()))
        state = self._compiled.state_of(permit.history)
        key = (state, permit.tools, tool, rules)
        if key not in self._known:
            before = self._before.get(tool)
            if before is None or permit.tools != self._compiled.tools or not self._still(state, tool, rules, *before):
                before = rules, outlook_of(explain(permit, tool, limit=self._limit))
            self._known[key] = before[1]
            self._before[tool] = rules, before[1]
        return self._known[key]

    def _still(self, state: int, tool: str, rules: object, before: object, said: dict[str, Any]) -> bool:
        """Whether what was said a step ago still holds. What opened a tool then mostly still does, and that is seen at once."""
        if "opens" not in said:
            return before == rules
        way = said["opens"]
        return self._opens(state, tool, way) and not any(self._opens(state, tool, way[n:]) for n in range(1, len(way)))

    def _opens(self, state: int, tool: str, way: list[str]) -> bool:
        """Whether these calls may be made one after the other, and the tool is open then, and was not before."""
        assert self._compiled is not None
        for call in way:
            now = self._compiled.permit(state)
            if now.fault is not None or call not in now.allowed or tool in now.allowed:
                return False
            state = self._compiled.step(state, call)
        last = self._compiled.permit(state)
        return last.fault is None and tool in last.allowed

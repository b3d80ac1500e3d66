"""What one policy allows that another does not, with a shortest sequence of calls that shows it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from maymust.core.compiled import CompiledPolicy, Verdicts
from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.core.rule import Rule
from maymust.core.step import Outcome, Step
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.core.verdict import Verdict
from maymust.errors import PermitError

LIMIT = 200_000
"""How many pairs of states are looked at before the search gives up."""

_ALWAYS = "always"
_OUTCOMES = (Outcome.OK, Outcome.FAILED)

Kind: TypeAlias = Literal["allowed", "unasked"]


@dataclass(frozen=True, slots=True)
class Gain:
    """One call that the second policy lets through sooner or more freely.

    tool     what may be called
    kind     "allowed": the first policy refuses it there; "unasked": the first policy asks a person there
    witness  the calls before it, which both policies allow
    rules    the rules of the first policy that stand in its way
    reasons  what they say
    """

    tool: str
    kind: Kind
    witness: tuple[str, ...]
    rules: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """What the second policy allows that the first does not.

    gains       for each tool, and each set of rules in its way, the first such call; shortest witness first
    complete    False when the search hit its limit
    uncompared  what was left out of the comparison, in sentences
    """

    gains: tuple[Gain, ...]
    complete: bool
    uncompared: tuple[str, ...]


def compare(old: Policy, new: Policy, *, limit: int = LIMIT) -> Difference:
    """Play both policies side by side, over every sequence of calls that both allow; any call may also fail."""
    one, other = CompiledPolicy(old, opaque="open"), CompiledPolicy(new, opaque="open")
    gains = _Gains(old)
    start = (one.start(), other.start())
    seen = {start}
    queue: deque[tuple[tuple[int, int], tuple[str, ...]]] = deque([(start, ())])
    complete = True
    while queue:
        (mine, theirs), path = queue.popleft()
        before, after = one.permit(mine), other.permit(theirs)
        for tool in after.allowed if after.fault is None else ():
            kind = _gain(tool, before, after)
            if kind is not None:
                gains.add(mine, tool, kind, path)
            if kind == "allowed" or tool == FINAL_ANSWER:
                continue
            for outcome in _OUTCOMES:
                pair = (one.step(mine, tool, outcome), other.step(theirs, tool, outcome))
                if pair not in seen:
                    if len(seen) >= limit:
                        complete = False
                        continue
                    seen.add(pair)
                    queue.append((pair, (*path, tool if outcome is Outcome.OK else f"{tool}!failed")))
    return Difference(gains.found, complete, tuple(_uncompared(old, new, one, other)))


def _gain(tool: str, before: Verdicts, after: Verdicts) -> Kind | None:
    if before.fault is not None or tool not in before.allowed:
        return "allowed"
    return "unasked" if tool in before.asks and tool not in after.asks else None


class _Gains:
    """Keeps one gain for each tool and cause."""

    def __init__(self, old: Policy) -> None:
        self._old = old
        self._kept: dict[tuple[str, Kind, tuple[str, ...]], Gain] = {}
        self._met: set[tuple[int, str, Kind]] = set()

    @property
    def found(self) -> tuple[Gain, ...]:
        return tuple(self._kept.values())

    def add(self, state: int, tool: str, kind: Kind, path: tuple[str, ...]) -> None:
        if (state, tool, kind) in self._met:
            return  # the first policy says the same in the same state
        self._met.add((state, tool, kind))
        cause = self._cause(tool, kind, path)
        if cause is not None:
            self._kept.setdefault((tool, kind, cause[0]), Gain(tool, kind, path, *cause))

    def _cause(self, tool: str, kind: Kind, path: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """The rules of the first policy that stand in the way, and what they say; None when they do not after all."""
        history = History(Step(word.partition("!")[0], Outcome(word.partition("!")[2] or "ok")) for word in path)
        try:
            permit = self._old.permit(history)
        except PermitError as error:
            return (), (f"there is no next step ({error})",)
        if tool not in permit.tools:
            return (), (f"it has no tool called {tool}",)
        if tool in permit.allowed and (kind == "allowed" or tool not in permit.asks):
            return None  # the automaton takes a question that depends on more than counts to be asked always
        spoken = [one for one in permit.why(tool) if _stands_in_the_way(one.rule, tool, kind, permit.verdict(tool))]
        reasons = tuple(dict.fromkeys(one.rule.reason for one in spoken if one.rule.reason))
        return tuple(dict.fromkeys(one.requirement for one in spoken)), reasons


def _stands_in_the_way(rule: Rule, tool: str, kind: Kind, verdict: Verdict) -> bool:
    if kind == "unasked":
        return bool(rule.ask)
    if verdict is Verdict.WITHHELD:
        return rule.forced
    return not rule.allowed or rule.hidden or (rule.prevent_stop and tool == FINAL_ANSWER)


def _uncompared(old: Policy, new: Policy, one: CompiledPolicy, other: CompiledPolicy) -> Iterator[str]:
    """What the automata do not see: values of arguments, remembered choices, Python code."""
    for tool in dict.fromkeys((*old.tools, *new.tools)):
        asked, asks = _asking(old, tool), _asking(new, tool)
        if asked != asks and any(asks or condition != _ALWAYS for condition in asked):
            yield f"when a person is asked about {tool}: the conditions differ, and values of arguments are not compared"
        if _narrowing(old, tool) not in ([], _narrowing(new, tool)):
            yield f"the arguments of {tool}: their rules differ, and values of arguments are not compared"
    names = dict.fromkeys((*one.left_open, *other.left_open))
    asking = {bound.name for policy in (old, new) for bound in policy.requirements if callable(getattr(bound, "asks_about", None))}
    for name in names:
        if name in asking:
            yield f"{name}: what a person said no to for good is taken to be open"
        else:
            yield f"{name}: it is Python code, and taken to close nothing"


def _asking(policy: Policy, tool: str) -> list[str]:
    """The conditions under which a person is asked, as comparable texts."""
    said = []
    for bound in policy.requirements:
        about = getattr(bound, "asks_about", None)
        if bound.enabled and callable(about) and about(tool):
            described: dict[str, Any] = getattr(bound, "describe", dict)()
            always = described.get("kind") == "ask_permission" and "when" not in described
            condition = {key: described[key] for key in sorted(described) if key not in ("include", "exclude", "handler", "reason")}
            said.append(_ALWAYS if always else json.dumps(condition, sort_keys=True, default=repr))
    return sorted(said)


def _narrowing(policy: Policy, tool: str) -> list[str]:
    """The rules about values of a tool's arguments, as comparable texts."""
    said = []
    for described in policy.describe()["requirements"]:
        if described["enabled"] and str(described.get("kind", "")).startswith("argument") and described.get("target") == tool:
            kept = {key: value for key, value in described.items() if key not in ("name", "priority", "enabled", "reason")}
            said.append(json.dumps(kept, sort_keys=True, default=repr))
    return sorted(said)

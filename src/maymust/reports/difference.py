"""What one policy allows that another does not, with a shortest sequence of calls that shows it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from maymust.core.compiled import CompiledPolicy, Verdicts
from maymust.core.policy import Policy
from maymust.core.rule import Rule
from maymust.core.speakers import guard_of
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.core.verdict import Verdict
from maymust.errors import PermitError
from maymust.reports.runs import Run, history_of, length_of, words_of
from maymust.reports.side_by_side import FAR, Place, SideBySide

LONGEST = 100_000
"""Steps of a history that rules are asked about which may look at every one of them."""

_ALWAYS = "always"
_MANY = 1_000
"""In so many states rules that are Python code are asked."""

Kind: TypeAlias = Literal["allowed", "unasked"]


@dataclass(frozen=True, slots=True)
class Gain:
    """One call that the second policy lets through sooner or more freely.

    tool     what may be called
    kind     "allowed": the first policy refuses it there; "unasked": the first policy asks a person there
    witness  the calls before it, which both policies allow; `a ×1000` is so many calls in a row
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
    pairs       how many pairs of states were looked at
    """

    gains: tuple[Gain, ...]
    complete: bool
    uncompared: tuple[str, ...]
    pairs: int = 0


def compare(old: Policy, new: Policy, *, limit: int | None = None, far: int = FAR) -> Difference:
    """Play both policies side by side, over every sequence of calls that both allow; any call may also fail.

    limit  how many pairs of states are looked at before the search gives up; default: as many as take a few seconds
    far    limits that are less far away are counted up to one by one
    """
    one, other = CompiledPolicy(old, opaque="open"), CompiledPolicy(new, opaque="open")
    gains = _Gains(old, one)
    pairs = SideBySide(one, other, limit, far=far)
    for place in pairs:
        mine, theirs = place.pair
        before, after = one.permit(mine), other.permit(theirs)
        shared = []
        for tool in after.allowed if after.fault is None else ():
            kind = _gain(tool, before, after)
            if kind is not None:
                gains.add(place, tool, kind)
            if kind != "allowed" and tool != FINAL_ANSWER:
                shared.append(tool)
        pairs.go_on(place, shared)
    return Difference(gains.found, pairs.complete, tuple(_uncompared(old, new, one, other)), pairs.looked)


def _gain(tool: str, before: Verdicts, after: Verdicts) -> Kind | None:
    if before.fault is not None or tool not in before.allowed:
        return "allowed"
    return "unasked" if tool in before.asks and tool not in after.asks else None


class _Gains:
    """Keeps one gain for each tool and cause."""

    def __init__(self, old: Policy, compiled: CompiledPolicy) -> None:
        self._old = old
        self._compiled = compiled
        self._by_flags = all(guard is not None and not guard.is_partial for guard in map(guard_of, old.requirements))
        self._kept: dict[tuple[str, Kind, tuple[str, ...]], Gain] = {}
        self._met: set[tuple[int, str, Kind]] = set()

    @property
    def found(self) -> tuple[Gain, ...]:
        return tuple(self._kept.values())

    def add(self, place: Place, tool: str, kind: Kind) -> None:
        # Where the same facts hold, rules that are data say the same; of others so many states are looked at.
        few = self._by_flags or len(self._met) >= _MANY
        state = self._compiled.flags_of(place.pair[0]) if few else place.pair[0]
        if (state, tool, kind) in self._met:
            return  # the first policy says the same in the same state
        self._met.add((state, tool, kind))
        runs = place.runs()
        cause = self._cause(tool, kind, runs)
        if cause is not None:
            self._kept.setdefault((tool, kind, cause[0]), Gain(tool, kind, words_of(runs), *cause))

    def _cause(self, tool: str, kind: Kind, runs: Sequence[Run]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """The rules of the first policy that stand in the way, and what they say; None when they do not after all."""
        if length_of(runs) > (sys.maxsize if self._by_flags else LONGEST):
            return None if kind == "unasked" else ((), ("the sequence is too long for its rules to be asked",))
        try:
            permit = self._old.permit(history_of(runs))
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

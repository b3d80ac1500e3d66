"""What is decided by code: custom checks and custom requirements. They are uncontrollable, and may say no for ever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from maymust.core.requirement import BoundRequirement
from maymust.core.speakers import guard_of
from maymust.core.tool_spec import FINAL_ANSWER, ToolLike, match_target
from maymust.requirements.predicate import check_denials
from maymust.requirements.targets import as_targets


@dataclass(frozen=True, slots=True)
class Opaque:
    """A condition whose answer is known only when it is asked.

    name              the requirement's
    text              how to call it: the check's name, else the requirement's
    targets           places of the tools it may close
    stable_once_true  once passed, it stays so
    max_denials       it says no at most so many times; None: no limit is known
    depends_on        places of the tools whose calls may change its answer; None: anything may
    """

    name: str
    text: str
    targets: frozenset[int]
    stable_once_true: bool = False
    max_denials: int | None = None
    depends_on: frozenset[int] | None = None

    @property
    def may_never_pass(self) -> bool:
        """True when it may say no for ever."""
        return self.max_denials is None


def opaque_of(requirements: Iterable[BoundRequirement], tools: Sequence[str], specs: Sequence[ToolLike] = ()) -> tuple[Opaque, ...]:
    """The opaque conditions of some requirements. `tools` ends with `final_answer`; `specs` are the tools as they were given."""
    requirements = tuple(requirements)
    specs = specs or tools[:-1]
    narrowed = Counter(getattr(one, "narrows", None) for one in requirements)
    return tuple(one for requirement in requirements for one in _of(requirement, tools, specs, narrowed))


def _of(requirement: BoundRequirement, tools: Sequence[str], specs: Sequence[ToolLike], narrowed: Counter[Any]) -> Iterator[Opaque]:
    place = {name: number for number, name in enumerate(tools)}
    doubts = getattr(requirement, "doubts", None)
    if callable(doubts):
        # What two rules leave of one parameter may be nothing, though each of them leaves something.
        for text, tool in doubts(alone=narrowed[getattr(requirement, "narrows", None)] == 1):
            yield Opaque(requirement.name, text, frozenset({place[tool]}))
        return
    guard = guard_of(requirement)
    if guard is not None:
        target = frozenset({place[guard.target]})
        for check in getattr(requirement, "checks", ()) if guard.is_partial else ():
            text = check.text if check.is_named else requirement.name
            yield Opaque(requirement.name, text, target, **_annotations(check, place, specs, requirement.name))
        return
    if getattr(requirement, "never_closes", False) or callable(getattr(requirement, "asks_about", None)):
        return
    # A custom requirement lies behind its adapted form.
    source = getattr(requirement, "source", requirement)
    named = getattr(source, "targets", None)
    one = getattr(requirement, "target", None)
    if named is None and isinstance(one, str):
        named = (one,)
    closes = _places(named, place, specs)
    closes = frozenset(range(len(tools))) if closes is None else closes
    yield Opaque(requirement.name, requirement.name, closes, **_annotations(source, place, specs, requirement.name))


def _annotations(source: Any, place: dict[str, int], specs: Sequence[ToolLike], label: str) -> dict[str, Any]:
    depends_on = _places(getattr(source, "depends_on", None), place, specs)
    return {
        "stable_once_true": bool(getattr(source, "stable_once_true", False)),
        "max_denials": check_denials(getattr(source, "max_denials", None), label),
        "depends_on": None if depends_on is None else depends_on - {place[FINAL_ANSWER]},
    }


def _places(named: Any, place: dict[str, int], specs: Sequence[ToolLike]) -> frozenset[int] | None:
    """The places of the tools that an author named; None for all, also where a name says nothing here."""
    if named is None:
        return None
    found = [match_target(one, specs) for one in as_targets(named)]
    return frozenset(place[name] for names in found for name in names) if all(found) else None

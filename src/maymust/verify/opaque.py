"""What is decided by code: custom checks and custom requirements. They are uncontrollable, and may say no for ever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from maymust.core.requirement import BoundRequirement
from maymust.core.speakers import guard_of
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.requirements.targets import as_targets, resolve


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


def opaque_of(requirements: Iterable[BoundRequirement], tools: Sequence[str]) -> tuple[Opaque, ...]:
    """The opaque conditions of some requirements. `tools` ends with `final_answer`."""
    requirements = tuple(requirements)
    narrowed = Counter(getattr(one, "narrows", None) for one in requirements)
    return tuple(one for requirement in requirements for one in _of(requirement, tools, narrowed))


def _of(requirement: BoundRequirement, tools: Sequence[str], narrowed: Counter[Any]) -> Iterator[Opaque]:
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
            yield Opaque(
                requirement.name, check.text if check.is_named else requirement.name, target, **_annotations(check, place, requirement.name)
            )
        return
    if getattr(requirement, "never_closes", False) or callable(getattr(requirement, "asks_about", None)):
        return
    # A custom requirement lies behind its adapted form.
    source = getattr(requirement, "source", requirement)
    named = getattr(source, "targets", None)
    one = getattr(requirement, "target", None)
    if named is None and isinstance(one, str):
        named = (one,)
    closes = frozenset(range(len(tools))) if named is None else frozenset(place[name] for name in named)
    yield Opaque(requirement.name, requirement.name, closes, **_annotations(source, place, requirement.name))


def _annotations(source: Any, place: dict[str, int], label: str) -> dict[str, Any]:
    named = getattr(source, "depends_on", None)
    tools = tuple(name for name in place if name != FINAL_ANSWER)
    depends_on = None
    if named is not None:
        depends_on = {name for one in as_targets(named) for name in resolve(one, tools, where=f"{label}: depends_on")}
    return {
        "stable_once_true": bool(getattr(source, "stable_once_true", False)),
        "max_denials": getattr(source, "max_denials", None),
        "depends_on": None if depends_on is None else frozenset(place[name] for name in depends_on if name != FINAL_ANSWER),
    }

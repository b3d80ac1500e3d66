"""The loop guard: notices a model that does the same thing again and again, and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from maymust.core.history import History
from maymust.core.step import Step
from maymust.errors import PolicyError


@dataclass(frozen=True, slots=True)
class LoopGuard:
    """When the same call with the same outcome counts as a loop.

    repeats  so many times running
    window   (n, m): n times within the last m steps

    The first hit closes the tool for one turn, the second forces `final_answer` where that is allowed, the third ends the run.
    `@tool(repeatable=True)` exempts a tool. Raises PolicyError for numbers below 2 or a window smaller than its count.
    """

    repeats: int = 3
    window: tuple[int, int] = (5, 10)

    def __post_init__(self) -> None:
        count, size = self.window
        if self.repeats < 2 or count < 2 or size < count:
            raise PolicyError(
                f"LoopGuard(repeats={self.repeats}, window={self.window}): repeats and n must be at least 2, and m at least n"
            )


@dataclass(frozen=True, slots=True)
class GuardMemory:
    """What the guard remembers between turns.

    recent  the latest steps since its last hit: place in the history, and the raw arguments of a call without a JSON object
    hits    how often it hit
    """

    recent: tuple[tuple[int, str | None], ...] = ()
    hits: int = 0


@dataclass(frozen=True, slots=True)
class Measure:
    """What the guard does about the coming turn."""

    kind: Literal["deny", "finish", "stop"]
    tool: str
    reason: str


def same(one: Step, other: Step) -> bool:
    """Whether two steps have the same tool, canonical arguments and outcome. What a refused or denied one was told does not count."""
    if one.tool != other.tool or one.outcome is not other.outcome:
        return False
    if one.outcome.is_invocation and one.text != other.text:
        return False
    # Python takes 1 and true for equal, JSON does not.
    return one.arguments == other.arguments and _canonical(one.arguments) == _canonical(other.arguments)


def _canonical(arguments: object) -> str:
    return json.dumps(arguments, sort_keys=True, default=str)


def look(
    guard: LoopGuard, memory: GuardMemory, history: History, first: int, raw: Sequence[str], exempt: frozenset[str]
) -> tuple[GuardMemory, Measure | None]:
    """Look at the steps from `first` on, those of one turn: the new memory, and a measure for the next turn if that was a loop.

    `raw` are the arguments of these steps as the model wrote them.
    """
    count, size = guard.window
    keep = max(size, guard.repeats)
    recent = memory.recent
    for place in range(first, len(history)):
        step = history[place]
        if step.tool in exempt:
            continue
        mark = (place, raw[place - first] if step.arguments is None else None)
        recent = (*recent[1 - keep :], mark) if len(recent) >= keep else (*recent, mark)
        alike = [earlier for earlier in recent if earlier[1] == mark[1] and (earlier is mark or same(history[earlier[0]], step))]
        running = len(alike) >= guard.repeats and alike[-guard.repeats :] == list(recent[-guard.repeats :])
        if running or sum(1 for earlier in alike if earlier in recent[-size:]) >= count:
            hits = memory.hits + 1
            reason = f"{step.tool} was called with the same arguments and the same outcome again and again; do something else"
            kind: Literal["deny", "finish", "stop"] = "deny" if hits == 1 else "finish" if hits == 2 else "stop"
            return GuardMemory((), hits), Measure(kind, step.tool, reason)
    return GuardMemory(recent, memory.hits), None

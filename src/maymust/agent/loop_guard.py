"""The loop guard: notices a model that does the same thing again and again, and what to do about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from maymust.core.step import Outcome, Step
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
    """What the guard remembers between turns: the latest steps since its last hit, and how often it hit."""

    recent: tuple[str, ...] = ()
    hits: int = 0


@dataclass(frozen=True, slots=True)
class Measure:
    """What the guard does about the coming turn."""

    kind: Literal["deny", "finish", "stop"]
    tool: str
    reason: str


def signature(step: Step) -> str:
    """Equal for steps with the same tool, canonical arguments and outcome. A refused or denied step's text does not count."""
    said = step.text if step.outcome in (Outcome.OK, Outcome.FAILED) else ""
    content = json.dumps(
        [step.tool, step.arguments, step.outcome, said], sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str
    )
    return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def look(guard: LoopGuard, memory: GuardMemory, steps: Iterable[Step], exempt: frozenset[str]) -> tuple[GuardMemory, Measure | None]:
    """Look at the steps of one turn: the new memory, and a measure for the next turn if that was a loop."""
    count, size = guard.window
    recent = list(memory.recent)
    for step in steps:
        if step.tool in exempt:
            continue
        mark = signature(step)
        recent.append(mark)
        running = len(recent) >= guard.repeats and all(other == mark for other in recent[-guard.repeats :])
        if running or recent[-size:].count(mark) >= count:
            hits = memory.hits + 1
            reason = f"{step.tool} was called with the same arguments and the same outcome again and again; do something else"
            kind: Literal["deny", "finish", "stop"] = "deny" if hits == 1 else "finish" if hits == 2 else "stop"
            return GuardMemory((), hits), Measure(kind, step.tool, reason)
    return GuardMemory(tuple(recent[-max(size, guard.repeats) :]), memory.hits), None

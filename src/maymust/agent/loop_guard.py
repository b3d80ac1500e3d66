"""The loop guard: notices a model that does the same thing again and again, and what to do about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal

from maymust.core.history import History
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
        window: Any = self.window
        numbers: tuple[Any, ...] = (self.repeats, *window) if isinstance(window, tuple | list) else ()
        whole = len(numbers) == 3 and all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
        if not whole or min(numbers) < 2 or numbers[2] < numbers[1]:
            raise PolicyError(
                f"LoopGuard(repeats={self.repeats!r}, window={self.window!r}): give whole numbers, repeats=k and window=(n, m); "
                "k and n must be at least 2, and m at least n"
            )


@dataclass(slots=True)
class GuardMemory:
    """What the guard remembers between turns. Nobody changes it; not frozen, for one is made in every turn.

    recent  the latest steps since its last hit: place in the history, and the call in canonical form
    hits    how often it hit
    """

    recent: tuple[tuple[int, str], ...] = ()
    hits: int = 0


@dataclass(frozen=True, slots=True)
class Measure:
    """What the guard does about the coming turn."""

    kind: Literal["deny", "finish", "stop"]
    tool: str
    reason: str


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)
_FLAT = frozenset({str, int, float, bool, type(None)})
_LONG = 200
_KEY = itemgetter(1)


def call_key(step: Step, raw: str) -> str:
    """Equal for calls of the same tool with the same canonical arguments and the same kind of outcome.

    `raw` stands in for arguments that are no JSON object.
    """
    arguments = step.arguments
    if arguments is None:
        said = raw
    elif _FLAT.issuperset(map(type, arguments.values())):
        # Most arguments are flat, and then this says the same for a tenth of the time.
        said = repr(sorted(arguments.items()))
    else:
        said = _CANONICAL.encode(arguments)
    key = f"{step.tool} {step.outcome} {said}"
    return key if len(key) <= _LONG else hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


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
        key = call_key(step, raw[place - first])
        is_new = key not in map(_KEY, recent)
        recent = (*recent[1 - keep :], (place, key)) if len(recent) >= keep else (*recent, (place, key))
        if is_new:
            continue
        alike = [mark for mark in recent if mark[1] == key]
        if len(alike) == 1:
            continue
        # What came of it counts too, but not what a refused or denied call was told.
        if step.outcome is Outcome.OK:
            alike = [mark for mark in alike if history[mark[0]].output == step.output]
        elif step.outcome is Outcome.FAILED:
            alike = [mark for mark in alike if history[mark[0]].text == step.text]
        running = len(alike) >= guard.repeats and alike[-guard.repeats :] == list(recent[-guard.repeats :])
        if running or sum(mark in recent[-size:] for mark in alike) >= count:
            hits = memory.hits + 1
            reason = f"{step.tool} was called with the same arguments and the same outcome again and again; do something else"
            kind: Literal["deny", "finish", "stop"] = "deny" if hits == 1 else "finish" if hits == 2 else "stop"
            return GuardMemory((), hits), Measure(kind, step.tool, reason)
    return GuardMemory(recent, memory.hits), None

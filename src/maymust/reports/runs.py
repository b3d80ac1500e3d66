"""A sequence of calls in which the same ones may come very often in a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from maymust.core.history import History
from maymust.core.repeated import repeated
from maymust.core.step import Step
from maymust.verify.witness import Event

Run: TypeAlias = tuple[tuple[Event, ...], int]
"""Some calls, and how often they come in a row."""

FEW = 20
"""So many calls of a run are written one after another."""


def joined(runs: Iterable[Run]) -> list[Run]:
    """The same, with neighbours of the same calls put together."""
    result: list[Run] = []
    for events, times in runs:
        if result and result[-1][0] == events:
            result[-1] = events, result[-1][1] + times
        else:
            result.append((events, times))
    return result


def length_of(runs: Iterable[Run]) -> int:
    """How many calls there are."""
    return sum(len(events) * times for events, times in runs)


def history_of(runs: Iterable[Run]) -> History:
    """The history after them."""
    return repeated([(tuple(Step(event.tool, event.outcome) for event in events), times) for events, times in runs])


def words_of(runs: Sequence[Run]) -> tuple[str, ...]:
    """A word a call: `a`, `a!failed`; where they are many, `a ×1000` or `(a, b) ×1000` for all of a run."""
    return tuple(word for run in runs for word in _words(*run))


def call_of(word: str) -> str:
    """The call that a word stands for, without how often; the first one where it stands for several."""
    return word.partition(" ×")[0].removeprefix("(").partition(", ")[0].removesuffix(")")


def _words(events: tuple[Event, ...], times: int) -> Iterator[str]:
    words = [event.word for event in events]
    if len(words) * times <= FEW:
        yield from words * times
    else:
        yield f"{', '.join(words)} ×{times}" if len(words) == 1 else f"({', '.join(words)}) ×{times}"

"""Two runs, turn by turn."""

from __future__ import annotations

from itertools import zip_longest

from maymust.core.step import Step
from maymust.trace.difference import Difference, of_permits
from maymust.trace.recording import Recording

_SHOWN = 200


def compare_runs(one: Recording, other: Recording) -> tuple[Difference, ...]:
    """Where two runs differ: in verdicts, in calls and how they came back, in their end.

    Behind the first turn in which other things were done nothing is compared: from there on the runs are about something else.
    """
    found: list[Difference] = []
    for place, (mine, theirs) in enumerate(zip(one.turns, other.turns, strict=False)):
        found.extend(of_permits(mine.number, mine.first_step + 1, mine.permit, theirs.permit))
        apart = _calls(mine.number, mine.first_step, one.steps_of(place), other.steps_of(place))
        if apart is not None:
            return (*found, apart)
    turn, step = max(len(one.turns), len(other.turns)), max(len(one.steps), len(other.steps))
    if len(one.turns) != len(other.turns):
        found.append(Difference(turn, step, "end", f"{len(one.turns)} turns", f"{len(other.turns)} turns"))
    elif (one.stop_reason, one.answer) != (other.stop_reason, other.answer):
        found.append(Difference(turn, step, "end", _end(one), _end(other)))
    return tuple(found)


def _calls(turn: int, first: int, mine: tuple[Step, ...], theirs: tuple[Step, ...]) -> Difference | None:
    for place, (one, other) in enumerate(zip_longest(mine, theirs)):
        said, answered = _said(one), _said(other)
        if said == answered and (one is None or other is None or one.arguments == other.arguments):
            continue
        if one is not None and other is not None and said == answered:
            said, answered = f"{said} {dict(one.arguments or {})}", f"{answered} {dict(other.arguments or {})}"
        return Difference(turn, first + place + 1, "call", said[:_SHOWN], answered[:_SHOWN])
    return None


def _said(step: Step | None) -> str:
    return "no call" if step is None else f"{step.tool} ({step.outcome.value})"


def _end(run: Recording) -> str:
    answer = "" if run.answer is None else f": {run.answer[:_SHOWN]}"
    return f"{run.stop_reason or 'not ended'}{answer}"

"""A survey of a policy of which nothing was found and not all was looked at: by sets of states, where that is possible."""

from __future__ import annotations

from typing import Any

from maymust.verify.automaton import Automaton
from maymust.verify.ending import OutOfBounds
from maymust.verify.survey import Doom, Path, Survey, doom_at
from maymust.verify.symbolic import NODES, Symbolic, why_not


def survey_by_sets(automaton: Automaton, *, nodes: int = NODES) -> Survey | None:
    """The survey; None where states cannot be told by facts alone, where sets grow too large, and without the library.

    It holds no greatest distance to the end, and not what the end rests on.
    """
    if why_not(automaton) is not None:
        return None
    try:
        return _survey(Symbolic(automaton, nodes=nodes))
    except (ImportError, OutOfBounds, RecursionError):
        return None


def _survey(sets: Symbolic) -> Survey:
    automaton, rules = sets.automaton, sets.rules
    survey = Survey(automaton, states=sets.count())
    conflict = _path(sets, rules.conflict)
    if conflict is not None:
        survey.notes = dict.fromkeys(automaton.situation(_state(automaton, conflict)).notes, conflict)
    survey.dead_end = _doom(sets, rules.dead_end)
    lost = sets.reachable & ~sets.ending
    survey.doomed = _doom(sets, lost)
    if survey.doomed is not None:
        survey.livelock = _doom(sets, lost & ~sets.leading_to(rules.dead_end | rules.fault))
    survey.finish = _path(sets, rules.may_stop)
    if survey.finish is not None:
        survey.min_steps = survey.safe_steps = survey.forced_within = len(survey.finish) + 1
    survey.dead_tools = tuple(name for place, name in enumerate(automaton.tools[:-1]) if not sets.is_met(rules.open[place]))
    survey.silent = tuple(one.name for one in automaton.clauses if not one.partial and not sets.is_met(rules.speaks[one.name]))
    return survey


def _path(sets: Symbolic, wanted: Any) -> Path | None:
    way = sets.way_to(wanted)
    return None if way is None else tuple(sets.automaton.events(tool)[0] for tool in way)


def _doom(sets: Symbolic, wanted: Any) -> Doom | None:
    path = _path(sets, wanted)
    return None if path is None else doom_at(sets.automaton, _state(sets.automaton, path), path)


def _state(automaton: Automaton, path: Path) -> int:
    state = automaton.start
    for event in path:
        state = automaton.step(state, automaton.place(event.tool), event.outcome)
    return state

"""A survey of a policy with too many states to look at each: from a sweep, and searches that go straight for something."""

from __future__ import annotations

from maymust.core.guard import LastAtom, RecentAtom
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.verify.actions import Actions
from maymust.verify.automaton import Automaton
from maymust.verify.ending import Ending, OutOfBounds
from maymust.verify.goal import Goal, realized, useful_names
from maymust.verify.interference import Interference
from maymust.verify.shortest import Shortest
from maymust.verify.survey import Doom, Path, Survey, doom_at
from maymust.verify.sweep import Sweep

_FEW = 1_000
"""How many states are looked at to find out whether a run can end without a certain tool."""


def outline_of(automaton: Automaton, interference: Interference, limit: int, *, near: int) -> Survey:
    """Return the survey. The greatest distance to the end is not computed.

    near   states to look at for shortest witnesses; what is further away is shown by a way that need not be shortest

    Of an incomplete survey, what was found holds. Raises OutOfBounds when even that is too much.
    """
    sweep = Sweep(automaton, interference, limit)
    shortest = Shortest(sweep, interference, near)
    goal = Goal(automaton, interference, limit)
    survey = Survey(automaton)
    survey.complete = sweep.complete
    try:
        survey.finish = goal.way(automaton.start) if sweep.can_end(automaton.start) else None
    except OutOfBounds:
        survey.complete = False
    survey.exact = goal.exact
    survey.notes = dict(shortest.notes.values())
    survey.dead_end = _doom(automaton, shortest.dead_end)
    survey.doomed = _doom(automaton, shortest.doomed)
    if survey.dead_end is None and not any(note.kind in ("force_closed", "force_unmet") for note in survey.notes):
        survey.livelock = survey.doomed
    elif sweep.circle is not None:
        survey.livelock = _doom(automaton, realized(automaton, interference.spacer, sweep.circle))
    if sweep.complete:
        survey.dead_tools = tuple(name for place, name in enumerate(automaton.tools[:-1]) if place not in sweep.callable)
        survey.silent = tuple(
            clause.name
            for number, clause in enumerate(automaton.clauses)
            if number in sweep.silent and not clause.partial and not _speaks_after_calls(automaton, number, sweep.callable)
        )
    if survey.finish is not None:
        _read_finish(survey, interference, limit)
    survey.states = sweep.looked + shortest.looked + goal.looked
    survey.moves = sweep.moves
    return survey


def _speaks_after_calls(automaton: Automaton, number: int, possible: set[int]) -> bool:
    """Whether a rule speaks right after a call that is possible; such calls are not looked at where they change nothing else."""
    _, guard = automaton.compiled.guards[number]
    recent = [atom.tool for atom in (*guard.bars, *guard.forces) if isinstance(atom, LastAtom | RecentAtom)]
    return any(tool != FINAL_ANSWER and automaton.place(tool) in possible for tool in (*recent, *(atom.tool for atom in guard.pending)))


def _doom(automaton: Automaton, way: Path | None) -> Doom | None:
    if way is None:
        return None
    state = automaton.start
    for event in way:
        state = automaton.step(state, automaton.place(event.tool), event.outcome)
    return doom_at(automaton, state, way)


def _read_finish(survey: Survey, interference: Interference, limit: int) -> None:
    """What the end rests on."""
    automaton, finish = survey.automaton, survey.finish or ()
    survey.min_steps = len(finish) + 1
    world = automaton.world
    unsure = frozenset(automaton.place(name) for name in world.may_fail | world.may_be_denied)
    if automaton.world_has_a_say:
        survey.supervisor_known = False
    else:
        survey.safe_steps = survey.min_steps
        survey.forced_within = _sure_steps(survey, interference, unsure, limit)
    sure_goal = Goal(automaton, interference, limit)
    survey.needed = tuple(
        name
        for name in dict.fromkeys(event.tool for event in finish)
        if name in sure_goal.needed or not _ends_without(automaton, interference, name, min(limit, _FEW))
    )
    useful = {automaton.place(name) for name in useful_names(automaton, interference)}
    survey.provided = tuple(
        one for one in automaton.opaque if automaton.final in one.targets or (one.may_never_pass and useful & one.targets)
    )


def _sure_steps(survey: Survey, interference: Interference, unsure: frozenset[int], limit: int) -> int | None:
    """Steps within which the end can be forced: without calls that may fail, since those may do so for ever."""
    if not unsure:
        return survey.min_steps
    try:
        sure = Goal(survey.automaton, interference, limit, avoid=unsure).way(survey.automaton.start)
    except OutOfBounds:
        return None
    return None if sure is None else len(sure) + 1


def _ends_without(automaton: Automaton, interference: Interference, name: str, limit: int) -> bool:
    """Whether some run ends in which a tool never succeeds; True also when that is too much to find out."""
    tool = automaton.place(name)
    try:
        if interference.looks_back and interference.spacers == (tool,):
            return Goal(automaton, interference, limit, failing=frozenset({tool})).way(automaton.start) is not None
        return Ending(Actions(automaton, interference, closed=frozenset({tool})), limit).can_end_from(automaton.start)
    except OutOfBounds:
        return True

"""What there is to know of a policy before it is put into findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from maymust.verify.automaton import Automaton
from maymust.verify.explore import Graph, Regions, stand_ins
from maymust.verify.opaque import Opaque
from maymust.verify.situation import Note
from maymust.verify.witness import Event

Path = tuple[Event, ...]


@dataclass
class Doom:
    """A state from which the end cannot be reached any more.

    path    a shortest way there
    owing   names of the rules that prevent the end there
    forced  the tool that is forced there
    closed  per owed tool the rules that close it there
    """

    path: Path
    owing: tuple[str, ...] = ()
    forced: str | None = None
    closed: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class Survey:
    """Facts about a policy in a world. Paths are shortest.

    max_turns      turns that a run has, None for no limit
    complete       everything was looked at; False: what is None or empty may be unknown
    notes          what is remarkable, with the way to the first state that shows it
    dead_end       the first state in which nothing may be called
    doomed         the first state from which no end can be reached
    livelock       the first state from which neither an end nor a dead end or conflict can be reached
    finish         a shortest run, without the final answer
    min_steps      its steps, the final answer counted
    exact          False when there may be a shorter run
    safe_steps     the same for a supervised run; None when there is no supervisor, or (supervisor_known) when that was not found out
    forced_within  steps within which the end can be forced
    worst_steps    the greatest distance to the end of a state that can reach it
    dead_tools     tools that can never be called
    silent         rules that never say anything
    needed         tools that have to succeed in every run that ends
    provided       opaque conditions without which some reachable state could not reach the end
    check_dead_end the first state in which opaque conditions may close everything, with their names
    check_stuck    per opaque condition the first state in which its answer can no longer change though it is needed
    """

    automaton: Automaton
    max_turns: int | None = None
    complete: bool = True
    states: int = 0
    moves: int = 0
    notes: dict[Note, Path] = field(default_factory=dict)
    dead_end: Doom | None = None
    doomed: Doom | None = None
    livelock: Doom | None = None
    finish: Path | None = None
    min_steps: int | None = None
    exact: bool = True
    safe_steps: int | None = None
    supervisor_known: bool = True
    forced_within: int | None = None
    worst_steps: int | None = None
    dead_tools: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    provided: tuple[Opaque, ...] = ()
    check_dead_end: tuple[Path, tuple[str, ...]] | None = None
    check_stuck: dict[Opaque, Path] = field(default_factory=dict)

    def rules_on(self, tool: str) -> tuple[str, ...]:
        """The rules whose target is a tool."""
        place = self.automaton.place(tool)
        return tuple(clause.name for clause in self.automaton.clauses if clause.place == place)

    def owing_at_start(self) -> tuple[str, ...]:
        """The rules that prevent the end before any step."""
        return doom_at(self.automaton, self.automaton.start, ()).owing

    def owed_tools(self, owing: Iterable[str]) -> tuple[str, ...]:
        """The tools that have to be called where some rules owe something."""
        guards = {name: guard for name, guard in self.automaton.compiled.guards if name in owing}
        owed = [guard.owes.tool for guard in guards.values() if guard.owes is not None]
        return tuple(dict.fromkeys((*owed, *(name for guard in guards.values() for atom in guard.pending for name in atom.then))))

    def forcing(self, doom: Doom) -> tuple[str, ...]:
        """The rules that may force the tool that is forced."""
        return tuple(name for name, guard in self.automaton.compiled.guards if guard.target == doom.forced and guard.forces)


def doom_at(automaton: Automaton, state: int, path: Path) -> Doom:
    """Describe a state without a way to the end."""
    flags = automaton.flags(state)
    situation = automaton.situation(state)
    owing: list[str] = []
    closed: dict[str, tuple[str, ...]] = {}
    for clause in automaton.clauses:
        bits = clause.bits
        if (bits.owes and not flags & bits.owes) or flags & bits.pending:
            owing.append(clause.name)
    for clause in automaton.clauses:
        if clause.bits.is_closed(flags):
            name = automaton.tools[clause.place]
            closed[name] = (*closed.get(name, ()), clause.name)
    for place, rules in automaton.said_no(state).items():
        name = automaton.tools[place]
        closed[name] = (*closed.get(name, ()), *rules)
    forced = None if situation.forced is None else automaton.tools[situation.forced]
    return Doom(path, tuple(owing), forced, closed)


def survey_of(graph: Graph) -> Survey:
    """Read everything off a graph; of an incomplete one, what holds all the same."""
    automaton = graph.automaton
    survey = Survey(automaton, complete=graph.complete, states=len(graph.states), moves=graph.edges)
    for number, situation in enumerate(graph.situations):
        for note in situation.notes:
            if note not in survey.notes:
                survey.notes[note] = graph.path(number)
        if situation.fault == "dead_end" and survey.dead_end is None:
            survey.dead_end = doom_at(automaton, graph.states[number], graph.path(number))
    end = next(graph.ends(), None)
    if end is not None:
        survey.finish = graph.path(end)
        survey.min_steps = len(survey.finish) + 1
    if automaton.opaque:
        survey.check_dead_end = _check_dead_end(graph)
    if graph.complete:
        _read_callable(graph, survey)
        _read_regions(graph, Regions(graph), survey)
    return survey


def _read_callable(graph: Graph, survey: Survey) -> None:
    automaton = graph.automaton
    callable_ = {place for situation in graph.situations if situation.fault is None for place in situation.tools}
    survey.dead_tools = tuple(name for place, name in enumerate(automaton.tools[:-1]) if place not in callable_)
    silent = list(automaton.clauses)
    for state in graph.states:
        if not silent:
            break
        flags = automaton.flags(state)
        silent = [clause for clause in silent if not clause.speaks(flags)]
    survey.silent = tuple(clause.name for clause in silent if not clause.partial)


def _read_regions(graph: Graph, regions: Regions, survey: Survey) -> None:
    distance = regions.distance
    survey.safe_steps = regions.safe.get(0)
    survey.forced_within = regions.guaranteed.get(0)
    survey.worst_steps = max(distance.values(), default=None)

    def first(numbers: Iterable[int]) -> Doom | None:
        number = min(numbers, default=None)
        return None if number is None else doom_at(graph.automaton, graph.states[number], graph.path(number))

    doomed = [number for number in range(len(graph.states)) if number not in distance]
    if doomed:
        survey.doomed = first(doomed)
        faults = [number for number, situation in enumerate(graph.situations) if situation.fault is not None]
        leading = graph.leading_to(faults, regions.sources) if faults else {}
        survey.livelock = first(number for number in doomed if number not in leading)
    if survey.finish is not None:
        ways = Ways(graph, regions)
        names = dict.fromkeys(event.tool for event in survey.finish)
        survey.needed = tuple(name for name in names if not ways.finishes_without(graph.automaton.place(name)))
        survey.provided = tuple(one for one in graph.automaton.opaque if ways.needs(one))
        survey.check_stuck = {one: path for one in survey.provided for path in ways.stuck(one)}


class Ways:
    """Ways to the end that avoid some calls."""

    def __init__(self, graph: Graph, regions: Regions) -> None:
        self._graph = graph
        self._regions = regions

    def finishes_without(self, tool: int) -> bool:
        """Whether some run ends in which the tool never succeeds."""
        if stand_ins(self._graph.automaton).count(tool) > 1:
            return True  # there are others like it
        return 0 in self._without(lambda number, place, target, first: place == tool and first)

    def needs(self, one: Opaque) -> bool:
        """Whether some state that can reach the end needs a yes of the condition for it."""
        if self._graph.automaton.final in one.targets:
            return True
        return one.may_never_pass and len(self._reaching(one)) < len(self._regions.distance)

    def stuck(self, one: Opaque) -> list[tuple[Event, ...]]:
        """A shortest way to a state that needs a yes of the condition which nothing can change any more; or nothing."""
        if one.depends_on is None:
            return []
        graph = self._graph
        changing = {number for number, moves in enumerate(graph.moves) if any(tool in one.depends_on for tool, _ in moves)}
        leading = graph.leading_to(changing, self._regions.sources)
        reaching = self._reaching(one)
        numbers = [number for number in self._regions.distance if number not in reaching and number not in leading]
        return [graph.path(min(numbers))] if numbers else []

    def _reaching(self, one: Opaque) -> set[int]:
        """The states that reach the end without calling what the condition may close."""
        graph, automaton = self._graph, self._graph.automaton

        def closed(number: int, place: int, target: int, first: bool) -> bool:
            return place in one.targets and one in automaton.undecided(graph.states[number])

        return self._without(closed)

    def _without(self, closed: Callable[[int, int, int, bool], bool]) -> set[int]:
        graph = self._graph
        sources: list[list[int]] = [[] for _ in graph.states]
        for number, moves in enumerate(graph.moves):
            for place, targets in moves:
                for index, target in enumerate(targets):
                    if not closed(number, place, target, index == 0):
                        sources[target].append(number)
        return set(graph.leading_to(list(graph.ends()), sources))


def _check_dead_end(graph: Graph) -> tuple[tuple[Event, ...], tuple[str, ...]] | None:
    """The first state in which everything that is open may be closed by opaque conditions."""
    automaton = graph.automaton
    for number, situation in enumerate(graph.situations):
        if situation.fault is not None:
            continue
        undecided = automaton.undecided(graph.states[number])
        open_ = {*situation.tools, *((automaton.final,) if situation.may_stop else ())}
        closable = frozenset().union(*(one.targets for one in undecided))
        if open_ <= closable:
            return graph.path(number), tuple(dict.fromkeys(one.text for one in undecided if one.targets & open_))
    return None

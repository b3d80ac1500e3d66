"""Asking the requirements of a policy what they say, and knowing when they would say the same again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from maymust.core.flags import Flags
from maymust.core.given import Interned, ask_opaque, read_rules
from maymust.core.guard import Guard
from maymust.core.history import History
from maymust.core.requirement import BoundRequirement, BuiltIn, RunView
from maymust.core.rule import Rule
from maymust.core.tool_set import ToolSet
from maymust.core.verdict import Extra, Voice
from maymust.errors import ForceUnmetError

Said: TypeAlias = tuple[Rule, ...]
Rest: TypeAlias = dict[int, Said | ForceUnmetError]


_NOBODY: frozenset[int] = frozenset()


class Question(NamedTuple):
    """All that requirements are asked with."""

    history: History
    view: RunView
    memories: Mapping[str, dict[str, Any]] | None
    given: Mapping[str, Iterable[Rule]] | None
    tools: ToolSet
    relaxed: bool


class Speakers:
    """The enabled requirements of a policy.

    Those with a guard say the same wherever the same flags hold; the rest are asked every time.
    """

    def __init__(self, seats: Sequence[BoundRequirement], home: ToolSet) -> None:
        self.seats: tuple[BoundRequirement, ...] = tuple(seats)
        self._home = home
        self._built_in = tuple(isinstance(seat, BuiltIn) for seat in self.seats)
        self._remembers = tuple(getattr(seat, "uses_memory", True) for seat in self.seats)
        guards = tuple(guard_of(seat) for seat in self.seats)
        whole = tuple(guard is not None and not guard.is_partial for guard in guards)
        self.flags: Flags = Flags(guard for guard, is_whole in zip(guards, whole, strict=True) if guard is not None and is_whole)
        self.rest: tuple[int, ...] = tuple(place for place, is_whole in enumerate(whole) if not is_whole)
        self.opaque: tuple[BoundRequirement, ...] = tuple(
            seat for seat, built_in in zip(self.seats, self._built_in, strict=True) if not built_in
        )
        self._interned = Interned()
        self._narrowers = self._steady_narrowers()

    def _steady_narrowers(self) -> dict[int, str]:
        """Places of requirements whose rules differ in nothing a fold looks at as long as they allow, each with its tool.

        They narrow one parameter by values of which there is always one the tool takes; where somebody else may narrow it too, there
        may be none in common.
        """
        if self.opaque:
            return {}
        narrowed = [(place, getattr(seat, "narrows", None)) for place, seat in enumerate(self.seats)]
        several = Counter(what for _, what in narrowed if what is not None)
        steady = {place for place in self.rest if getattr(self.seats[place], "is_steady", True)}
        return {place: what[0] for place, what in narrowed if place in steady and what is not None and several[what] == 1}

    def steady(self, tools: ToolSet, extra: Sequence[Extra]) -> frozenset[int]:
        """The places of such requirements over these tools."""
        if not self._narrowers or any(one.rule.arguments for one in extra):
            return _NOBODY
        if tools.steady is None:
            home = self._home.by_name
            tools.steady = frozenset(place for place, name in self._narrowers.items() if tools.by_name.get(name) is home.get(name))
        return tools.steady

    def ask(self, place: int, question: Question) -> Said:
        """What one requirement says, as a tuple whose identity tells its contents. Raises what the requirement raises."""
        seat = self.seats[place]
        view = self.view_of(place, question.view, question.memories)
        if self._built_in[place]:
            said: Said = seat.rules(question.history, view)
            return said
        if question.given is not None and seat.name in question.given:
            answer: Any = question.given[seat.name]
        else:
            answer = ask_opaque(seat, lambda: seat.rules(question.history, view))
        rules = ask_opaque(seat, lambda: read_rules(seat.name, answer, question.tools, self._home))
        return self._interned.group(map(self._interned.rule, rules))

    def ask_rest(self, question: Question) -> Rest:
        """What the requirements without a guard say. A ForceUnmetError of theirs is kept for `ask_all`, so that nobody is asked twice."""
        rest: Rest = {}
        for place in self.rest:
            try:
                rest[place] = self.ask(place, question)
            except ForceUnmetError as error:
                rest[place] = error
        return rest

    def ask_all(self, question: Question, rest: Rest) -> list[Said]:
        """What all say; `rest` has spoken already.

        A ForceUnmetError passes, unless obligations are relaxed or its tool is absent: then the denial behind it counts.
        """
        said = []
        for place in range(len(self.seats)):
            try:
                answer = rest[place] if place in rest else self.ask(place, question)
                if isinstance(answer, ForceUnmetError):
                    raise answer
            except ForceUnmetError as error:
                if not question.relaxed and error.tool in question.tools.order:
                    raise
                answer = self._interned.group(() if error.rule is None else (self._interned.rule(error.rule),))
            said.append(answer)
        return said

    def key_of_rest(self, rest: Rest, steady: frozenset[int] = frozenset()) -> tuple[int, ...]:
        """What tells the answers of the rest apart, as far as a fold is concerned."""
        if steady:
            return tuple(
                0 if place in steady and not isinstance(answer, ForceUnmetError) and answer[0].allowed else self._identity(answer)
                for place, answer in rest.items()
            )
        return tuple(map(self._identity, rest.values()))

    def _identity(self, answer: Said | ForceUnmetError) -> int:
        return -id(answer.rule and self._interned.rule(answer.rule)) if isinstance(answer, ForceUnmetError) else id(answer)

    def view_of(self, place: int, view: RunView, memories: Mapping[str, dict[str, Any]] | None) -> RunView:
        """The run as one requirement sees it: with its own memory."""
        if memories is None or not self._remembers[place]:
            return view
        return view.remembering(memories.get(self.seats[place].name, {}))

    def key_of(self, extra: Sequence[Extra]) -> tuple[Any, ...]:
        """What tells extra rules apart."""
        return tuple((one.name, id(self._interned.rule(one.rule)), one.lapses_force) for one in extra)

    def voices(self, said: Sequence[Said], extra: Sequence[Extra]) -> list[Voice]:
        """Who said what, the extra rules above all."""
        voices = [Voice(one.name, one.priority, self._interned.rule(one.rule), lapses_force=one.lapses_force) for one in extra]
        for place, (seat, rules) in enumerate(zip(self.seats, said, strict=True)):
            lapses = getattr(seat, "lapses_force", False)
            voices.extend(Voice(seat.name, seat.priority, rule, seat=place, lapses_force=lapses) for rule in rules)
        for order, voice in enumerate(voices):
            voice.order = order
        return voices


def guard_of(requirement: BoundRequirement) -> Guard | None:
    """The requirement's conditions as data, None where it has none to give."""
    guard = getattr(requirement, "guard", None)
    found = guard() if callable(guard) else None
    return found if isinstance(found, Guard) else None

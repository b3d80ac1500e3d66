"""A checked, ordered set of requirements over a known set of tools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from maymust.core.bounds import Bounds
from maymust.core.dead_end import dead_end
from maymust.core.fold import Mode, fold
from maymust.core.folded import Folded
from maymust.core.gate import Gate
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.requirement import BoundRequirement, BuiltIn, RunView, bind
from maymust.core.rule import Rule
from maymust.core.speakers import Question, Rest, Speakers
from maymust.core.tool_set import ToolSet, ToolSets
from maymust.core.tool_spec import FINAL_ANSWER, ToolLike
from maymust.core.verdict import Extra
from maymust.errors import ForceUnmetError, PolicyError

_EMPTY = History()


class Policy:
    """Requirements over tools, checked at construction; `permit(history)` says what they make of a history.

    requirements          in their order, which decides between equal priorities only the order of reasons
    tools                 names or tools, in their order; `final_answer` is implied and comes last
    final_answer_as_tool  False: the answer is given as text, so the choice is `auto` where the run may stop

    Raises PolicyError for unknown targets, duplicate or reserved tool names, and whatever a requirement refuses.
    Immutable, and safe to share between runs and threads; a deep copy is the policy itself. It can be pickled where what it was given
    can be: names and functions of modules, but no lambda and no `@tool`.
    """

    def __init__(self, requirements: Iterable[Any] = (), *, tools: Iterable[ToolLike] = (), final_answer_as_tool: bool = True) -> None:
        for given in (requirements, tools):
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise PolicyError(f"requirements and tools have to be lists, got {given!r:.80}")
        if not isinstance(final_answer_as_tool, bool):
            raise PolicyError(f"final_answer_as_tool has to be True or False, got {final_answer_as_tool!r}")
        self._home = ToolSet(tools)
        self.final_answer_as_tool = final_answer_as_tool
        bound: dict[str, BoundRequirement] = {}
        for requirement in requirements:
            one = bind(requirement, self._home.specs, bound)
            bound[one.name] = one
        self.requirements: tuple[BoundRequirement, ...] = tuple(bound.values())
        self._seats = tuple(one for one in self.requirements if one.enabled)
        self._speakers = Speakers(self._seats, self._home)
        self._sets = ToolSets(self._home)
        self._hash: str | None = None

    @property
    def opaque(self) -> tuple[BoundRequirement, ...]:
        """The enabled requirements that only their rules are known of."""
        return self._speakers.opaque

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools, without `final_answer`."""
        return self._home.names

    @property
    def specs(self) -> tuple[ToolLike, ...]:
        """The tools as they were given."""
        return self._home.specs

    def permit(
        self,
        history: History = _EMPTY,
        run: RunView | None = None,
        *,
        memories: Mapping[str, dict[str, Any]] | None = None,
        extra: Sequence[Extra] = (),
        given: Mapping[str, Iterable[Rule]] | None = None,
        relaxed: bool = False,
        mode: Mode = None,
        present: Sequence[ToolLike] | None = None,
    ) -> Permit:
        """Return the pass for the next turn. Pure: the same arguments give the same permit.

        run       what requirements see beside the history; its tools are replaced by those present
        memories  per requirement its memory in this run
        extra     rules of the run itself, above every requirement
        given     per opaque requirement the rules it gave elsewhere; the others are evaluated here
        relaxed   obligations of the requirements (force, `prevent_stop`, ForceUnmetError) are off; permissions and extras are not
        mode      the run's word for `tool_choice`
        present   the tools of this moment, in order (default: all tools of the policy). Rules on absent tools keep their
                  `prevent_stop`; of tools that the policy does not know no rule speaks

        Raises ForceUnmetError, ConflictError, DeadEndError (in this order), and PolicyError for a requirement at fault.
        """
        tools = self._home if present is None else self._sets.find(present)
        if not self._seats and not extra:
            return self._silent(tools, mode)
        speakers = self._speakers
        view = tools.view if run is None else _view_of(run, tools)
        key: Any = speakers.flags.of(history)
        if extra or relaxed or mode is not None:
            key = (key, relaxed, mode, speakers.key_of(extra))
        rest: Rest = {}
        steady: frozenset[int] = frozenset()
        if speakers.rest:
            rest = speakers.ask_rest(Question(history, view, memories, given, tools, relaxed))
            steady = speakers.steady(tools, extra)
            key = (key, speakers.key_of_rest(rest, steady))
        entry = tools.by_situation.get(key)
        if entry is None:
            entry = self._fold(key, Question(history, view, memories, given, tools, relaxed), rest, extra, mode)
        elif steady:
            entry = _renewed(entry, rest, steady)
            # The newest one is the nearest to what comes next. What the key speaks of is in both.
            tools.by_situation[key] = entry
        folded: Folded = entry[1]
        permit = Permit(folded, history, self._seats, view, memories)
        if not folded.allowed:
            raise dead_end(permit, folded)
        return permit

    def _fold(self, key: Any, question: Question, rest: Rest, extra: Sequence[Extra], mode: Mode) -> tuple[Any, Folded]:
        """Ask everybody, and fold what they say, unless the very same was folded before. Gives what was said, and the fold."""
        said = self._speakers.ask_all(question, rest)
        # What was said is found again by identity. Entries keep it alive, so that nothing else can take those identities.
        spoken = (tuple(map(id, said)), question.relaxed, mode, self._speakers.key_of(extra))
        entry = question.tools.by_rules.get(spoken)
        if entry is None:
            voices = self._speakers.voices(said, extra)
            folded = fold(voices, question.tools, final_answer_as_tool=self.final_answer_as_tool, relaxed=question.relaxed, mode=mode)
            entry = question.tools.by_rules.put(spoken, (said, folded))
        result: tuple[Any, Folded] = question.tools.by_situation.put(key, entry)
        return result

    def _silent(self, tools: ToolSet, mode: Mode) -> Permit:
        """The one permit of a policy that says nothing."""
        permit: Permit | None = tools.by_situation.get(("silent", mode))
        if permit is None:
            made = Permit(fold((), tools, final_answer_as_tool=self.final_answer_as_tool, mode=mode), _EMPTY)
            permit = tools.by_situation.put(("silent", mode), made)
        return permit

    def surely_admits(
        self,
        tool: str,
        bounds: Bounds,
        *,
        run: RunView | None = None,
        memories: Mapping[str, dict[str, Any]] | None = None,
        present: Sequence[ToolLike] | None = None,
    ) -> bool:
        """True when every built-in requirement lets `tool` run, with the same narrowing and question, however the open calls end.

        Opaque requirements are the caller's business. False only means that the call has to wait for what is open.
        """
        tools = self._home if present is None else self._sets.find(present)
        if tool not in tools.order:
            return False
        view = tools.view if run is None else _view_of(run, tools)
        for place, seat in enumerate(self._seats):
            if not isinstance(seat, BuiltIn):
                continue
            if tool != FINAL_ANSWER and seat.target is not None and seat.target not in tools.order:
                continue  # of a rule on an absent tool only prevent_stop is left
            if not seat.surely_admits(tool, bounds, self._speakers.view_of(place, view, memories)):
                return False
        return True

    def gate(self) -> Gate:
        """Return a gate for one run: the policy for somebody else's loop."""
        return Gate(self)

    def describe(self) -> dict[str, Any]:
        """Names, parameters and tools, as JSON."""
        return {
            "tools": list(self.tools),
            "final_answer_as_tool": self.final_answer_as_tool,
            "requirements": [
                {"name": one.name, "priority": one.priority, "enabled": one.enabled, **_described(one)} for one in self.requirements
            ],
        }

    @property
    def hash(self) -> str:
        """A digest of names, parameters, tool schemas and the `version` of custom requirements; not of their code."""
        if self._hash is None:
            schemas = {name: getattr(tool, "parameters", None) for name, tool in self._home.by_name.items()}
            text = json.dumps([self.describe(), schemas], sort_keys=True, separators=(",", ":"), default=repr)
            self._hash = hashlib.sha256(text.encode()).hexdigest()
        return self._hash

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # What its author gave (tools, handlers, a shared memory) is meant as that very object, and may not be copyable.
        return self

    def __repr__(self) -> str:
        return f"Policy([{', '.join(one.name for one in self.requirements)}], tools=[{', '.join(self.tools)}])"


def _renewed(entry: tuple[Any, Folded], rest: Rest, steady: frozenset[int]) -> tuple[Any, Folded]:
    """The fold of a situation with other values in the rules of these requirements."""
    said, folded = entry
    changed = {place: rest[place] for place in steady if rest[place] is not said[place]}
    if not changed:
        return entry
    rules = {place: answer[0] for place, answer in changed.items() if not isinstance(answer, ForceUnmetError)}
    return [changed.get(place, answer) for place, answer in enumerate(said)], folded.renewed(rules)


def _view_of(run: RunView, tools: ToolSet) -> RunView:
    return run if run.tools == tools.names else replace(run, tools=tools.names)


def _described(requirement: BoundRequirement) -> dict[str, Any]:
    describe = getattr(requirement, "describe", None)
    return dict(describe()) if callable(describe) else {}

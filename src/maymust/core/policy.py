"""A checked, ordered set of requirements over a known set of tools."""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from maymust.core.bounds import Bounds
from maymust.core.fold import Mode, fold
from maymust.core.folded import Folded
from maymust.core.gate import Gate
from maymust.core.given import Interned, ask_opaque, read_rules
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.requirement import BoundRequirement, BuiltIn, RunView, bind
from maymust.core.rule import Rule
from maymust.core.tool_set import ToolSet
from maymust.core.tool_spec import FINAL_ANSWER, ToolLike, tool_name
from maymust.core.verdict import Extra, Voice
from maymust.errors import DeadEndError, ForceUnmetError, PolicyError

_EMPTY = History()
_CACHED = 1024
_SETS = 64


class Policy:
    """Requirements over tools, checked at construction; `permit(history)` says what they make of a history.

    requirements          in their order, which decides between equal priorities only the order of reasons
    tools                 names or tools, in their order; `final_answer` is implied and comes last
    final_answer_as_tool  False: the answer is given as text, so the choice is `auto` where the run may stop

    Raises PolicyError for unknown targets, duplicate or reserved tool names, and whatever a requirement refuses.
    Immutable, and safe to share between runs and threads.
    """

    def __init__(self, requirements: Iterable[Any] = (), *, tools: Iterable[ToolLike] = (), final_answer_as_tool: bool = True) -> None:
        if isinstance(tools, str) or isinstance(requirements, str):
            raise PolicyError("requirements and tools have to be lists, got a text")
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
        self.opaque: tuple[BoundRequirement, ...] = tuple(one for one in self._seats if not isinstance(one, BuiltIn))
        self._is_built_in = tuple(isinstance(one, BuiltIn) for one in self._seats)
        self._speakers = tuple(one.rules for one in self._seats)
        # Most requirements keep no memory, and then they can all be asked with one view of the run.
        self._remembering = tuple(getattr(one, "uses_memory", True) for one in self._seats)
        self._simple = not any(self._remembering)
        self._interned = Interned()
        self._sets: dict[tuple[int, ...], ToolSet] = {}
        self._elsewhere: dict[int, tuple[Sequence[ToolLike], ToolSet]] = {}
        self._lock = threading.Lock()
        self._hash: str | None = None

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
        tools = self._home if present is None else self._tool_set(present)
        if not self._seats and not extra:
            return self._silent(tools, relaxed, mode)
        view = tools.view if run is None else _view_of(run, tools)
        said: Sequence[tuple[Rule, ...]]
        try:
            if self._simple:
                said = [rules(history, view) for rules in self._speakers]
            else:
                said = [self._rules(place, history, view, memories, given, tools) for place in range(len(self._seats))]
        except ForceUnmetError as error:
            if not relaxed and error.tool in tools.order:
                raise
            said = self._pardoned(history, view, memories, given, tools, relaxed)
        plain = not extra and not relaxed and mode is None
        key: Any = tuple(map(id, said))
        if not plain:
            key = (key, relaxed, mode, tuple((one.name, id(self._interned.rule(one.rule)), one.lapses_force) for one in extra))
        entry = tools.cache.get(key)
        folded = entry[1] if entry is not None else self._folded(key, said, tools, extra, relaxed, mode)
        permit = Permit(folded, history, self._seats, view, memories)
        if not folded.allowed:
            raise _dead_end(permit, folded)
        return permit

    def _rules(
        self,
        place: int,
        history: History,
        view: RunView,
        memories: Mapping[str, dict[str, Any]] | None,
        given: Mapping[str, Iterable[Rule]] | None,
        tools: ToolSet,
    ) -> tuple[Rule, ...]:
        """What one requirement says, as a tuple whose identity tells its contents."""
        seat = self._seats[place]
        if memories is not None and self._remembering[place]:
            view = RunView(memories.get(seat.name, {}), view.tools, view.metadata, view.deps, view.now)
        if self._is_built_in[place]:
            rules: tuple[Rule, ...] = seat.rules(history, view)
            return rules
        if given is not None and seat.name in given:
            answer: Any = given[seat.name]
        else:
            answer = ask_opaque(seat, lambda: seat.rules(history, view))
        read = ask_opaque(seat, lambda: read_rules(seat.name, answer, tools, self._home))
        return self._interned.group(map(self._interned.rule, read))

    def _pardoned(
        self,
        history: History,
        view: RunView,
        memories: Mapping[str, dict[str, Any]] | None,
        given: Mapping[str, Iterable[Rule]] | None,
        tools: ToolSet,
        relaxed: bool,
    ) -> list[tuple[Rule, ...]]:
        """What all requirements say, where a force that cannot be met counts as the denial that stands behind it."""
        said = []
        for place in range(len(self._seats)):
            try:
                said.append(self._rules(place, history, view, memories, given, tools))
            except ForceUnmetError as error:
                if not relaxed and error.tool in tools.order:
                    raise
                said.append(self._interned.group(() if error.rule is None else (self._interned.rule(error.rule),)))
        return said

    def _folded(
        self, key: Any, said: Sequence[tuple[Rule, ...]], tools: ToolSet, extra: Sequence[Extra], relaxed: bool, mode: Mode
    ) -> Folded:
        voices = [
            Voice(one.name, math.inf, self._interned.rule(one.rule), order=order, lapses_force=one.lapses_force)
            for order, one in enumerate(extra)
        ]
        for place, (seat, rules) in enumerate(zip(self._seats, said, strict=True)):
            lapses = getattr(seat, "lapses_force", False)
            voices.extend(Voice(seat.name, seat.priority, rule, order=place, seat=place, lapses_force=lapses) for rule in rules)
        folded = fold(voices, tools, final_answer_as_tool=self.final_answer_as_tool, relaxed=relaxed, mode=mode)
        # The entry holds what its key was made of: as long as it is here, no other object can take those identities.
        with self._lock:
            if len(tools.cache) >= _CACHED:
                tools.cache.pop(next(iter(tools.cache)))
            tools.cache[key] = ((tuple(said), tuple(voices)), folded)
        return folded

    def _silent(self, tools: ToolSet, relaxed: bool, mode: Mode) -> Permit:
        """The one permit of a policy that says nothing."""
        key = ("silent", mode)
        permit = tools.cache.get(key)
        if permit is None:
            permit = Permit(fold((), tools, final_answer_as_tool=self.final_answer_as_tool, mode=mode), _EMPTY)
            tools.cache[key] = permit
        return permit

    def _tool_set(self, present: Sequence[ToolLike]) -> ToolSet:
        """The set for the tools of a moment; found by identity where the same tuple is given again."""
        entry = self._elsewhere.get(id(present))
        if entry is not None and entry[0] is present:
            return entry[1]
        given = tuple(tool for tool in present if tool_name(tool) != FINAL_ANSWER)
        if given == self._home.specs:
            return self._home
        key = tuple(map(id, given))
        with self._lock:
            tools = self._sets.get(key)
            if tools is None:
                if len(self._sets) >= _SETS:
                    self._sets.clear()
                    self._elsewhere.clear()
                tools = self._sets[key] = ToolSet(given)
            if isinstance(present, tuple):
                self._elsewhere[id(present)] = (present, tools)
        return tools

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
        tools = self._home if present is None else self._tool_set(present)
        if tool not in tools.order:
            return False
        view = tools.view if run is None else _view_of(run, tools)
        for place, seat in enumerate(self._seats):
            if not isinstance(seat, BuiltIn):  # TODO
                continue
            if tool != FINAL_ANSWER and seat.target is not None and seat.target not in tools.order:
                continue  # of a rule on an absent tool only prevent_stop is left
            own = view
            if memories is not None and self._remembering[place]:
                own = RunView(memories.get(seat.name, {}), view.tools, view.metadata, view.deps, view.now)
            if not seat.surely_admits(tool, bounds, own):
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

    def __repr__(self) -> str:
        return f"Policy([{', '.join(one.name for one in self.requirements)}], tools=[{', '.join(self.tools)}])"


def _view_of(run: RunView, tools: ToolSet) -> RunView:
    return run if run.tools == tools.names else replace(run, tools=tools.names)


def _described(requirement: BoundRequirement) -> dict[str, Any]:
    describe = getattr(requirement, "describe", None)
    return dict(describe()) if callable(describe) else {}


def _dead_end(permit: Permit, folded: Folded) -> DeadEndError:
    """The error of a permit that allows nothing, with everyone who had a part in it."""
    parts = []
    names: dict[str, None] = {}
    for tool in folded.tools:
        closers = folded.closers(tool)
        by = dict.fromkeys(voice.requirement for voice in closers)
        names.update(by)
        why = "; ".join(dict.fromkeys(voice.rule.reason for voice in closers if voice.rule.reason))
        parts.append(f"{tool} is closed by {' and '.join(by)}{f' ({why})' if why else ''}")
    return DeadEndError(
        f"nothing may be called and the run may not end: {', '.join(parts)}. Loosen one of these requirements",
        permit=permit,
        requirements=tuple(names),
    )

"""Sets of states as binary decision diagrams, for policies with more states than can be looked at one by one (extra: bdd).

A state is one variable a fact: "called at least n times", "the last call", "so many steps", "owed". A call changes few of them, so sets
of billions of states often have a small diagram; where they do not, nothing is decided.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator
from typing import Any

from maymust.core.guard import Atom, CountedAtom, LastAtom, PendingAtom, RecentAtom, StepAtom
from maymust.verify.automaton import Automaton
from maymust.verify.ending import OutOfBounds
from maymust.verify.explore import stand_ins
from maymust.verify.symbolic_rules import SymbolicRules

NODES = 300_000
"""Nodes of all diagrams together, beyond which the search gives up. They take a few seconds."""


LARGEST = 5_000
"""Nodes of one diagram, beyond which a single operation on it may run away."""

LONGEST = 60
"""Facts of one scale (a tool's limit, or a step), beyond which the steps along it take more than a few seconds."""

FACTS = 600
"""Facts of all scales together, beyond which the operations on diagrams, which go into one fact after another, nest too deep."""


def why_not(automaton: Automaton) -> str | None:
    """Why the states of an automaton cannot be told by such facts alone; None when they can."""
    world = automaton.world
    atoms = [atom for _, guard in automaton.compiled.guards for atom in guard.atoms()]
    if world.loads or len(world.present) < automaton.final:
        return "some tools are not there from the start"
    if automaton.opaque:
        return "some tools are closed by checks"
    if world.may_fail or world.may_be_denied:
        return "the outcomes are the world's choice"
    if any(isinstance(atom, RecentAtom) for atom in atoms):
        return "a tool has a cooldown"
    return None


class Symbolic:
    """The reachable states of an automaton, and those of them that can reach the end.

    reachable   every state that can be reached
    ending      those from which the end can be reached
    rules       sets of states in which something holds

    Raises OutOfBounds when diagrams grow too large, and ImportError without the library.
    """

    def __init__(self, automaton: Automaton, *, nodes: int = NODES) -> None:
        from dd.autoref import BDD

        self.automaton: Automaton = automaton
        self._bdd: Any = BDD()
        self._nodes = nodes
        self._tools = tuple(place for place, stand_in in enumerate(stand_ins(automaton)) if stand_in == place)
        self._declare()
        self.rules: SymbolicRules = SymbolicRules(automaton, self._bdd, self._holds)
        self._start = self._bdd.cube(dict.fromkeys(self._variables, False))
        self.reachable: Any = self._closure(self._start, self._after)
        self.ending: Any = self.leading_to(self.rules.may_stop)

    # --- facts as variables ---
    def _declare(self) -> None:
        """One variable a fact; those of tools that rules name together are near each other."""
        self._counts: dict[str, int] = {}
        self._lasts: set[str] = set()
        self._pending: dict[PendingAtom, str] = {}
        self._steps = 0
        linked: dict[str, set[str]] = {}
        for _, guard in self.automaton.compiled.guards:
            names = {guard.target}
            for atom in guard.atoms():
                names.update(() if isinstance(atom, StepAtom) else (atom.tool,))
                if isinstance(atom, CountedAtom):
                    self._counts[atom.tool] = max(self._counts.get(atom.tool, 0), atom.times)
                elif isinstance(atom, LastAtom):
                    self._lasts.add(atom.tool)
                elif isinstance(atom, StepAtom):
                    self._steps = max(self._steps, atom.step)
                elif isinstance(atom, PendingAtom):
                    names.update(atom.then)
                    self._pending.setdefault(atom, f"p{len(self._pending)}")
            for name in names:
                linked.setdefault(name, set()).update(names)
        scales = (self._steps, *self._counts.values())
        if max(scales) > LONGEST or sum(scales) + len(self._lasts) + len(self._pending) > FACTS:
            raise OutOfBounds
        self._variables = [f"s{step}" for step in range(1, self._steps + 1)]
        for name in _near(linked):
            place = self.automaton.place(name)
            self._variables += [f"c{place}_{times}" for times in range(1, self._counts.get(name, 0) + 1)]
            self._variables += [f"l{place}"] if name in self._lasts else []
            self._variables += [word for atom, word in self._pending.items() if atom.tool == name]
        self._bdd.declare(*self._variables)

    def _holds(self, atom: Atom) -> Any:
        """The states in which a fact holds."""
        var = self._bdd.var
        if isinstance(atom, CountedAtom):
            return var(f"c{self.automaton.place(atom.tool)}_{atom.times}")
        if isinstance(atom, LastAtom):
            return var(f"l{self.automaton.place(atom.tool)}")
        if isinstance(atom, StepAtom):
            before = var(f"s{atom.step - 1}") if atom.step > 1 else self._bdd.true
            return before & ~var(f"s{atom.step}")
        assert isinstance(atom, PendingAtom)
        return var(self._pending[atom])

    # --- moving ---
    def _scales(self, tool: int) -> Iterator[list[str]]:
        """The variables that count a call: of each scale the first that is not set becomes so."""
        yield [f"c{tool}_{times}" for times in range(1, self._counts.get(self.automaton.tools[tool], 0) + 1)]
        yield [f"s{step}" for step in range(1, self._steps + 1)]

    def _set(self, tool: int) -> dict[str, bool]:
        """The variables that a call sets or clears, whatever they were."""
        name = self.automaton.tools[tool]
        values = {f"l{self.automaton.place(other)}": other == name for other in self._lasts}
        for atom, word in self._pending.items():
            if atom.tool == name or name in atom.then:
                # No call answers itself.
                values[word] = atom.tool == name
        return values

    def _after(self, states: Any, tool: int) -> Any:
        """The states after a call of a tool in some of these."""
        bdd = self._bdd
        states &= self.rules.open[tool]
        values = self._set(tool)
        if values and states != bdd.false:
            states = bdd.exist(list(values), states) & bdd.cube(values)
        for scale in self._scales(tool):
            if scale and states != bdd.false:
                moved = states & bdd.var(scale[-1])
                for place, word in enumerate(scale):
                    here = states & ~bdd.var(word) & (bdd.var(scale[place - 1]) if place else bdd.true)
                    moved |= bdd.exist([word], here) & bdd.var(word)
                states = moved
        return states

    def _before(self, states: Any, tool: int) -> Any:
        """The states in which a call of a tool leads to one of these."""
        bdd = self._bdd
        values: dict[str, Any] = {word: bdd.true if value else bdd.false for word, value in self._set(tool).items()}
        for scale in self._scales(tool):
            for place, word in enumerate(scale):
                values[word] = bdd.var(word) | bdd.var(scale[place - 1]) if place else bdd.true
        return self.rules.open[tool] & (bdd.let(values, states) if values else states)

    def _closure(self, states: Any, move: Any) -> Any:
        known = None
        while states != known:
            known = states
            for tool in self._tools:
                states |= move(states, tool)
                self._check_size(states)
        return states

    def _check_size(self, states: Any) -> None:
        if len(self._bdd) > self._nodes or len(states) > LARGEST:
            raise OutOfBounds

    # --- asking ---
    def way_to(self, wanted: Any) -> tuple[int, ...] | None:
        """A shortest way to one of some states, as places of tools; None when none can be reached."""
        bdd = self._bdd
        if wanted & self.reachable == bdd.false:
            return None
        layers, seen = [self._start], self._start
        while layers[-1] & wanted == bdd.false:
            found = functools.reduce(operator.or_, (self._after(layers[-1], tool) for tool in self._tools), bdd.false) & ~seen
            self._check_size(found)
            layers.append(found)
            seen |= found
        state = self._one_of(layers.pop() & wanted)
        way: list[int] = []
        while layers:
            layer = layers.pop()
            for tool in self._tools:
                before = layer & self._before(state, tool)
                if before != bdd.false:
                    way.append(tool)
                    state = self._one_of(before)
                    break
        return tuple(reversed(way))

    def _one_of(self, states: Any) -> Any:
        return self._bdd.cube(next(self._bdd.pick_iter(states, care_vars=set(self._variables))))

    def leading_to(self, wanted: Any) -> Any:
        """The states from which one of some states can be reached."""
        return self._closure(wanted & self.reachable, lambda states, tool: self._before(states, tool) & self.reachable)

    def is_met(self, wanted: Any) -> bool:
        """Whether one of some states can be reached."""
        return bool(wanted & self.reachable != self._bdd.false)

    def count(self) -> int:
        """How many states can be reached, as far as rules tell them apart."""
        return int(self._bdd.count(self.reachable, nvars=len(self._variables)))


def _near(linked: dict[str, set[str]]) -> Iterable[str]:
    """The names in an order in which those that are linked are near each other."""
    order: list[str] = []
    placed: set[str] = set()
    while len(order) < len(linked):
        chosen = max(linked.keys() - placed, key=lambda name: (len(linked[name] & placed), -len(linked[name]), name))
        order.append(chosen)
        placed.add(chosen)
    return order

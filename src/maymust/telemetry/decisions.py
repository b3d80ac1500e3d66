"""The pass of a turn as attributes, and the state of the policy's automaton it belongs to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

from maymust.core.compiled import CompiledPolicy
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.rule import Rule
from maymust.telemetry import names

Value = str | bool | int | float | Sequence[str]
_LONGEST = 32


def permit_attributes(permit: Permit) -> Mapping[str, Value]:
    """What the pass says, and which rules say so. Lists that are empty are left out, but for that of the open tools."""
    return permit.derived(permit_attributes, lambda: _attributes(permit))


def _attributes(permit: Permit) -> dict[str, Value]:
    found: dict[str, Value] = {
        names.ALLOWED: permit.allowed,
        names.TOOL_CHOICE: permit.tool_choice,
        names.MAY_STOP: permit.may_stop,
    }
    closed = [(tool, reason) for tool, reasons in permit.reasons.items() for reason in reasons]
    speaking = dict.fromkeys(said.requirement for tool in permit.tools for said in permit.why(tool) if _says_something(said.rule))
    lists: dict[str, Sequence[str]] = {
        names.DENIED: permit.denied,
        names.HIDDEN: permit.hidden,
        names.WITHHELD: permit.withheld,
        names.ASKS: permit.asks,
        names.OWED: permit.owed,
        names.RELAXED: permit.relaxed,
        names.REASONS: [f"{tool}: {reason}" for tool, reason in closed],
        names.RULES: tuple(speaking),
    }
    found.update({name: tuple(value) for name, value in lists.items() if value})
    if permit.forced is not None:
        found[names.FORCED] = permit.forced
    return found


def _says_something(rule: Rule) -> bool:
    return not rule.allowed or bool(rule.hidden or rule.forced or rule.prevent_stop or rule.ask or rule.arguments)


class Nodes:
    """The states of policies' automata, by name. What an opaque requirement decides is in no state."""

    def __init__(self) -> None:
        self._compiled: WeakKeyDictionary[Policy, CompiledPolicy] = WeakKeyDictionary()

    def id_of(self, policy: Policy, permit: Permit) -> str:
        """The state in which a pass was given. The same in every run under an equal policy."""
        compiled = self._compiled.get(policy)
        if compiled is None:
            compiled = self._compiled[policy] = CompiledPolicy(policy, opaque="open")
        state = f"{compiled.state_of(permit.history):x}"
        return state if len(state) <= _LONGEST else hashlib.sha256(state.encode()).hexdigest()[:_LONGEST]


def node_name(permit: Permit) -> str:
    """A state in words."""
    if permit.forced is not None:
        return f"must {permit.forced}"
    return f"may {', '.join(permit.allowed)}"


def node_attributes(state: str, permit: Permit, before: str | None) -> Mapping[str, Value]:
    """A state as a node of OpenInference's graph."""
    found: dict[str, Value] = {names.NODE_ID: state, names.NODE_NAME: node_name(permit)}
    if before is not None and before != state:
        found[names.NODE_PARENT] = before
    return found

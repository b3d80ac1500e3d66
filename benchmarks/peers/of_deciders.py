"""One decision about one tool, by libraries that decide and know nothing of agents: for scale.

Each is asked the same: may `search` be called, given that `think` was? Policies are parsed and machines built before the clock starts.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TIMES = 3000


def of_cedarpy() -> Callable[[], bool]:
    """A Cedar policy with a condition on the context."""
    import cedarpy

    policy = 'permit(principal, action == Action::"search", resource) when { context.thoughts >= 1 };'
    policies = cedarpy.PolicySet.from_str(policy) if hasattr(cedarpy.PolicySet, "from_str") else policy
    entities = cedarpy.Entities.from_json_str("[]")
    request = {"principal": 'User::"agent"', "action": 'Action::"search"', "resource": 'Desk::"one"', "context": {"thoughts": 1}}
    return lambda: bool(cedarpy.is_authorized(request, policies, entities).allowed)


def of_transitions() -> Callable[[], bool]:
    """A machine of two states that may search once it has thought."""
    from transitions import Machine

    machine: Any = Machine(states=["begun", "thought"], initial="begun", auto_transitions=False)
    machine.add_transition("think", "*", "thought")
    machine.add_transition("search", "thought", "thought")
    machine.think()
    return lambda: bool(machine.may_search())


def of_statemachine() -> Callable[[], bool]:
    """The same machine."""
    from statemachine import State, StateChart

    class Desk(StateChart):
        begun = State(initial=True)
        thought = State()
        think = begun.to(thought) | thought.to(thought)
        search = thought.to(thought)

    desk = Desk()
    desk.think()
    return lambda: any(event.id == "search" for event in desk.enabled_events())


MODEL = """
[request_definition]
r = sub, thoughts, act
[policy_definition]
p = sub, act, least
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.sub == p.sub && r.act == p.act && r.thoughts >= 1
"""


def of_casbin() -> Callable[[], bool]:
    """An access-control model whose matcher looks at the request."""
    import casbin

    with tempfile.TemporaryDirectory() as folder:
        model, policy = Path(folder) / "model.conf", Path(folder) / "policy.csv"
        model.write_text(MODEL, encoding="utf-8")
        policy.write_text("p, agent, search, 1\n", encoding="utf-8")
        enforcer = casbin.Enforcer(str(model), str(policy))
    return lambda: bool(enforcer.enforce("agent", 1, "search"))


MADE: dict[str, Callable[[], Callable[[], bool]]] = {
    "cedarpy": of_cedarpy,
    "transitions": of_transitions,
    "python-statemachine": of_statemachine,
    "casbin": of_casbin,
}


def decide_one(times: int = TIMES) -> dict[str, float]:
    """Microseconds of a decision, by library."""
    found = {}
    for name, make in MADE.items():
        ask = make()
        assert ask() is True, name
        start = time.process_time()
        for _ in range(times):
            ask()
        found[name] = (time.process_time() - start) / times * 1e6
    return found


if __name__ == "__main__":
    print(json.dumps(decide_one()))

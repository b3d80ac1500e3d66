"""Random scenarios as plain data: tools, a policy, settings of the agent, and the character of the model and of the world.

`generate` draws from any `random.Random`, so that Hypothesis can hand in one that shrinks. Each part is drawn by a function of its own;
a new kind of danger is a new part with a key of its own in the dict.
"""

from __future__ import annotations

from random import Random
from typing import Any

FINAL = "final_answer"
NAMES = ("read", "write", "pay", "note", "look", "fetch", "send")
OWN, LATER = NAMES[:5], NAMES[5:]
CHILD = "helper"
"""The name of a child agent, which is a tool of its parent."""
OF_CHILD = ("dig", "sort", "weigh")
UNKNOWN = ("reed", "delete_all")


def generate(rng: Random) -> dict[str, Any]:
    """One scenario."""
    tools, later, child = _tools(rng, OWN), _later(rng), None
    if rng.random() < 0.12:
        child = _child(rng)
        tools.insert(rng.randint(0, len(tools)), {"name": CHILD, "typed": False, "repeatable": False, "approval": rng.random() < 0.1})
    _changes(rng, tools, later)
    known = [*tools, *(tool for tool in later if tool["loadable"])]
    names = [tool["name"] for tool in known]
    scenario: dict[str, Any] = {
        "tools": tools,
        "later": later,
        "child": child,
        "requirements": _policy(rng, known, "r"),
        "settings": _settings(rng, names) if child is None else _unbounded(_settings(rng, names)),
        "around": _around(rng),
        "model": _model(rng),
        "world": {"fails": rng.choice((0.0, 0.1, 0.3, 0.6)), "yes": rng.choice((0.5, 0.8, 1.0)), "same": rng.choice((0.2, 0.7))},
        "crash": rng.randint(1, 30) if rng.random() < 0.3 else None,
    }
    if child is not None or scenario["around"]["layers"] or any(declared.get("handler") for declared in scenario["requirements"]):
        # What these have seen of a run that is lost would have to be forgotten as well.
        scenario["crash"] = None
    return scenario


def _child(rng: Random) -> dict[str, Any]:
    """The scenario of a child agent. Its world, its tokens and its time are the parent's."""
    tools = _tools(rng, OF_CHILD)
    settings = _settings(rng, [tool["name"] for tool in tools])
    return {
        "tools": tools,
        "later": [],
        "child": None,
        "requirements": _policy(rng, tools, "k"),
        "settings": {**settings, "tokens": None, "turns": min(settings["turns"], 6)},
        "around": {"layers": 0, "does": {}},
        "model": _model(rng),
        "crash": None,
    }


def _unbounded(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings that leave a child as much as it wants; what a parent's budget leaves it is the business of other tests."""
    return {**settings, "turns": None, "tokens": None}


def _tools(rng: Random, names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [_tool(rng, name) for name in rng.sample(names, rng.randint(2, min(4, len(names))))]


def _tool(rng: Random, name: str) -> dict[str, Any]:
    return {"name": name, "typed": rng.random() < 0.3, "repeatable": rng.random() < 0.1, "approval": rng.random() < 0.04}


def _later(rng: Random) -> list[dict[str, Any]]:
    """Tools that the agent has not, and that may be added during the run; rules may speak of the loadable ones."""
    if rng.random() < 0.6:
        return []
    return [{**_tool(rng, name), "loadable": rng.random() < 0.7} for name in rng.sample(LATER, rng.randint(1, len(LATER)))]


def _changes(rng: Random, tools: list[dict[str, Any]], later: list[dict[str, Any]]) -> None:
    """Bodies that add and remove tools."""
    own = [tool["name"] for tool in tools]
    arriving = [tool["name"] for tool in later]
    for tool in [*tools, *later]:
        if tool["name"] == CHILD:
            continue
        if later and rng.random() < 0.6:
            tool["adds"] = [rng.choice([*arriving, *arriving, *own])]
        if (later or rng.random() < 0.1) and rng.random() < 0.3:
            tool["removes"] = [rng.choice([*arriving, *own, tool["name"], "nobody"])]
        if later and rng.random() < 0.05:
            tool["adds_other"] = True


def _policy(rng: Random, tools: list[dict[str, Any]], prefix: str) -> list[dict[str, Any]]:
    names = [tool["name"] for tool in tools]
    policy: list[dict[str, Any]] = []
    for number in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
        kind = rng.choices(("conditional", "custom", "ask"), (70, 20, 10))[0]
        name = f"{prefix}{number}"
        priority = rng.choice((1, 5, 10, 10, 10, 20))
        drawn = {"conditional": _conditional, "custom": _custom, "ask": _ask}[kind](rng, names, tools)
        policy.append({"kind": kind, "name": name, "priority": priority, **drawn})
    return policy


def _conditional(rng: Random, names: list[str], tools: list[dict[str, Any]]) -> dict[str, Any]:
    target = FINAL if rng.random() < 0.15 else rng.choice(names)
    others = [name for name in names if name != target]
    given: dict[str, Any] = {"target": target}
    free = [tool["name"] for tool in tools if not tool["typed"] and tool["name"] != CHILD]
    if target in free and len(free) > 1 and rng.random() < 0.25:
        return _keyed(rng, target, [name for name in free if name != target])
    if rng.random() < 0.25:
        given["only_after"] = rng.sample(others, min(len(others), rng.choice((1, 1, 2))))
    free = [name for name in others if name not in given.get("only_after", ())]
    if free and rng.random() < 0.15:
        given["only_before"] = [rng.choice(free)]
    if rng.random() < 0.2:
        given["consecutive_allowed"] = False
    before = given.get("only_before", ())
    after = [name for name in others if name not in before]
    if after and target != FINAL and rng.random() < 0.2:
        given["force_after"] = [rng.choice(after)]
        if not given.get("consecutive_allowed", True) and rng.random() < 0.3:
            given["force_after"].append(target)
    if rng.random() < (0.1 if target == FINAL else 0.2):
        given["force_at_step"] = rng.choice((1, 1, 2, 3, 4))
    if rng.random() < 0.3:
        given["force_prevent_stop"] = False
    _limits(rng, given, target)
    _templates(rng, given, others)
    if rng.random() < 0.3:
        given["only_success_invocations"] = False
    if rng.random() < 0.08:
        given["custom_checks"] = [_condition(rng, names)]
    if rng.random() < 0.04:
        given["enabled"] = False
    return given


def _keyed(rng: Random, target: str, others: list[str]) -> dict[str, Any]:
    """Conditions for each value of the parameter that untyped tools are called with."""
    given: dict[str, Any] = {"target": target, "same": "k"}
    before = [rng.choice(others)] if rng.random() < 0.25 else []
    free = [name for name in others if name not in before]
    if before:
        given["only_before"] = before
    if free and rng.random() < 0.5:
        given[rng.choice(("only_after", "only_after", "only_after_any"))] = rng.sample(free, min(len(free), rng.choice((1, 1, 2))))
    if rng.random() < 0.3:
        given["max_invocations"] = rng.choice((0, 1, 1, 1, 2))
    if rng.random() < 0.2:
        given["max_attempts"] = rng.choice((1, 2))
    if rng.random() < 0.3 or len(given) == 2:
        given["followed_by"] = rng.sample(others, min(len(others), rng.choice((1, 1, 2))))
    if rng.random() < 0.3:
        given["only_success_invocations"] = False
    return given


def _limits(rng: Random, given: dict[str, Any], target: str) -> None:
    if target != FINAL and rng.random() < 0.3:
        given["min_invocations"] = rng.choice((1, 1, 2))
    if rng.random() < (0.02 if target == FINAL else 0.3):
        given["max_invocations"] = max(given.get("min_invocations", 0), 0 if target == FINAL else rng.choice((0, 1, 1, 2, 2, 3)))


def _templates(rng: Random, given: dict[str, Any], others: list[str]) -> None:
    if rng.random() < 0.08:
        given["max_attempts"] = max(given.get("min_invocations", 0), rng.choice((1, 2, 3)))
    if rng.random() < 0.08:
        given["cooldown"] = rng.choice((1, 2))
    if rng.random() < 0.08:
        given["followed_by"] = rng.sample(others, min(len(others), rng.choice((1, 1, 2))))
    free = [name for name in others if name not in given.get("only_before", ())]
    if free and rng.random() < 0.08:
        given["only_after_any"] = rng.sample(free, min(len(free), rng.choice((1, 2))))


def _condition(rng: Random, names: list[str]) -> dict[str, Any]:
    word = rng.choice(("always", "seen", "unseen", "last", "at_least"))
    if word == "always":
        return {"always": True}
    if word == "at_least":
        return {"at_least": [rng.choice(names), rng.choice((1, 2))]}
    return {word: rng.choice(names)}


def _custom(rng: Random, names: list[str], tools: list[dict[str, Any]]) -> dict[str, Any]:
    rules = []
    # One rule a tool: what two rules of one author on one tool mean together is another matter.
    for target in rng.sample([*names, FINAL], rng.choice((1, 1, 2))):
        rule: dict[str, Any] = {"when": _condition(rng, names), "target": target}
        typed = any(tool["name"] == target and tool["typed"] for tool in tools)
        what = rng.choice(("deny", "deny", "hide", "prevent", "force", "bound" if typed else "deny"))
        if what == "deny":
            rule["allowed"] = False
        elif what == "hide":
            rule["hidden"] = True
        elif what == "prevent":
            rule["prevent_stop"] = True
        elif what == "force":
            rule.update(forced=True, prevent_stop=rng.random() < 0.5)
        else:
            bounds = {"type": "integer", rng.choice(("minimum", "maximum")): rng.choice((1, 2, 3, 4))}
            rule["arguments"] = {"amount": bounds}
        rules.append(rule)
    return {"rules": rules, "depends": rng.choice(("exactly", "exactly", "everything")), "asynchronous": rng.random() < 0.3}


def _ask(rng: Random, names: list[str], tools: list[dict[str, Any]]) -> dict[str, Any]:
    given: dict[str, Any] = {"include": None if rng.random() < 0.3 else [rng.choice(names)], "handler": rng.random() < 0.7}
    if given["include"] is None and rng.random() < 0.5:
        given["exclude"] = [rng.choice(names)]
    if rng.random() < 0.4:
        given["remember_choices"] = True
        given["hide_disallowed"] = rng.random() < 0.4
    return given


def _settings(rng: Random, names: list[str]) -> dict[str, Any]:
    return {
        "text_agent": rng.random() < 0.12,
        "turns": rng.choice((4, 6, 8, 8)),
        "steps": rng.choice((None, None, None, 1, 3, 6)),
        "errors": rng.choice((None, 2, 3, 3)),
        "tokens": rng.choice((None, None, None, None, 60)),
        "guard": rng.choice((None, (3, (5, 10)), (3, (5, 10)), (2, (2, 3)))),
        "on_stall": rng.choice(("relax", "relax", "relax", "stop")),
        "choice": _choice(rng, names),
    }


def _choice(rng: Random, names: list[str]) -> Any:
    if rng.random() < 0.8:
        return None
    kind = rng.randrange(5)
    if kind < 3:
        return ("auto", "required", "none")[kind]
    if kind == 3:
        return {"mode": "required", "required_function_name": rng.choice(names)}
    return {"mode": rng.choice(("auto", "required")), "allowed_tools": rng.sample(names, rng.randint(1, len(names)))}


def _around(rng: Random) -> dict[str, Any]:
    """Middleware: how many layers, and what they do with a call (weights)."""
    if rng.random() < 0.65:
        return {"layers": 0, "does": {}}
    mostly = rng.choice((20, 80))
    words = ("answer", "refuse", "silent", "args", "result", "tool_error", "retry")
    does: dict[str, float] = {"pass": mostly, **dict.fromkeys(words, 8)}
    if rng.random() < 0.2:
        does.update(error_before=3, error_after=3)
    return {"layers": rng.choice((1, 1, 2)), "does": does}


def _model(rng: Random) -> dict[str, float]:
    """Weights of what the model does in a turn."""
    return {
        "obey": rng.choice((1, 4, 8)),
        "batch": rng.choice((1, 4, 8)),
        "wild": rng.choice((0.5, 2, 4)),
        "text": rng.choice((0.2, 1, 3)),
        "empty": rng.choice((0.1, 1)),
        "answer": rng.choice((0.2, 1, 2)),
    }

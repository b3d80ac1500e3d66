"""Random policies as rows of the acceptance table: small ones for comparison, larger ones for benchmarks."""

from __future__ import annotations

from random import Random
from typing import Any

from maymust.core.policy import Policy
from maymust.errors import PolicyError
from maymust.requirements.conditional import ConditionalRequirement
from maymust.requirements.permission import AskPermissionRequirement

FINAL = "final_answer"


def policy_of(row: dict[str, Any]) -> Policy:
    """The policy of a row. Raises PolicyError as the library does."""
    requirements: list[Any] = []
    for name, params in row["rules"].items():
        rest = dict(params)
        if "conditional" in rest:
            requirements.append(ConditionalRequirement(rest.pop("conditional"), name=name, **rest))
        else:
            requirements.append(AskPermissionRequirement(rest.pop("ask"), name=name, **rest))
    return Policy(requirements, tools=row["tools"])


def random_row(random: Random, *, tools: int, rules: int, wild: bool = True) -> dict[str, Any]:
    """A row whose policy can be constructed. `wild` draws every parameter; otherwise what policies are mostly made of."""
    names = [f"t{number}" for number in range(tools)]
    row: dict[str, Any] = {"tools": names, "rules": {}}
    while len(row["rules"]) < rules:
        one = _wild_rule(random, names) if wild else _plain_rule(random, names)
        try:
            policy_of({"tools": names, "rules": {"r": one}})
        except PolicyError:
            continue
        row["rules"][f"r{len(row['rules'])}"] = one
    if wild:
        row["may_fail"] = [name for name in names if random.random() < 0.3]
        asked = {name for rule in row["rules"].values() for name in rule.get("ask", ())}
        row["may_be_denied"] = [name for name in names if random.random() < (0.6 if name in asked else 0.1)]
        if random.random() < 0.3:
            row["max_turns"] = random.randint(1, 6)
    return row


def _some(random: Random, names: list[str], most: int = 2) -> list[str]:
    return random.sample(names, min(len(names), random.randint(1, most)))


def _wild_rule(random: Random, names: list[str]) -> dict[str, Any]:
    if random.random() < 0.08:
        return {"ask": _some(random, names), "remember_choices": random.random() < 0.7, "priority": random.choice((10, 10, 20))}
    rule: dict[str, Any] = {"conditional": random.choice([*names, FINAL] if random.random() < 0.5 else names)}
    draws: dict[str, Any] = {
        "force_at_step": lambda: random.randint(1, 4),
        "only_before": lambda: _some(random, names),
        "only_after": lambda: _some(random, names),
        "only_after_any": lambda: _some(random, names),
        "force_after": lambda: _some(random, names),
        "min_invocations": lambda: random.randint(1, 2),
        "max_invocations": lambda: random.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 3)),
        "max_attempts": lambda: random.randint(1, 2),
        "cooldown": lambda: random.randint(1, 2),
        "followed_by": lambda: _some(random, names, 1),
        "only_success_invocations": lambda: False,
        "consecutive_allowed": lambda: False,
        "force_prevent_stop": lambda: False,
    }
    # A force at a step or a limit of zero decides most policies by itself, so there are few of them.
    dull = {"force_at_step", "force_prevent_stop", "only_success_invocations"}
    likely = [parameter for parameter in draws if parameter not in dull or random.random() < 0.35]
    for parameter in random.sample(likely, random.choice((1, 1, 2, 2, 3))):
        rule[parameter] = draws[parameter]()
    if random.random() < 0.3:
        rule["priority"] = random.choice((5, 10, 20))
    return rule


def _plain_rule(random: Random, names: list[str]) -> dict[str, Any]:
    target = random.choice(names)
    rule: dict[str, Any] = {"conditional": target}
    kind = random.choices(
        ("after", "before", "least", "most", "both", "consecutive", "force_after", "force_at_step", "answer"),
        (30, 12, 12, 14, 6, 8, 8, 3, 7),
    )[0]
    if kind == "after":
        rule["only_after"] = _some(random, names)
    elif kind == "before":
        rule["only_before"] = _some(random, names, 1)
    elif kind == "least":
        rule["min_invocations"] = random.choice((1, 1, 2))
    elif kind == "most":
        rule["max_invocations"] = random.choice((1, 2, 3, 5))
    elif kind == "both":
        rule["min_invocations"], rule["max_invocations"] = 1, random.choice((1, 2, 3))
    elif kind == "consecutive":
        rule["consecutive_allowed"] = False
    elif kind == "force_after":
        rule["force_after"] = _some(random, names, 1)
    elif kind == "force_at_step":
        rule["force_at_step"] = random.choice((1, 1, 2, 3))
    else:
        rule["conditional"], rule["only_after"] = FINAL, _some(random, names)
    return rule

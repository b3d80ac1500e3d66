"""What a declared policy says after given steps: sections 3.1 to 3.4 of the design once more, slowly.

Written from the design for the checker, and it shares no code with the library: requirements are dicts of declared parameters,
steps are a tool's name, an outcome's word and the arguments. Where the library counts, this looks through the whole list every time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FINAL = "final_answer"
ABOVE_ALL = 10**9
"""The priority of rules that are none of the policy's: guard, budget, ladder, tool_choice."""

Done = tuple[str, str, Mapping[str, Any] | None]
Steps = Sequence[Done]


class NoPermit(Exception):
    """There is no permit; `kind` is the name of the error class that says so."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass
class Said:
    """One rule as it was said."""

    by: str
    priority: int
    target: str
    allowed: bool = True
    hidden: bool = False
    forced: bool = False
    prevents: bool = False
    asks: bool = False
    arguments: Mapping[str, Mapping[str, Any]] | None = None
    lapses: bool = False


@dataclass
class Pass:
    """The permit as plain data.

    bounds, askers  by tool: fragments of its arguments, and who asks about it
    owed            the requirements that keep the run from stopping; `left_by_answer` those of them that an answer does not meet,
                    `owed_tools` what they ask for, `wanted_tools` also what lapsed
    """

    tools: tuple[str, ...]
    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    hidden: tuple[str, ...]
    withheld: tuple[str, ...]
    asks: tuple[str, ...]
    forced: str | None
    tool_choice: str
    may_stop: bool
    owed: tuple[str, ...]
    left_by_answer: tuple[str, ...]
    owed_tools: tuple[str, ...]
    wanted_tools: tuple[str, ...]
    bounds: dict[str, list[Mapping[str, Mapping[str, Any]]]]
    askers: dict[str, list[str]]

    def compared(self) -> dict[str, Any]:
        """What a recorded permit has to be equal to."""
        names = ("tools", "allowed", "denied", "hidden", "withheld", "asks", "forced", "tool_choice", "may_stop")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Question:
    """What the rules are asked about.

    steps       all that has happened before
    present     the tools of the run now, in order
    extras      rules above all requirements
    relaxed     obligations of the policy are off
    mode        "auto" or "none" when `tool_choice` says so
    remembered  by requirement, then tool: a remembered yes or no
    """

    steps: Steps
    present: tuple[str, ...]
    extras: tuple[Said, ...] = ()
    relaxed: bool = False
    mode: str | None = None
    remembered: Mapping[str, Mapping[str, bool]] | None = None


def permit_after(policy: Sequence[Mapping[str, Any]], question: Question, *, text_agent: bool) -> Pass:
    """The permit; raises NoPermit."""
    said: list[Said] = []
    for requirement in policy:
        if requirement.get("enabled", True):
            said += _SPEAKERS[requirement["kind"]](requirement, question)
    present = {*question.present, FINAL}
    if question.relaxed:
        for rule in said:
            rule.forced = rule.prevents = False
    said += question.extras
    absent = [rule for rule in said if rule.target not in present]
    kept = [Said(rule.by, rule.priority, rule.target, prevents=rule.prevents) for rule in absent]
    return _fold([*(rule for rule in said if rule.target in present), *kept], question, text_agent=text_agent)


# --- 3.3 and its kin: what one requirement says ---
def _conditional(requirement: Mapping[str, Any], question: Question) -> Iterable[Said]:
    if "same" in requirement:
        yield _keyed(requirement, question.steps)
        return
    target = requirement["target"]
    wanted = ("ok",) if requirement.get("only_success_invocations", True) else ("ok", "failed")
    counting = [tool for tool, outcome, _ in question.steps if outcome in wanted]
    current = len(counting) + 1
    times = counting.count(target)
    last = counting[-1] if counting else None
    passed = _checks_pass(requirement, question.steps, counting, times, last)
    at_step = requirement.get("force_at_step") == current
    if at_step and not passed and not question.relaxed and (target in question.present or target == FINAL):
        raise NoPermit("ForceUnmetError")
    forced = passed and (at_step or (last is not None and last in requirement.get("force_after", ())))
    prevents = (
        times < requirement.get("min_invocations", 0)
        or (forced and requirement.get("force_prevent_stop", True))
        or (target in counting and any(tool not in _since(counting, target) for tool in requirement.get("followed_by", ())))
    )
    yield Said(requirement["name"], requirement["priority"], target, allowed=passed, forced=forced, prevents=prevents)


NOTHING = "nothing"
"""Stands for the value of a call that has none, as JSON."""


def _keyed(requirement: Mapping[str, Any], steps: Steps) -> Said:
    """Each value by itself: the requirement over the calls that had it."""
    parameter, target = requirement["same"], requirement["target"]
    had = [json.dumps(arguments[parameter]) if arguments and parameter in arguments else NOTHING for _, _, arguments in steps]
    values = sorted({*had, NOTHING, "null"})
    alone = {value: [step for step, one in zip(steps, had, strict=True) if one == value] for value in values}
    wanted = ("ok",) if requirement.get("only_success_invocations", True) else ("ok", "failed")
    counting = {value: [tool for tool, outcome, _ in mine if outcome in wanted] for value, mine in alone.items()}
    good = {value for value in values if _checks_pass(requirement, alone[value], counting[value], counting[value].count(target), None)}
    waits = "only_after" in requirement or "only_after_any" in requirement
    # A call without a value has none that others could go by. Left out and null are one value to a rule.
    owed = any(
        target in done and any(tool not in _since(done, target) for tool in requirement.get("followed_by", ()))
        for value, done in counting.items()
        if value != NOTHING
    )
    if waits:
        left = [json.loads(value) for value in sorted(good - {NOTHING})]
        return Said(
            requirement["name"], requirement["priority"], target, allowed=bool(left), prevents=owed, arguments={parameter: {"left": left}}
        )
    gone = [None if value == NOTHING else json.loads(value) for value in values if value not in good]
    allowed = 0 not in (requirement.get("max_invocations"), requirement.get("max_attempts"))
    bounds = {parameter: {"gone": gone}} if gone and allowed else None
    return Said(requirement["name"], requirement["priority"], target, allowed=allowed, prevents=owed, arguments=bounds)


def _checks_pass(requirement: Mapping[str, Any], steps: Steps, counting: list[str], times: int, last: str | None) -> bool:
    if not requirement.get("consecutive_allowed", True) and last == requirement["target"]:
        return False
    if "max_invocations" in requirement and times >= requirement["max_invocations"]:
        return False
    if any(tool not in counting for tool in requirement.get("only_after", ())) or any(
        tool in counting for tool in requirement.get("only_before", ())
    ):
        return False
    if (
        "max_attempts" in requirement
        and [tool for tool, outcome, _ in steps if outcome in ("ok", "failed")].count(requirement["target"]) >= requirement["max_attempts"]
    ):
        return False
    if (
        "cooldown" in requirement
        and requirement["target"] in counting
        and len(_since(counting, requirement["target"])) < requirement["cooldown"]
    ):
        return False
    if "only_after_any" in requirement and not any(tool in counting for tool in requirement["only_after_any"]):
        return False
    return all(holds(check, steps) for check in requirement.get("custom_checks", ()))


def _since(counting: list[str], target: str) -> list[str]:
    """What came after the last time of the target."""
    return counting[len(counting) - counting[::-1].index(target) :]


def holds(condition: Mapping[str, Any], steps: Steps) -> bool:
    """Whether a condition on the successful steps holds."""
    good = [tool for tool, outcome, _ in steps if outcome == "ok"]
    (word, value), *_ = condition.items()
    if word == "always":
        return bool(value)
    if word == "seen":
        return value in good
    if word == "unseen":
        return value not in good
    if word == "last":
        return bool(good) and good[-1] == value
    tool, least = value
    return bool(good.count(tool) >= least)


def _custom(requirement: Mapping[str, Any], question: Question) -> Iterable[Said]:
    for rule in requirement["rules"]:
        if holds(rule["when"], question.steps):
            switches = {key: value for key, value in rule.items() if key in ("allowed", "hidden", "forced", "arguments")}
            yield Said(
                requirement["name"],
                requirement["priority"],
                rule["target"],
                prevents=rule.get("prevent_stop", False),
                asks=rule.get("ask", False),
                **switches,
            )


def _ask(requirement: Mapping[str, Any], question: Question) -> Iterable[Said]:
    chosen = (question.remembered or {}).get(requirement["name"], {})
    for tool in question.present:
        if (requirement["include"] is not None and tool not in requirement["include"]) or tool in requirement.get("exclude", ()):
            continue
        if tool not in chosen:
            yield Said(requirement["name"], requirement["priority"], tool, asks=True)
        elif chosen[tool]:
            # It still speaks, so that a person's yes changes nothing in the order of forces.
            yield Said(requirement["name"], requirement["priority"], tool)
        else:
            hidden = requirement.get("hide_disallowed", False)
            yield Said(requirement["name"], requirement["priority"], tool, allowed=False, hidden=hidden, lapses=True)


_SPEAKERS: dict[str, Callable[[Mapping[str, Any], Question], Iterable[Said]]] = {
    "conditional": _conditional,
    "custom": _custom,
    "ask": _ask,
}


# --- 3.4: the fold ---
def _fold(said: list[Said], question: Question, *, text_agent: bool) -> Pass:
    tools = [*question.present, FINAL]
    closed, hidden, candidates, lapsed = set[str](), set[str](), dict[str, int](), set[str]()
    for tool in tools:
        about = [rule for rule in said if rule.target == tool]
        closers = _closers(about)
        if any(rule.hidden for rule in about):
            hidden.add(tool)
        if closers:
            closed.add(tool)
        forcers = [rule for rule in about if rule.forced]
        if not forcers:
            continue
        if not closers:
            candidates[tool] = max(rule.priority for rule in about)
        elif any(rule.lapses for rule in closers):
            lapsed.add(tool)
        elif any(one.by != other.by for one in forcers for other in closers):
            raise NoPermit("ConflictError")
    forced = min(candidates, key=lambda tool: (-candidates[tool], tools.index(tool))) if candidates else None
    # With a force lapses the prevent_stop of its own rule; what others ask for stays owed.
    owing = [rule for rule in said if rule.prevents and not (rule.forced and rule.target in lapsed)]
    return _whole_set(said, tools, closed, hidden, forced, owing, question, text_agent=text_agent)


def _closers(about: list[Said]) -> list[Said]:
    closers = [rule for rule in about if not rule.allowed or rule.hidden]
    bounding = [rule for rule in about if rule.arguments]
    for parameter in {name for rule in bounding for name in rule.arguments or {}}:
        there = [rule for rule in bounding if parameter in (rule.arguments or {})]
        fragments = [(rule.arguments or {})[parameter] for rule in there]
        least = max((fragment["minimum"] for fragment in fragments if "minimum" in fragment), default=None)
        most = min((fragment["maximum"] for fragment in fragments if "maximum" in fragment), default=None)
        lists = [fragment["left"] for fragment in fragments if "left" in fragment]
        gone = [value for fragment in fragments for value in fragment.get("gone", ())]
        none_left = bool(lists) and not [value for value in lists[0] if value not in gone and all(value in one for one in lists)]
        if none_left or (least is not None and most is not None and least > most):
            closers += there
    return closers


def _whole_set(
    said: list[Said],
    tools: list[str],
    closed: set[str],
    hidden: set[str],
    forced: str | None,
    owing: list[Said],
    question: Question,
    *,
    text_agent: bool,
) -> Pass:
    allowed = [tool for tool in tools if tool not in closed]
    withheld: list[str] = []
    if forced is not None:
        withheld = [tool for tool in allowed if tool not in (forced, FINAL)]
        allowed = [tool for tool in allowed if tool in (forced, FINAL)]
    if owing and forced != FINAL and FINAL in allowed:
        allowed.remove(FINAL)
    if not allowed:
        raise NoPermit("DeadEndError")
    may_stop = FINAL in allowed
    choice = forced or (allowed[0] if len(allowed) == 1 else "required")
    if choice == "required" and may_stop and (text_agent or question.mode == "auto"):
        choice = "auto"
    if question.mode == "none":
        choice = "none"
    asking = {tool: [rule.by for rule in said if rule.target == tool and rule.asks] for tool in allowed}
    return Pass(
        tools=tuple(tools),
        allowed=tuple(allowed),
        denied=tuple(tool for tool in tools if tool not in allowed and tool not in hidden and tool not in withheld),
        hidden=tuple(tool for tool in tools if tool in hidden),
        withheld=tuple(withheld),
        asks=tuple(tool for tool in allowed if asking[tool]),
        forced=forced,
        tool_choice=choice,
        may_stop=may_stop,
        owed=tuple(dict.fromkeys(rule.by for rule in owing)),
        # A force of the answer is met by the answer, so nothing of it is left undone when there is one.
        left_by_answer=tuple(dict.fromkeys(rule.by for rule in owing if not (rule.forced and rule.target == FINAL))),
        owed_tools=tuple(dict.fromkeys(rule.target for rule in owing)),
        wanted_tools=tuple(dict.fromkeys(rule.target for rule in said if rule.prevents)),
        bounds={tool: [rule.arguments for rule in said if rule.target == tool and rule.arguments] for tool in tools},
        askers={tool: names for tool, names in asking.items() if names},
    )

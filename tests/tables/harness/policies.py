"""The requirements, handlers and middleware of a row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from maymust import AskPermissionRequirement, ConditionalRequirement, Decision, Rule, function_middleware
from tests.tables.harness.bodies import Cast, Recorder, error_of
from tests.tables.harness.rows import RowFault, only

CONDITIONAL_KEYS = {
    "target", "target_form", "name", "force_at_step", "only_before", "only_after", "force_after", "force_prevent_stop", "min_invocations",
    "max_invocations", "only_success_invocations", "consecutive_allowed", "custom_checks", "priority", "enabled", "reason",
}  # fmt: skip
REFERENCES = ("only_before", "only_after", "force_after")
RULE_KEYS = {"by", "target", "priority", "allowed", "hidden", "forced", "prevent_stop", "reason", "arguments"}
ASK_KEYS = {"ask", "exclude", "handler", "remember_choices", "hide_disallowed", "always_allow", "name", "priority", "enabled"}
MIDDLEWARE_KEYS = {"name", "when", "does"}


class FixedRules:
    """A requirement of a user's own class: the same rules whatever the history."""

    enabled = True
    depends_on: frozenset[str] = frozenset()

    def __init__(self, name: str, priority: int) -> None:
        self.name = name
        self.priority = priority
        self.given: list[Rule] = []

    def bind(self, tools: Any) -> FixedRules:
        """Nothing to look up."""
        return self

    def rules(self, history: Any, run: Any) -> list[Rule]:
        """Always the same."""
        return self.given


def requirements_of(row: Mapping[str, Any], cast: Cast, recorder: Callable[[], Recorder]) -> list[Any]:
    """The policy of the row in its order. `recorder` gives the record of the run in which a handler is asked."""
    policy: list[Any] = []
    fixed: dict[str, FixedRules] = {}
    for given in row.get("requirements", ()):
        if "by" in given:
            only(given, RULE_KEYS, "rule")
            name = given["by"]
            if name not in fixed:
                fixed[name] = FixedRules(name, given.get("priority", 10))
                policy.append(fixed[name])
            switches = {key: value for key, value in given.items() if key not in ("by", "target", "priority")}
            fixed[name].given.append(Rule(given["target"], **switches))
        elif "ask" in given:
            policy.append(_ask(given, recorder))
        else:
            policy.append(_conditional(given, cast))
    return policy


def _conditional(given: Mapping[str, Any], cast: Cast) -> ConditionalRequirement:
    only(given, CONDITIONAL_KEYS, "requirement")
    parameters = {key: value for key, value in given.items() if key not in ("target", "target_form")}
    for key in REFERENCES:
        if key in parameters:
            value = parameters[key]
            parameters[key] = [_reference(item, cast) for item in value] if isinstance(value, list) else _reference(value, cast)
    if "custom_checks" in parameters:
        parameters["custom_checks"] = [_check(item) for item in parameters["custom_checks"]]
    form = given.get("target_form", "name")
    target = given["target"] if form == "name" else _reference({form: given["target"]}, cast)
    return ConditionalRequirement(target, **parameters)


def _reference(item: Any, cast: Cast) -> Any:
    if isinstance(item, str):
        return item
    only(item, {"object", "function"}, "tool reference")
    return cast[item["object"]].tool if "object" in item else cast[item["function"]].function


def _check(item: Any) -> Callable[[Any], Any]:
    if isinstance(item, bool):
        return lambda history: item
    if item == "raises":
        return _raising_check
    if item == "coroutine":
        return _async_check
    only(item, {"seen", "returns"}, "custom check")
    if "seen" in item:
        return lambda history: history.seen(item["seen"])
    return lambda history: item["returns"]


def _raising_check(history: Any) -> bool:
    raise RuntimeError("this predicate is broken")


async def _async_check(history: Any) -> bool:
    return True


def _ask(given: Mapping[str, Any], recorder: Callable[[], Recorder]) -> AskPermissionRequirement:
    only(given, ASK_KEYS, "ask")
    parameters = {key: value for key, value in given.items() if key not in ("ask", "handler")}
    if "handler" in given:
        parameters["handler"] = _handler(given["handler"], recorder)
    if given["ask"] == "all":
        return AskPermissionRequirement(**parameters)
    return AskPermissionRequirement(given["ask"], **parameters)


def _handler(answers: Any, recorder: Callable[[], Recorder]) -> Callable[[Any], Any]:
    left = list(answers) if isinstance(answers, list) else None

    async def handler(call: Any) -> Any:
        record = recorder()
        record.asked.append((call.tool, dict(call.arguments)))
        if left is None:
            return answers
        if not left:
            record.faults.append(f"a question too many: {call.tool} {call.arguments}")
            raise RuntimeError("a question too many")
        answer = left.pop(0)
        if isinstance(answer, dict) and "raises" in answer:
            raise error_of(answer["raises"])
        return decision_of(answer)

    return handler


def decision_of(answer: Any) -> Any:
    """What a person's answer in the row stands for."""
    if not isinstance(answer, dict):
        return answer
    only(answer, {"approve", "reason"}, "decision")
    return Decision(allow=answer["approve"], reason=answer.get("reason"))


def middleware_of(given: Iterable[Mapping[str, Any]], cast: Cast) -> list[Any]:
    """Scripted middleware, outermost first."""
    return [_middleware(spec, cast) for spec in given]


def _middleware(spec: Mapping[str, Any], cast: Cast) -> Any:
    only(spec, MIDDLEWARE_KEYS, "middleware")
    name = spec["name"]

    async def middleware(ctx: Any, call_next: Callable[[], Any]) -> None:
        if not _meant(spec, ctx):
            await call_next()
            return
        trail = ctx.deps.trail
        trail.append(f"{name} > {ctx.name}")
        for done in spec.get("does", ["next"]):
            await _do(done, ctx, call_next, cast)
        trail.append(f"{name} < {ctx.name}")

    middleware.__name__ = middleware.__qualname__ = name
    return function_middleware(middleware)


def _meant(spec: Mapping[str, Any], ctx: Any) -> bool:
    if "when" not in spec:
        return bool(ctx.name != "final_answer")
    when = spec["when"]
    only(when, {"tool", "args"}, "when")
    tools = when["tool"] if isinstance(when["tool"], list) else [when["tool"]]
    if ctx.name not in tools:
        return False
    if "args" not in when:
        return True
    try:
        made = json.loads(ctx.raw_arguments)
    except ValueError:
        return False
    return isinstance(made, dict) and all(key in made and made[key] == value for key, value in when["args"].items())


async def _do(done: Any, ctx: Any, call_next: Callable[[], Any], cast: Cast) -> None:
    if done == "next":
        await call_next()
        return
    only(done, {"result", "answer", "refuse", "args", "raises", "adds", "removes"}, "does")
    if len(done) != 1:
        raise RowFault("a middleware does one thing at a time")
    (what, value), *_ = done.items()
    if what == "result":
        ctx.result = value
    elif what == "answer":
        ctx.answer(value)
    elif what == "refuse":
        ctx.refuse(value)
    elif what == "args":
        ctx.arguments = dict(value)
    elif what == "raises":
        raise error_of(value)
    elif what == "adds":
        ctx.add_tools([cast.added(entry) for entry in value])
    else:
        ctx.remove_tools([cast.removed(entry) for entry in value])

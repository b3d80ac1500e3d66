"""Every row of the pure tables: from rules, and from conditional requirements and a history, to a permit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import maymust.errors
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.rule import Rule
from maymust.requirements.conditional import ConditionalRequirement
from maymust.tools.function_tool import Tool, tool

HERE = Path(__file__).parent


def rows(table: str) -> list[Any]:
    data = yaml.safe_load((HERE / f"{table}.yaml").read_text(encoding="utf-8"))
    return [pytest.param(row, id=row["id"]) for row in data["rows"]]


class SaysAlways:
    """A requirement that gives the same rules in every history."""

    def __init__(self, name: str, entries: list[dict[str, Any]]) -> None:
        self.name = name
        self.priority = entries[0].get("priority", 10)
        self._rules = [
            Rule(entry["target"], **{key: value for key, value in entry.items() if key not in ("by", "target", "priority")})
            for entry in entries
        ]

    def rules(self, history: History, run: Any) -> list[Rule]:
        return self._rules


def fold_policy(row: Mapping[str, Any]) -> Policy:
    by: dict[str, list[dict[str, Any]]] = {}
    for rule in row["rules"]:
        by.setdefault(rule["by"], []).append(rule)
    requirements = [SaysAlways(name, entries) for name, entries in by.items()]
    return Policy(requirements, tools=row["tools"], final_answer_as_tool=row.get("final_answer_as_tool", True))


class Cast:
    """The tools of a row: made from functions where the row spells them so, else objects of a class of their own."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        functions = {one["function"] for one in _references(row) if "function" in one}
        functions |= {r["target"] for r in row["requirements"] if r.get("target_form") == "function"}
        shared = {name: of for of, names in row.get("classes", {}).items() for name in names}
        self.classes: dict[str, type] = {"Tool": Tool}
        self.tools: dict[str, Tool] = {}
        self.functions: dict[str, Callable[..., Any]] = {}
        for name in row["tools"]:
            if name in functions:
                self.functions[name] = _function(name)
                self.tools[name] = tool(self.functions[name])
            else:
                class_name = shared.get(name, name)
                if class_name not in self.classes:
                    self.classes[class_name] = type(class_name, (Tool,), {"description": "does it", "run": lambda self: "ok"})
                self.classes[name] = self.classes[class_name]
                self.tools[name] = self.classes[class_name](name=name)

    def find(self, form: str, word: str) -> Any:
        forms: dict[str, Mapping[str, Any]] = {"name": {}, "class": self.classes, "object": self.tools, "function": self.functions}
        return forms[form].get(word, word)

    def reference(self, written: Any) -> Any:
        if isinstance(written, list):
            return [self.reference(one) for one in written]
        if isinstance(written, dict):
            ((form, word),) = written.items()
            return self.find(form, word)
        return written


def _references(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    lists = [r.get(key, []) for r in row["requirements"] for key in ("only_after", "only_before", "force_after")]
    return [one for written in lists for one in (written if isinstance(written, list) else [written]) if isinstance(one, dict)]


def _function(name: str) -> Callable[..., Any]:
    def body() -> str:
        """Does it."""
        return "ok"

    body.__name__ = name
    return body


def _predicate(entry: Any) -> Callable[..., Any]:
    if isinstance(entry, bool):
        return lambda history: entry
    if entry == "raises":

        def broken(history: History) -> bool:
            raise RuntimeError("a fault of the predicate")

        return broken
    if entry == "coroutine":

        async def later(history: History) -> bool:
            return True

        return later
    ((key, value),) = entry.items()
    return (lambda history: history.seen(value)) if key == "seen" else (lambda history: value)


def conditional_policy(row: Mapping[str, Any]) -> Policy:
    cast = Cast(row)
    requirements = []
    for written in row["requirements"]:
        settings = dict(written)
        target = cast.find(settings.pop("target_form", "name"), settings.pop("target"))
        for key in ("only_after", "only_before", "force_after"):
            if key in settings:
                settings[key] = cast.reference(settings[key])
        if "custom_checks" in settings:
            settings["custom_checks"] = [_predicate(entry) for entry in settings["custom_checks"]]
        requirements.append(ConditionalRequirement(target, **settings))
    return Policy(requirements, tools=list(cast.tools.values()), final_answer_as_tool=row.get("final_answer_as_tool", True))


def history_of(row: Mapping[str, Any]) -> History:
    history = History()
    for word in row["history"]:
        name, _, outcome = word.partition("!")
        history = history.add(name, outcome=outcome or "ok")
    return history


def check_permit(permit: Permit, expect: dict[str, Any]) -> None:
    told = {key: value for key, value in expect.items() if key != "reasons"}
    got = {key: list(value) if isinstance(value := getattr(permit, key), tuple) else value for key in told}
    assert got == told
    for name, reasons in expect.get("reasons", {}).items():
        assert permit.reasons.get(name, ()) == tuple(reasons)


def check_error(make: Callable[[], Policy], ask: Callable[[Policy], Permit], expect: Mapping[str, Any]) -> None:
    kind = getattr(maymust.errors, expect["error"])
    at = expect.get("at")
    if at == "policy":
        with pytest.raises(kind) as caught:
            make()
    elif at == "permit":
        policy = make()
        with pytest.raises(kind) as caught:
            ask(policy)
    else:
        with pytest.raises(kind) as caught:
            ask(make())
    text = str(caught.value)
    for name in expect.get("names", ()):
        assert re.search(rf"\b{re.escape(name)}\b", text), f"{name} is missing in: {text}"
    for name in expect.get("spares", ()):
        assert not re.search(rf"\b{re.escape(name)}\b", text), f"{name} is innocent in: {text}"


def check(make: Callable[[], Policy], ask: Callable[[Policy], Permit], expect: dict[str, Any]) -> None:
    if "error" in expect:
        check_error(make, ask, expect)
    else:
        policy = make()
        permit = ask(policy)
        check_permit(permit, expect)
        check_permit(Permit.from_dict(permit.to_dict()), expect)
        check_permit(ask(policy), expect)


@pytest.mark.parametrize("row", rows("fold"))
def test_fold(row: dict[str, Any]) -> None:
    check(lambda: fold_policy(row), lambda policy: policy.permit(), row["expect"])


@pytest.mark.parametrize("row", rows("conditional"))
def test_conditional(row: dict[str, Any]) -> None:
    check(lambda: conditional_policy(row), lambda policy: policy.permit(history_of(row)), row["expect"])

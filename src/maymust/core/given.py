"""Reading what a requirement gave back: checked, with its targets resolved, and equal rules made identical."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from maymust.core.requirement import BoundRequirement
from maymust.core.rule import Rule
from maymust.core.tool_set import ToolSet
from maymust.core.tool_spec import did_you_mean, match_target, target_text
from maymust.errors import MaymustError, PolicyError, text_of

_KEPT = 4096


def ask_opaque(requirement: BoundRequirement, question: Callable[[], Any]) -> Any:
    """Return what an opaque requirement gives. Its own exceptions become a PolicyError that names it; ours pass."""
    try:
        return question()
    except MaymustError:
        raise
    except Exception as error:
        raise PolicyError(f"requirement {requirement.name} raised {type(error).__name__}: {text_of(error)}") from error


def read_rules(name: str, given: Any, tools: ToolSet, known: ToolSet) -> list[Rule]:
    """Return the rules in `given` (rules, one rule or None) with names for targets.

    Raises PolicyError, naming the requirement, for what is no rule, for an awaitable, and for targets that are neither in `tools`
    nor in `known`.
    """
    if given is None:
        return []
    if inspect.isawaitable(given):
        close = getattr(given, "close", None)
        if close is not None:
            close()  # a coroutine that nobody awaits would warn
        raise PolicyError(
            f"requirement {name} is async, and a permit is computed without waiting: async requirements only work in the agent loop; "
            "use a plain function here"
        )
    if isinstance(given, Rule):
        given = (given,)
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise PolicyError(f"requirement {name} has to give rules, got {given!r}")
    return [_resolved(name, rule, tools, known) for rule in given]


def _resolved(name: str, rule: Any, tools: ToolSet, known: ToolSet) -> Rule:
    if not isinstance(rule, Rule):
        raise PolicyError(f"requirement {name} has to give rules, got {rule!r} among them")
    if isinstance(rule.target, str):
        if rule.target in known.order or rule.target in tools.order:
            return rule
        found: tuple[str, ...] = ()
    else:
        found = tuple(dict.fromkeys(match_target(rule.target, tools.specs) + match_target(rule.target, known.specs)))
    text = target_text(rule.target)
    if not found:
        near = did_you_mean(text, (*known.all, *tools.names))
        raise PolicyError(f"requirement {name} speaks of a tool called {text}, which the policy does not know{near}")
    if len(found) > 1:
        raise PolicyError(f"requirement {name} gives one rule for {text}, which stands for {' and '.join(found)}; give a rule for each")
    return replace(rule, target=found[0])


class Interned:
    """Makes equal rules one object, and equal groups of rules one tuple, so that a fold can be found again by identity. Bounded."""

    __slots__ = ("_groups", "_lock", "_rules")

    def __init__(self) -> None:
        self._rules: dict[Any, Rule] = {}
        self._groups: dict[tuple[int, ...], tuple[Rule, ...]] = {}
        self._lock = threading.Lock()

    def rule(self, rule: Rule) -> Rule:
        """Return the one rule that equals this one."""
        key = (
            rule.target,
            rule.allowed,
            rule.reason,
            rule.prevent_stop,
            rule.forced,
            rule.hidden,
            rule.ask if isinstance(rule.ask, bool) else _text(rule.ask),
            None if rule.arguments is None else _text(rule.arguments),
        )
        return self._rules.get(key) or self._keep(self._rules, key, rule)

    def group(self, rules: Iterable[Rule]) -> tuple[Rule, ...]:
        """Return the one tuple of these very rules."""
        group = tuple(rules)
        key = tuple(map(id, group))
        # The group keeps its rules alive, so their identities stay theirs.
        return self._groups.get(key) or self._keep(self._groups, key, group)

    def _keep(self, shelf: dict[Any, Any], key: Any, value: Any) -> Any:
        with self._lock:
            if len(shelf) >= _KEPT:
                shelf.clear()
            return shelf.setdefault(key, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # What is found by identity is not found in a copy: it begins anew.
        return Interned, ()


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)

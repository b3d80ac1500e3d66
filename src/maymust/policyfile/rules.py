"""From the rules of a file to requirements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from maymust.core.tool_spec import did_you_mean
from maymust.errors import PolicyError
from maymust.policyfile.locate import Node, Table, kind_of
from maymust.policyfile.problem import Position, Problems
from maymust.policyfile.values import BAD, READERS, Names
from maymust.policyfile.vocabulary import KINDS, ONLY_IN_PYTHON, Kind
from maymust.requirements.arguments import ArgumentRequirement
from maymust.requirements.conditional import ConditionalRequirement
from maymust.requirements.permission import AskPermissionRequirement
from maymust.requirements.untrusted import AfterUntrustedRequirement

_CLASSES: dict[str, Any] = {
    "conditional": ConditionalRequirement,
    "ask": AskPermissionRequirement,
    "arguments": ArgumentRequirement,
    "after_untrusted": AfterUntrustedRequirement,
}


def read_rules(node: Node, names: Names, problems: Problems) -> list[Any]:
    """The requirements of the `rules:` of a file, as far as they can be read; every problem is noted."""
    if not isinstance(node, Table):
        hint = "write {} for none" if kind_of(node) == "nothing" else "write each rule under a name of its own"
        problems.add("MF009", f"rules has to map names to rules, got {kind_of(node)}", node.position, hint)
        return []
    made = [_read_rule(name, rule, node.keys[name], names, problems) for name, rule in node.items.items()]
    return [requirement for requirement in made if requirement is not None]


def _read_rule(name: str, node: Node, position: Position, names: Names, problems: Problems) -> Any:
    if not name.strip():
        problems.add("MF009", "the name of a rule is empty", position)
        return None
    if not isinstance(node, Table):
        problems.add(
            "MF009", f"{name} has to be a rule, got {kind_of(node)}", node.position, "write e.g. {conditional: tool, only_after: [other]}"
        )
        return None
    kind = _kind_of(name, node, position, problems)
    if kind is None:
        return None
    before = len(problems.found)
    values: dict[str, Any] = {}
    for key, value in node.items.items():
        word = kind.target if key == kind.key else kind.words.get(key)
        if word is None:
            _unknown(name, key, kind.keys, node.keys[key], problems)
            continue
        values[key] = READERS[word.shape](value, f"{name}: {key}", problems, names)
    for key in kind.needed:
        if key not in node.items:
            problems.add("MF007", f"{name}: the key {key} is missing", position)
    if len(problems.found) > before or BAD in values.values() or not names.are_whole:
        return None
    return _construct(name, kind, values, node, position, names, problems)


def _kind_of(name: str, node: Table, position: Position, problems: Problems) -> Kind | None:
    found = [key for key in node.items if key in KINDS]
    if len(found) == 1:
        return KINDS[found[0]]
    if found:
        place = node.keys[found[1]]
        problems.add("MF009", f"{name} is {' and '.join(found)} at once", place, "write a rule for each")
        return None
    for key, place in node.keys.items():
        near = did_you_mean(key, KINDS).removeprefix("; ")
        if near:
            problems.add("MF008", f"{name}: the key {key} is unknown", place, near)
            return None
    problems.add("MF007", f"{name} does not say what kind of rule it is", position, f"give it one of the keys {', '.join(KINDS)}")
    return None


def _unknown(name: str, key: str, known: Sequence[str], position: Position, problems: Problems) -> None:
    hint = ONLY_IN_PYTHON.get(key) or did_you_mean(key, known).removeprefix("; ") or f"the keys here are {', '.join(known)}"
    problems.add("MF008", f"{name}: the key {key} is {'for Python only' if key in ONLY_IN_PYTHON else 'unknown'}", position, hint)


def _construct(name: str, kind: Kind, values: dict[str, Any], node: Table, position: Position, names: Names, problems: Problems) -> Any:
    target = values.pop(kind.key)
    try:
        requirement = _CLASSES[kind.key](target, name=name, **values)
        requirement.bind(names.tools)
    except PolicyError as error:
        message = str(error)
        # The first of the rule's own keys that the message speaks of is where to look.
        spoken = (key for key in re.findall(r"\w+", message.removeprefix(name)) if key in node.keys)
        where = next(spoken, None)
        problems.add("MF011", message, node.keys[where] if where is not None else position)
        return None
    return requirement

"""Writing a policy as the text of a policy file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from maymust.core.policy import Policy
from maymust.core.requirement import DEFAULT_PRIORITY
from maymust.errors import PolicyError
from maymust.policyfile.load import parse_policy
from maymust.policyfile.vocabulary import KINDS

_WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
# Words that one version of YAML or another takes for something else than a text.
_TAKEN = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def dump_policy(policy: Policy, *, schema: str | None = None) -> str:
    """Return the text of a policy file that reads as an equal policy: `parse_policy(text).policy.describe() == policy.describe()`.

    schema  where the JSON Schema is (see `maymust schema`): written as a line that editors read

    Raises PolicyError for what has no form in a file: custom requirements, checks, handlers and shared memories.
    """
    for bound in policy.requirements:
        if getattr(bound, "remember_in", None) is not None:
            raise _unwritable(bound.name, "it remembers choices in an ApprovalMemory")
        sources = getattr(getattr(bound, "values", None), "sources", ())
        if any(source.is_code for source in sources):
            raise _unwritable(bound.name, "it reads values by a function, which is Python code")
    text = _text(policy.describe(), schema)
    parse_policy(text)  # raises for names that no file can hold
    return text


def policy_of(described: Mapping[str, Any]) -> Policy | None:
    """The policy that `Policy.describe()` told of, None when it cannot be had without Python code."""
    try:
        return parse_policy(_text(described, None)).policy
    except (PolicyError, KeyError, TypeError):
        return None


def _text(described: Mapping[str, Any], schema: str | None) -> str:
    rules = {one["name"]: _rule(one) for one in described["requirements"]}
    lines = [f"# yaml-language-server: $schema={schema}"] if schema else []
    lines.append("version: 1")
    lines.append(f"tools: {flow(list(described['tools']))}")
    if not described["final_answer_as_tool"]:
        lines.append("final_answer_as_tool: false")
    lines.append("rules:" if rules else "rules: {}")
    for name, rule in rules.items():
        lines.extend(_lines(name, rule))
    return "\n".join(lines) + "\n"


def _rule(described: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of one rule. Raises PolicyError for what has none."""
    said = dict(described)
    name, kind = said.pop("name"), said.pop("kind", "custom")
    priority, enabled = said.pop("priority"), said.pop("enabled")
    if kind == "conditional":
        rule = {"conditional": said.pop("target"), **_groups(name, said)}
    elif kind == "ask_permission":
        include = said.pop("include", None)
        rule = {"ask": True if include is None else include, **said}
    elif kind == "after_untrusted":
        rule = {"after_untrusted": said.pop("side_effects"), **said}
    elif kind == "argument":
        rule = {"arguments": said.pop("target"), **_values(name, said)}
    else:
        raise _unwritable(name, f"it is of the kind {kind}")
    if priority != DEFAULT_PRIORITY:
        rule["priority"] = priority
    if not enabled:
        rule["enabled"] = False
    known = KINDS[next(iter(rule))].keys
    for key in rule:
        if key not in known:
            raise _unwritable(name, f"it has {key}, which is Python code")
    return {key: rule[key] for key in known if key in rule}


def _groups(name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """Tools of which any one will do are described as a list in the list, at its end; a file has them under a key of their own."""
    rule = dict(said)
    after = rule.pop("only_after", [])
    if after and (isinstance(after[-1], list) or after[-1] in after[:-1]):
        *after, either = after
        rule["only_after_any"] = either
    if after:
        rule["only_after"] = after
    for key in ("only_after", "followed_by"):
        if any(isinstance(group, list) for group in rule.get(key, [])):
            raise _unwritable(name, f"its {key} names a class that stands for several tools; name the tools")
        if key in rule:
            rule[key] = list(dict.fromkeys(rule[key]))
    return rule


def _values(name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    rule = dict(said)
    if isinstance(rule.get("one_of"), str):
        raise _unwritable(name, "its one_of is a function, which is Python code")
    if "pattern" in rule:
        # The requirement anchors it.
        rule["pattern"] = rule["pattern"].removeprefix("^(?:").removesuffix(")$")
    for key in ("from_output", "from_argument"):
        if len(rule.get(key, ())) == 1:
            rule[key] = rule[key][0]
    return rule


def _unwritable(name: str, why: str) -> PolicyError:
    return PolicyError(f"{name} cannot be written to a policy file: {why}; keep this policy in Python")


def _lines(name: str, rule: Mapping[str, Any]) -> list[str]:
    line = f"  {_scalar(name)}: {flow(rule)}"
    if len(line) <= _WIDTH:
        return [line]
    return [f"  {_scalar(name)}:", *(f"    {_scalar(key)}: {flow(value)}" for key, value in rule.items())]


def flow(value: Any) -> str:
    """A value of JSON as YAML on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_scalar(key)}: {flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(flow(item) for item in value)}]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value, allow_nan=False)
    if _PLAIN.fullmatch(value) and value.lower() not in _TAKEN:
        return value
    # A text of JSON is one of YAML, but for the characters that YAML wants escaped.
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))

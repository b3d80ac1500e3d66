"""The `gateway:` section of a policy file: how `maymust gateway` reads a run out of the requests of a client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from maymust.core.tool_spec import did_you_mean
from maymust.policyfile.locate import Node, Scalar, Table, kind_of
from maymust.policyfile.problem import Problems
from maymust.policyfile.values import BAD, Bad, Names, as_text

Scope = Literal["run", "conversation"]
OnTruncated = Literal["refuse", "warn"]
OtherTools = Literal["allow", "refuse"]
Failures = Mapping[str | None, re.Pattern[str]]

GATEWAY = {
    "scope": "`run`: only what came after the user's last message counts. `conversation`: everything in the request counts. Default run.",
    "failed_when": "A regular expression: a call whose result it is found in has failed. Or a mapping of tools to such expressions.",
    "on_truncated": "`refuse` or `warn`: what to do with a request that leaves out a part of the run. Default refuse.",
    "approvals": "The URL of a webhook that is asked about calls a person has to agree to. Without one such calls are refused.",
    "other_tools": "`allow` or `refuse`: what to do with tools of the client that the policy does not name. Default allow.",
}
"""The keys of the section."""

_CHOICES: dict[str, tuple[str, ...]] = {
    "scope": get_args(Scope),
    "on_truncated": get_args(OnTruncated),
    "other_tools": get_args(OtherTools),
}


@dataclass(frozen=True, slots=True)
class GatewayTerms:
    """How a gateway reads runs out of requests; see `GATEWAY` for what each means.

    failed_when   patterns by tool; None stands for every other tool
    approvals     URL of the webhook, None when there is none
    """

    scope: Scope = "run"
    failed_when: Failures = field(default_factory=dict)
    on_truncated: OnTruncated = "refuse"
    approvals: str | None = None
    other_tools: OtherTools = "allow"


def gateway_schema(text: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of the section; `text` is that of a text."""
    shapes: dict[str, Any] = {key: {"enum": list(words)} for key, words in _CHOICES.items()}
    shapes["failed_when"] = {"anyOf": [text, {"type": "object", "minProperties": 1, "additionalProperties": text}]}
    shapes["approvals"] = {**text, "pattern": "^https?://"}
    properties = {key: {"description": about, **shapes[key]} for key, about in GATEWAY.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def read_gateway_terms(node: Node, names: Names, problems: Problems) -> GatewayTerms | Bad:
    """The section of a file; every problem is noted."""
    if not isinstance(node, Table):
        problems.add("MF009", f"gateway has to be a mapping, got {kind_of(node)}", node.position, "write e.g. {scope: conversation}")
        return BAD
    values: dict[str, Any] = {}
    for key, value in node.items.items():
        if key not in GATEWAY:
            near = did_you_mean(key, GATEWAY).removeprefix("; ") or f"the keys here are {', '.join(GATEWAY)}"
            problems.add("MF008", f"gateway: the key {key} is unknown", node.keys[key], near)
        elif key in _CHOICES:
            values[key] = _one_of(value, key, problems)
        elif key == "approvals":
            values[key] = _url(value, problems)
        else:
            values[key] = _patterns(value, names, problems)
    return BAD if BAD in values.values() else GatewayTerms(**values)


def _one_of(node: Node, key: str, problems: Problems) -> str | Bad:
    words = _CHOICES[key]
    if isinstance(node, Scalar) and node.value in words:
        return str(node.value)
    near = did_you_mean(node.raw, words).removeprefix("; ") if isinstance(node, Scalar) else ""
    problems.add("MF009", f"gateway: {key} has to be {' or '.join(words)}, got {kind_of(node)}", node.position, near)
    return BAD


def _url(node: Node, problems: Problems) -> str | Bad:
    text = as_text(node, "gateway: approvals", problems)
    if isinstance(text, Bad):
        return BAD
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if good:
        return text
    problems.add("MF009", f"gateway: approvals has to be an http or https URL, got {text!r}", node.position)
    return BAD


def _patterns(node: Node, names: Names, problems: Problems) -> dict[str | None, re.Pattern[str]] | Bad:
    if not isinstance(node, Table):
        pattern = _pattern(node, "gateway: failed_when", problems)
        return BAD if isinstance(pattern, Bad) else {None: pattern}
    found: dict[str | None, re.Pattern[str]] = {}
    bad = not node.items
    if bad:
        problems.add("MF009", "gateway: failed_when names no tool", node.position, "write e.g. {search: ^Error}")
    for tool, value in node.items.items():
        names.check(tool, "gateway: failed_when", node.keys[tool], problems)
        pattern = _pattern(value, f"gateway: failed_when, {tool}", problems)
        if isinstance(pattern, Bad):
            bad = True
        else:
            found[tool] = pattern
    return BAD if bad else found


def _pattern(node: Node, where: str, problems: Problems) -> re.Pattern[str] | Bad:
    text = as_text(node, where, problems)
    if isinstance(text, Bad):
        return BAD
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        problems.add("MF009", f"{where} is no regular expression: {error}", node.position)
        return BAD

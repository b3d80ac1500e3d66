"""Reading a policy file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from maymust.core.policy import Policy
from maymust.core.tool_spec import did_you_mean
from maymust.errors import PolicyError
from maymust.policyfile.gateway_terms import GatewayTerms, read_gateway_terms
from maymust.policyfile.locate import Listing, Node, Scalar, Table, compose, kind_of
from maymust.policyfile.problem import START, PolicyFileError, Position, Problems, TooManyError
from maymust.policyfile.rules import read_rules
from maymust.policyfile.source import Source, as_source, read_source
from maymust.policyfile.values import Bad, Names, as_flag, as_new_names, as_text, as_tools, as_whole
from maymust.policyfile.vocabulary import NEEDED, TOP

VERSION = 1


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy file that was read.

    policy                              the policy
    source                              the text
    may_fail, may_be_denied, max_turns  what the file tells `verify` to assume
    description                         what the file says it is for
    gateway                             what the file tells `maymust gateway`
    """

    policy: Policy
    source: Source
    root: Table
    description: str = ""
    may_fail: tuple[str, ...] = ()
    may_be_denied: tuple[str, ...] = ()
    max_turns: int | None = None
    gateway: GatewayTerms = field(default_factory=GatewayTerms)

    @property
    def path(self) -> str:
        """The path as it was given."""
        return self.source.path

    def position_of(self, *keys: str) -> Position:
        """Where a key stands, e.g. `("rules", "fetch-later")`. The nearest key around it when there is none; the start for none at all."""
        node: Node = self.root
        position = START
        for key in keys:
            if not isinstance(node, Table) or key not in node.keys:
                return position
            position, node = node.keys[key], node.items[key]
        return position

    def tool_positions(self) -> dict[str, Position]:
        """Where each tool is named in `tools`."""
        tools = self.root.items.get("tools")
        items = tools.items if isinstance(tools, Listing) else []
        return {item.value: item.position for item in items if isinstance(item, Scalar)}


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy file (`*.policy.yaml`) and return its policy; its rules are named by their keys.

    Raises PolicyFileError, a PolicyError, with every problem as `file:line:column`; PolicyError when PyYAML is not installed.
    """
    return read_policy_file(path).policy


def read_policy_file(path: str | os.PathLike[str]) -> PolicyFile:
    """Read a policy file with all it says; `-` is standard input. Raises what `load_policy` raises."""
    return parse_policy(read_source(path))


def parse_policy(source: Source | str) -> PolicyFile:
    """Read the text of a policy file. Raises PolicyFileError."""
    if isinstance(source, str):
        source = as_source("<text>", source.encode("utf-8", "surrogatepass"))
    problems = Problems()
    try:
        root = read_root(source, "policy", problems)
        made = _read(source, root, problems)
        if made is not None:
            return made
    except TooManyError:
        pass
    raise PolicyFileError(source.path, problems.found, source.text)


def read_root(source: Source, what: str, problems: Problems) -> Table:
    """The mapping a file consists of. Raises PolicyFileError when it is none."""
    root = compose(source)
    if root is None:
        problems.add("MF007", "the file is empty", START, f"a {what} begins with version: {VERSION}")
    elif not isinstance(root, Table):
        problems.add("MF009", f"a {what} file has to be a mapping, got {kind_of(root)}", root.position, f"begin with version: {VERSION}")
    else:
        return root
    raise PolicyFileError(source.path, problems.found, source.text)


def check_keys(root: Table, known: Any, needed: Any, problems: Problems) -> None:
    """Note unknown keys, missing keys, and a version that is not ours."""
    for key, position in root.keys.items():
        if key not in known:
            near = did_you_mean(key, known).removeprefix("; ") or f"the keys here are {', '.join(known)}"
            problems.add("MF008", f"the key {key} is unknown", position, near)
    for key in needed:
        if key not in root.keys:
            problems.add("MF007", f"the key {key} is missing", START, _meant(key, root))
    version = root.items.get("version")
    if version is None:
        return
    number = as_whole(version, "version", problems, 1)
    if not isinstance(number, Bad) and number != VERSION:
        problems.add("MF009", f"version {number} is not known here", version.position, f"this maymust reads version {VERSION}")


def _meant(missing: str, root: Table) -> str:
    """What to do about a missing key: a policy and its tests are easily taken for each other."""
    if missing == "version":
        return f"begin with version: {VERSION}"
    if missing in ("policy", "cases") and "rules" in root.keys:
        return "this is a policy; its tests are a file of their own, *.policy-test.yaml"
    if missing in ("tools", "rules") and "cases" in root.keys:
        return "this is a policy test: maymust test runs it"
    return ""


def _read(source: Source, root: Table, problems: Problems) -> PolicyFile | None:
    check_keys(root, TOP, NEEDED, problems)
    get = root.items.get
    tools, rules = get("tools"), get("rules")
    names = as_new_names(tools, "tools", problems) if tools is not None else Names(are_whole=False)
    requirements = read_rules(rules, names, problems) if rules is not None else []
    as_tool = get("final_answer_as_tool")
    flag = True if as_tool is None else as_flag(as_tool, "final_answer_as_tool", problems)
    words = get("description")
    description = "" if words is None else as_text(words, "description", problems)
    turns = get("max_turns")
    max_turns = None if turns is None else as_whole(turns, "max_turns", problems, 1)
    assumed = [_assumed(root, key, names, problems) for key in ("may_fail", "may_be_denied")]
    section = get("gateway")
    terms = GatewayTerms() if section is None else read_gateway_terms(section, names, problems)
    if problems.found or isinstance(flag, Bad) or isinstance(description, Bad) or isinstance(max_turns, Bad) or isinstance(terms, Bad):
        return None
    try:
        policy = Policy(requirements, tools=names.tools, final_answer_as_tool=flag)
    except PolicyError as error:
        problems.add("MF011", str(error), root.keys["rules"])
        return None
    return PolicyFile(policy, source, root, description, assumed[0], assumed[1], max_turns, terms)


def _assumed(root: Table, key: str, names: Names, problems: Problems) -> tuple[str, ...]:
    node = root.items.get(key)
    found = [] if node is None else as_tools(node, key, problems, names)
    return () if isinstance(found, Bad) else tuple(found)

"""Policy tests (`*.policy-test.yaml`): cases that say what a policy allows after a history, and why it does not."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maymust.core.step import Outcome, Step
from maymust.core.tool_spec import FINAL_ANSWER, did_you_mean
from maymust.policyfile.expectation import Expectation, expectation
from maymust.policyfile.load import PolicyFile, check_keys, read_policy_file, read_root
from maymust.policyfile.locate import Listing, Node, Scalar, Table, kind_of, plain
from maymust.policyfile.problem import PolicyFileError, Position, Problems, TooManyError
from maymust.policyfile.source import Source, read_source
from maymust.policyfile.values import BAD, Bad, Names, as_flag, as_text, as_texts, as_tools

TOP = {
    "version": "The version of this format: 1.",
    "policy": "The policy file, relative to this file.",
    "cases": "The cases. Each key says in words what holds.",
}
"""The keys of a policy test."""

CASE = {
    "after": "What has been called: `tool`, `tool!failed`, or `{call: tool, outcome: failed, arguments: {}, output: }`. Default: nothing.",
    "allows": "Tools that may be called.",
    "allows_only": "Tools that may be called, and no others.",
    "asks": "Tools that may be called after a person's yes.",
    "denies": "Tools that are shown and closed; with texts that have to occur in the reasons: `{tool: text}`.",
    "hides": "Tools that are neither shown nor callable.",
    "withholds": "Tools that are closed because another one is forced.",
    "forces": "The tool that must be called; null for none.",
    "may_stop": "Whether the run may end.",
    "tool_choice": "What is sent as tool_choice.",
    "raises": "The history leaves no next step: dead_end, conflict or force_unmet.",
    "lawful": "false: the history may hold calls that the policy refuses. Default true.",
}
"""The keys of a case."""

RAISES = ("dead_end", "conflict", "force_unmet")


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `keys` has the position of each of its keys, `at` that of its name."""

    name: str
    at: Position
    after: tuple[Step, ...] = ()
    expected: Expectation = field(default_factory=Expectation)
    raises: str | None = None
    lawful: bool = True
    keys: Mapping[str, Position] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A policy test that was read."""

    source: Source
    policy: PolicyFile
    cases: tuple[Case, ...]


def read_case_file(path: str | os.PathLike[str]) -> CaseFile:
    """Read a policy test and the policy it is about. Raises PolicyFileError for what is wrong in either."""
    source = read_source(path)
    problems = Problems()
    try:
        root = read_root(source, "policy test", problems)
        check_keys(root, TOP, TOP, problems)
        file = _policy(source, root, problems)
        cases = _cases(root, file, problems)
        if file is not None and not problems.found:
            return CaseFile(source, file, cases)
    except TooManyError:
        pass
    raise PolicyFileError(source.path, problems.found, source.text)


def _policy(source: Source, root: Table, problems: Problems) -> PolicyFile | None:
    node = root.items.get("policy")
    name = BAD if node is None else as_text(node, "policy", problems)
    if isinstance(name, Bad) or node is None:
        return None
    path = str(Path(source.path).parent / name)
    if not os.path.exists(path):
        problems.add("MF001", f"there is no file {name} beside this one", node.position)
        return None
    return read_policy_file(path)


def _cases(root: Table, file: PolicyFile | None, problems: Problems) -> tuple[Case, ...]:
    node = root.items.get("cases")
    if node is None:
        return ()
    if not isinstance(node, Table) or not node.items:
        problems.add("MF009", f"cases has to map sentences to cases, got {kind_of(node)}", node.position)
        return ()
    names = Names(file.policy.tools) if file is not None else Names(are_whole=False)
    reader = _CaseReader(names, problems)
    return tuple(reader.case(name, case, node.keys[name]) for name, case in node.items.items())


class _CaseReader:
    """Reads cases, noting what is wrong with them."""

    def __init__(self, names: Names, problems: Problems) -> None:
        self.names = names
        self.problems = problems

    def case(self, name: str, node: Node, at: Position) -> Case:
        if not isinstance(node, Table):
            self.problems.add(
                "MF009", f"a case has to be a mapping, got {kind_of(node)}", node.position, "write e.g. {after: [], allows: think}"
            )
            return Case(name, at)
        said: dict[str, Any] = {}
        for key, value in node.items.items():
            if key not in CASE:
                near = did_you_mean(key, CASE).removeprefix("; ") or f"the keys here are {', '.join(CASE)}"
                self.problems.add("MF008", f"the key {key} is unknown", node.keys[key], near)
                continue
            read = _READERS[key](self, key, value)
            if not isinstance(read, Bad):
                said[key] = read
        if node.items.keys() <= {"after", "lawful"}:
            self.problems.add("MF007", "this case expects nothing", at, "give it e.g. allows, denies or may_stop")
        if "raises" in said and said.keys() - {"after", "lawful", "raises"}:
            self.problems.add("MF009", "without a next step there is nothing else to expect", node.keys["raises"], "split the case")
        after, raises, lawful = said.pop("after", ()), said.pop("raises", None), said.pop("lawful", True)
        return Case(name, at, after, expectation(**said), raises, lawful, node.keys)

    def tools(self, key: str, node: Node) -> Any:
        return as_tools(node, key, self.problems, self.names)

    def flag(self, key: str, node: Node) -> Any:
        return as_flag(node, key, self.problems)

    def text(self, key: str, node: Node) -> Any:
        return as_text(node, key, self.problems)

    def denied(self, key: str, node: Node) -> Any:
        if not isinstance(node, Table):
            return self.tools(key, node)
        said: dict[str, tuple[str, ...]] = {}
        for tool, texts in node.items.items():
            self.names.check(tool, key, node.keys[tool], self.problems)
            if isinstance(texts, Scalar) and texts.value is None:
                said[tool] = ()
                continue
            found = as_texts(texts, f"{key}, {tool}", self.problems)
            said[tool] = () if isinstance(found, Bad) else tuple(text for text, _ in found)
        return said

    def forced(self, key: str, node: Node) -> Any:
        if isinstance(node, Scalar) and node.value is None:
            return ""
        name = as_text(node, key, self.problems)
        if not isinstance(name, Bad):
            self.names.check(name, key, node.position, self.problems)
        return name

    def one_of(self, key: str, node: Node) -> Any:
        if isinstance(node, Scalar) and node.value in RAISES:
            return node.value
        self.problems.add("MF009", f"{key} has to be one of {', '.join(RAISES)}, got {kind_of(node)}", node.position)
        return BAD

    def steps(self, key: str, node: Node) -> Any:
        nodes = node.items if isinstance(node, Listing) else [node]
        return tuple(step for step in map(self.step, nodes) if step is not None)

    def step(self, node: Node) -> Step | None:
        if isinstance(node, Table):
            return self._long_step(node)
        word = as_text(node, "a call", self.problems)
        if isinstance(word, Bad):
            return None
        name, mark, outcome = word.partition("!")
        return self._made(name, outcome if mark else "ok", node.position)

    def _long_step(self, node: Table) -> Step | None:
        known = ("call", "outcome", "arguments", "output")
        for key in node.items:
            if key not in known:
                near = did_you_mean(key, known).removeprefix("; ") or f"the keys here are {', '.join(known)}"
                self.problems.add("MF008", f"the key {key} is unknown", node.keys[key], near)
        call = node.items.get("call")
        if call is None:
            self.problems.add("MF007", "a call has to say what is called", node.position, "write {call: tool, ...}")
            return None
        outcome = node.items.get("outcome", Scalar("ok", "ok", node.position))
        arguments = node.items.get("arguments")
        if arguments is not None and not isinstance(arguments, Table):
            self.problems.add("MF009", f"arguments has to be a mapping, got {kind_of(arguments)}", arguments.position)
            return None
        output = node.items.get("output")
        step = self._made(plain(call), plain(outcome), call.position)
        if step is None:
            return None
        return Step(step.tool, step.outcome, None if arguments is None else plain(arguments), None if output is None else plain(output))

    def _made(self, name: Any, outcome: Any, position: Position) -> Step | None:
        words = [known.value for known in Outcome]
        if outcome not in words:
            near = did_you_mean(str(outcome), words).removeprefix("; ") or f"it is one of {', '.join(words)}"
            self.problems.add("MF009", f"{outcome!r} is no outcome", position, near)
            return None
        if name == FINAL_ANSWER:
            self.problems.add("MF009", f"{FINAL_ANSWER} ends the run, so nothing comes after it", position)
            return None
        self.names.check(str(name), "after", position, self.problems)
        return Step(str(name), Outcome(outcome))


_READERS: dict[str, Callable[[_CaseReader, str, Node], Any]] = {
    "after": _CaseReader.steps,
    "allows": _CaseReader.tools,
    "allows_only": _CaseReader.tools,
    "asks": _CaseReader.tools,
    "denies": _CaseReader.denied,
    "hides": _CaseReader.tools,
    "withholds": _CaseReader.tools,
    "forces": _CaseReader.forced,
    "may_stop": _CaseReader.flag,
    "tool_choice": _CaseReader.text,
    "raises": _CaseReader.one_of,
    "lawful": _CaseReader.flag,
}


def position_in(case: Case, key: str) -> Position:
    """Where a key of a case stands; its name when it has none."""
    return case.keys.get(key, case.at)

"""YAML as nodes that know where they stand.

Built on the events of PyYAML, so that a file is judged while it is read: nothing is expanded, and what is too deep or too
long is refused before it costs anything. Anchors, aliases, tags and several documents are refused. Scalars are read by the
core schema of YAML 1.2, so a tool may be called `on`, `no` or `y`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from maymust.errors import PolicyError
from maymust.policyfile.problem import PolicyFileError, Position, Problem, ProblemCode, Problems, TooManyError
from maymust.policyfile.source import Source

DEEPEST = 24
LONGEST = 20_000
"""Limits of nesting and of the number of values."""

_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DIGITS = 300
_SHOWN = 120


@dataclass(slots=True)
class Scalar:
    """A text, number, bool or null. `raw` is what stands in the file."""

    value: Any
    raw: str
    position: Position


@dataclass(slots=True)
class Listing:
    """A list."""

    position: Position
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Table:
    """A mapping with texts for keys, in the order of the file. `keys` has the position of each key."""

    position: Position
    items: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Position] = field(default_factory=dict)


Node: TypeAlias = Scalar | Listing | Table


def plain(node: Node) -> Any:
    """The value of a node without positions."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Listing):
        return [plain(item) for item in node.items]
    return {key: plain(item) for key, item in node.items.items()}


def kind_of(node: Node) -> str:
    """What a node is, in words."""
    if isinstance(node, Table):
        return "a mapping"
    if isinstance(node, Listing):
        return "a list"
    value = node.value
    if value is None:
        return "nothing" if not node.raw else "null"
    return f"the text {shortened(value)!r}" if isinstance(value, str) else shortened(node.raw)


def shortened(text: str) -> str:
    """A text that fits into a message."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def compose(source: Source) -> Node | None:
    """Return the one document of a source, None when there is none. Raises PolicyFileError for all that is no such document."""
    yaml = _yaml()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    composer = _Composer(source)
    try:
        return composer.document(yaml.parse(source.text, Loader=loader))
    except yaml.YAMLError as error:
        composer.problems.found.append(_syntax(source, error))
    except (TooManyError, _StopError):
        pass
    raise PolicyFileError(source.path, composer.problems.found, source.text)


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise PolicyError("policy files need PyYAML, which is not installed: pip install 'maymust[yaml]'") from None
    return yaml


def _syntax(source: Source, error: Any) -> Problem:
    """PyYAML's error in our form, and in plainer words for what people do."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    lines = source.lines
    text = lines[line - 1] if line <= len(lines) else ""
    tab = text.find("\t", 0, len(text) - len(text.lstrip()))
    if tab >= 0:
        return Problem("MF004", "a tab indents this line", Position(line, tab + 1, line, tab + 2), "YAML is indented with spaces")
    said = " ".join(str(getattr(error, "problem", None) or error).split())
    if "nesting" in said:
        return Problem("MF002", f"this is nested more than {DEEPEST} deep", Position(line, column, line, column + 1))
    context = " ".join(str(getattr(error, "context", None) or "").split())
    return Problem("MF004", f"this is no YAML: {said}{f' {context}' if context else ''}", Position(line, column, line, column + 1))


class _StopError(Exception):
    """What was found ends the reading."""


class _Composer:
    """Turns events into nodes, with a stack of its own."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems = Problems()

    def document(self, events: Iterator[Any]) -> Node | None:
        root: Node | None = None
        stack: list[Listing | Table] = []
        # The key a mapping on the stack waits to fill.
        waiting: list[tuple[str, bool] | None] = []
        documents = 0
        for number, event in enumerate(events):
            kind = type(event).__name__
            if number > LONGEST:
                self._stop("MF002", f"the file holds more than {LONGEST} values", _position(event))
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    self._stop("MF006", "a second document begins here", _position(event), "one file holds one policy; drop the ---")
            elif kind in ("SequenceEndEvent", "MappingEndEvent"):
                node = stack.pop()
                waiting.pop()
                end = event.end_mark if kind == "SequenceEndEvent" else event.start_mark
                start = node.position
                node.position = Position(start.line, start.column, max(end.line + 1, start.line), end.column + 1)
            elif kind in ("ScalarEvent", "SequenceStartEvent", "MappingStartEvent", "AliasEvent"):
                node = self._node(event, kind)
                if not stack:
                    root = node
                else:
                    self._attach(stack, waiting, node)
                if not isinstance(node, Scalar):
                    stack.append(node)
                    waiting.append(None)
                    if len(stack) > DEEPEST:
                        self._stop("MF002", f"this is nested more than {DEEPEST} deep", node.position)
        if self.problems.found:
            raise _StopError
        return root

    def _node(self, event: Any, kind: str) -> Any:
        position = _position(event)
        if kind == "AliasEvent":
            self._add("MF006", f"the alias *{event.anchor}", position, "aliases are not used here; write it out")
            return Scalar(None, f"*{event.anchor}", position)
        if event.anchor is not None:
            self._add("MF006", f"the anchor &{event.anchor}", position, "anchors are not used here; leave it out")
        if event.tag is not None and (kind != "ScalarEvent" or event.tag != "!"):
            self._add("MF006", f"the tag {event.tag}", position, "tags are not used here; leave it out")
        if kind == "SequenceStartEvent":
            return Listing(position)
        if kind == "MappingStartEvent":
            return Table(position)
        return Scalar(self._value(event, position), event.value, position)

    def _attach(self, stack: list[Any], waiting: list[Any], node: Node) -> None:
        parent = stack[-1]
        if isinstance(parent, Listing):
            parent.items.append(node)
            return
        if waiting[-1] is not None:
            key, is_new = waiting[-1]
            waiting[-1] = None
            if is_new:
                parent.items[key] = node
            return
        if not isinstance(node, Scalar):
            self._stop("MF006", f"{kind_of(node)} stands for a key", node.position, "a key has to be a text")
            raise AssertionError
        key = node.raw
        if key == "<<":
            self._add("MF006", "the merge key <<", node.position, "merging is not used here; write it out")
        elif key in parent.keys:
            first = parent.keys[key]
            self._add("MF005", f"{key} is given twice", node.position, f"the first one is in line {first.line}, column {first.column}")
        is_new = key not in parent.keys
        if is_new:
            parent.keys[key] = node.position
        waiting[-1] = (key, is_new)

    def _value(self, event: Any, position: Position) -> Any:
        raw: str = event.value
        if event.style or event.tag == "!":
            return raw
        if raw in _CONSTANTS:
            return _CONSTANTS[raw]
        if _INTEGER.fullmatch(raw) and len(raw) <= _DIGITS:
            return int(raw, 0) if raw[:2] in ("0o", "0x") else int(raw)
        if _INFINITE.fullmatch(raw) or _INTEGER.fullmatch(raw):
            self._add("MF009", f"{raw[:20]} is no number to count with", position, "write a finite one")
            return None
        if _FLOAT.fullmatch(raw):
            number = float(raw)
            if math.isfinite(number):
                return number
            self._add("MF009", f"{raw[:20]} is too large a number", position)
            return None
        return raw

    def _add(self, code: ProblemCode, message: str, position: Position, help: str = "") -> None:
        self.problems.add(code, message, position, help)

    def _stop(self, code: ProblemCode, message: str, position: Position, help: str = "") -> None:
        self._add(code, message, position, help)
        raise _StopError


def _position(event: Any) -> Position:
    start, end = event.start_mark, event.end_mark
    return Position(start.line + 1, start.column + 1, end.line + 1, end.column + 1)

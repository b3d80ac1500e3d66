"""From nodes to values, noting what is of the wrong kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from maymust.core.fragment import check_fragments
from maymust.core.tool_spec import FINAL_ANSWER, RESERVED_NAMES, did_you_mean
from maymust.errors import PolicyError
from maymust.policyfile.locate import Listing, Node, Scalar, Table, kind_of, plain, shortened
from maymust.policyfile.problem import Position, Problems
from maymust.policyfile.vocabulary import FRAGMENT_WORDS, Shape
from maymust.tools.json_schema import fragment_check


class Bad:
    """The type of `BAD`."""

    def __repr__(self) -> str:
        return "BAD"


_LONGEST_PATTERN = 1000
MOST_TOOLS = 1000
"""An agent with more tools would not be understood by any model, and its file by no reader."""

BAD: Final = Bad()
"""Stands for a value that was not what it should be; the problem is noted."""


def as_flag(node: Node, where: str, problems: Problems) -> bool | Bad:
    """True or false."""
    if isinstance(node, Scalar) and isinstance(node.value, bool):
        return node.value
    said = node.raw.lower() if isinstance(node, Scalar) else ""
    hint = {"yes": "write true", "on": "write true", "no": "write false", "off": "write false"}.get(said, "")
    problems.add("MF009", f"{where} has to be true or false, got {kind_of(node)}", node.position, hint)
    return BAD


def as_whole(node: Node, where: str, problems: Problems, least: int = 0) -> int | Bad:
    """A whole number of at least `least`."""
    if isinstance(node, Scalar) and isinstance(node.value, int) and not isinstance(node.value, bool) and node.value >= least:
        return node.value
    problems.add("MF009", f"{where} has to be a whole number of at least {least}, got {kind_of(node)}", node.position)
    return BAD


def as_number(node: Node, where: str, problems: Problems) -> int | float | Bad:
    """A number."""
    if isinstance(node, Scalar) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    problems.add("MF009", f"{where} has to be a number, got {kind_of(node)}", node.position)
    return BAD


def as_values(node: Node, where: str, problems: Problems) -> list[Any] | Bad:
    """A list of values, at least one."""
    if isinstance(node, Listing) and node.items:
        value: list[Any] = plain(node)
        return value
    problems.add("MF009", f"{where} has to be a list of values, got {kind_of(node)}", node.position, "write e.g. [a, b]")
    return BAD


def as_text(node: Node, where: str, problems: Problems) -> str | Bad:
    """A text. Numbers and the like have to be quoted."""
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value:
        return node.value
    hint = f'write "{node.raw}"' if isinstance(node, Scalar) and node.value is not None and node.raw else ""
    problems.add("MF009", f"{where} has to be a text, got {kind_of(node)}", node.position, hint)
    return BAD


def as_texts(node: Node, where: str, problems: Problems) -> list[tuple[str, Position]] | Bad:
    """A text or a list of different texts, each with its position."""
    nodes = node.items if isinstance(node, Listing) else [node]
    if isinstance(node, Table) or (isinstance(node, Scalar) and node.value is None):
        problems.add("MF009", f"{where} has to be a name or a list of names, got {kind_of(node)}", node.position)
        return BAD
    found: dict[str, Position] = {}
    for item in nodes:
        text = as_text(item, f"a name in {where}" if isinstance(node, Listing) else where, problems)
        if isinstance(text, Bad):
            continue
        if text in found:
            problems.add("MF009", f"{where} names {text} twice", item.position)
        found.setdefault(text, item.position)
    return list(found.items())


def as_fragments(node: Node, where: str, problems: Problems) -> dict[str, Any] | Bad:
    """A mapping of parameters to fragments of JSON Schema."""
    if not isinstance(node, Table) or not node.items:
        problems.add("MF009", f"{where} has to map parameters to fragments of JSON Schema, got {kind_of(node)}", node.position)
        return BAD
    before = len(problems.found)
    for parameter, fragment in node.items.items():
        _check_fragment(fragment, f"{where}, {parameter}", problems)
        if len(problems.found) == before:
            try:
                fragment_check(plain(fragment))
            except PolicyError as error:
                problems.add("MF009", f"{where}, {parameter}: {shortened(str(error))}", fragment.position)
    if len(problems.found) > before:
        return BAD
    value: dict[str, Any] = plain(node)
    return value


def _check_fragment(node: Node, where: str, problems: Problems) -> None:
    if not isinstance(node, Table):
        problems.add(
            "MF009", f"{where} has to be a fragment of JSON Schema, got {kind_of(node)}", node.position, "write e.g. {maximum: 100}"
        )
        return
    for word, value in node.items.items():
        if word not in FRAGMENT_WORDS:
            problems.add("MF008", f"{word} is no word of JSON Schema{did_you_mean(word, FRAGMENT_WORDS)}", node.keys[word])
            continue
        if not _is_well_formed(word, value):
            problems.add("MF009", f"{where}: {word} may not be {shortened(kind_of(value))}", value.position)
            continue
        for part in _parts(word, value):
            _check_fragment(part, f"{where}, {word}", problems)


def _is_well_formed(word: str, node: Node) -> bool:
    value = plain(node)
    if word == "pattern" and len(str(value)) > _LONGEST_PATTERN:
        return False
    try:
        check_fragments({"it": {word: value}}, "")
    except (PolicyError, RecursionError, OverflowError):
        return False  # the last two come from patterns that the compiler gives up on
    return True


def _parts(word: str, node: Node) -> list[Node]:
    """The schemas inside a schema."""
    if word in ("properties", "patternProperties"):
        return list(node.items.values()) if isinstance(node, Table) else []
    if word in ("allOf", "anyOf", "oneOf"):
        return list(node.items) if isinstance(node, Listing) else []
    if word in ("not", "if", "then", "else", "items", "contains", "propertyNames"):
        return [node] if isinstance(node, Table) else []
    return []


@dataclass(slots=True)
class Names:
    """The tools of a file. `are_whole` is false when some of them could not be read, so that nothing is said of unknown ones."""

    tools: Sequence[str] = ()
    are_whole: bool = True

    def check(self, name: str, where: str, position: Position, problems: Problems) -> None:
        """Note a name that is no tool."""
        if name == FINAL_ANSWER or name in self.tools or not self.are_whole:
            return
        known = (*self.tools, FINAL_ANSWER)
        listed = ", ".join(known[:12]) + (f" and {len(known) - 12} more" if len(known) > 12 else "")
        near = did_you_mean(name, known).removeprefix("; ")
        problems.add("MF010", f"{where}: there is no tool called {name}", position, near or f"the tools are {listed}")


def as_tools(node: Node, where: str, problems: Problems, names: Names) -> list[str] | Bad:
    """Names of tools of the file."""
    found = as_texts(node, where, problems)
    if isinstance(found, Bad):
        return BAD
    for name, position in found:
        names.check(name, where, position, problems)
    return [name for name, _ in found]


def as_tool(node: Node, where: str, problems: Problems, names: Names) -> str | Bad:
    """The name of one tool of the file."""
    if isinstance(node, Listing):
        problems.add("MF009", f"{where} has to be one tool, got {kind_of(node)}", node.position, "write a rule for each")
        return BAD
    name = as_text(node, where, problems)
    if not isinstance(name, Bad):
        names.check(name, where, node.position, problems)
    return name


def as_places(node: Node, where: str, problems: Problems, names: Names) -> list[tuple[str, str]] | Bad:
    """Pairs of a tool and a place: one pair, or a list of pairs."""
    several = isinstance(node, Listing) and bool(node.items) and all(isinstance(item, Listing) for item in node.items)
    pairs: list[tuple[str, str]] = []
    for pair in node.items if isinstance(node, Listing) and several else [node]:
        if not isinstance(pair, Listing) or len(pair.items) != 2:
            message = f"{where} has to be a pair of a tool and a place, or a list of pairs, got {kind_of(pair)}"
            problems.add("MF009", message, pair.position, "write e.g. [search, $.id]")
            return BAD
        tool = as_tool(pair.items[0], where, problems, names)
        place = as_text(pair.items[1], f"the place in {where}", problems)
        if isinstance(tool, Bad) or isinstance(place, Bad):
            return BAD
        pairs.append((tool, place))
    return pairs


def as_named(node: Node, where: str, problems: Problems, names: Names) -> dict[str, Any] | Bad:
    """Per tool the parameters that have to be named: a parameter, a list of them, or `{parameter: part}`."""
    if not isinstance(node, Table) or not node.items:
        problems.add("MF009", f"{where} has to map tools to parameters, got {kind_of(node)}", node.position, "write e.g. {send: [to]}")
        return BAD
    found: dict[str, Any] = {}
    for tool, parameters in node.items.items():
        names.check(tool, where, node.keys[tool], problems)
        if isinstance(parameters, Table):
            found[tool] = plain(parameters)
        else:
            texts = as_texts(parameters, f"{where}, {tool}", problems)
            found[tool] = BAD if isinstance(texts, Bad) else [text for text, _ in texts]
    return BAD if BAD in found.values() else found


def as_parameter(node: Node, where: str, problems: Problems) -> str | dict[str, str] | Bad:
    """The name of a parameter, or a mapping of one name to another."""
    if isinstance(node, Table) and len(node.items) == 1:
        own, theirs = next(iter(node.items.items()))
        text = as_text(theirs, f"{where}, {own}", problems)
        return BAD if isinstance(text, Bad) else {own: text}
    if isinstance(node, Scalar):
        return as_text(node, where, problems)
    problems.add(
        "MF009", f"{where} has to be the name of a parameter, got {kind_of(node)}", node.position, "write e.g. path or {path: file}"
    )
    return BAD


def as_new_names(node: Node, where: str, problems: Problems) -> Names:
    """The names a file declares as its tools."""
    before = len(problems.found)
    if not isinstance(node, Listing):
        problems.add("MF009", f"{where} has to be a list of names, got {kind_of(node)}", node.position, "write e.g. [think, search]")
        return Names(are_whole=False)
    found = as_texts(node, where, problems)
    names = [] if isinstance(found, Bad) else found
    if len(names) > MOST_TOOLS:
        problems.add("MF002", f"{where} has more than {MOST_TOOLS} names", names[MOST_TOOLS][1])
        return Names(are_whole=False)
    for name, position in names:
        if name in RESERVED_NAMES:
            hint = "it is implied; leave it out" if name == FINAL_ANSWER else "rename the tool"
            problems.add("MF009", f"a tool may not be called {name}: the name is reserved", position, hint)
    return Names([name for name, _ in names], len(problems.found) == before)


def _every_or_tools(node: Node, where: str, problems: Problems, names: Names) -> Any:
    if isinstance(node, Scalar) and node.value is True:
        return None
    found = as_tools(node, where, problems, names)
    if isinstance(found, list) and not found:
        problems.add("MF009", f"{where} names no tool", node.position, "name some, or write true for every tool")
    if isinstance(found, list) and FINAL_ANSWER in found:
        problems.add("MF009", f"{where}: {FINAL_ANSWER} is never asked for", node.position, "leave it out")
    return found


READERS: dict[Shape, Callable[[Node, str, Problems, Names], Any]] = {
    "tool": as_tool,
    "tools": as_tools,
    "tools_or_all": _every_or_tools,
    "flag": lambda node, where, problems, names: as_flag(node, where, problems),
    "count": lambda node, where, problems, names: as_whole(node, where, problems),
    "positive": lambda node, where, problems, names: as_whole(node, where, problems, 1),
    "text": lambda node, where, problems, names: as_text(node, where, problems),
    "number": lambda node, where, problems, names: as_number(node, where, problems),
    "values": lambda node, where, problems, names: as_values(node, where, problems),
    "places": as_places,
    "named": as_named,
    "parameter": lambda node, where, problems, names: as_parameter(node, where, problems),
    "fragments": lambda node, where, problems, names: as_fragments(node, where, problems),
}
"""How each shape is read."""

"""What a docstring says: the text before its first section, and what it says about each parameter.

Google, NumPy and Sphinx styles are read. Anything else is text.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_GOOGLE_PARAMETERS = frozenset({"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"})
_GOOGLE_OTHERS = frozenset({"returns", "return", "yields", "yield", "raises", "examples", "example", "attributes", "notes"})
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:(?:\s+(.*))?$")
_NUMPY_ITEM = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_SPHINX_FIELD = re.compile(r":(\w+)(?:\s+([^:]*?))?\s*:(?:\s+(.*))?$")
_SPHINX_PARAMETERS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})


@dataclass(frozen=True, slots=True)
class Docstring:
    """`text` is the description; `parameters` maps a parameter's name to what is said about it."""

    text: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring of any of the three styles; None and "" give an empty one."""
    if not text:
        return Docstring()
    lines = inspect.cleandoc(text).split("\n")
    start = next((index for index in range(len(lines)) if _opens_section(lines, index)), len(lines))
    parameters: dict[str, str] = {}
    for name, words in _items(lines, start):
        said = " ".join(" ".join(words).split())
        if said:
            parameters.setdefault(name, said)
    return Docstring("\n".join(lines[:start]).strip(), parameters)


def _heading(line: str) -> str | None:
    """The Google heading on this line in lower case, if it is one."""
    word = line.strip()[:-1].lower() if line.rstrip().endswith(":") else ""
    return word if word in _GOOGLE_PARAMETERS or word in _GOOGLE_OTHERS else None


def _underlined(lines: list[str], index: int) -> bool:
    following = lines[index + 1].strip() if index + 1 < len(lines) else ""
    return bool(lines[index].strip()) and len(following) >= 3 and set(following) <= {"-", "="}


def _opens_section(lines: list[str], index: int) -> bool:
    line = lines[index]
    if not line or line[0].isspace():
        return False
    return _heading(line) is not None or _underlined(lines, index) or _SPHINX_FIELD.match(line) is not None


def _items(lines: list[str], start: int) -> Iterator[tuple[str, list[str]]]:
    """Pairs of a parameter and the words about it, from every section that lists parameters."""
    index = start
    while index < len(lines):
        end = next((later for later in range(index + 1, len(lines)) if _opens_section(lines, later)), len(lines))
        if field_match := _SPHINX_FIELD.match(lines[index]):
            # ":param int size: how many" names the type first.
            names = (field_match[2] or "").replace("*", "").split()
            if field_match[1] in _SPHINX_PARAMETERS and names:
                yield names[-1], [field_match[3] or "", *lines[index + 1 : end]]
        elif _underlined(lines, index):
            if lines[index].strip().lower() in _GOOGLE_PARAMETERS:
                yield from _numpy_items(lines[index + 2 : end])
        elif _heading(lines[index]) in _GOOGLE_PARAMETERS:
            yield from _google_items(lines[index + 1 : end])
        index = max(end, index + 1)


def _google_items(body: list[str]) -> Iterator[tuple[str, list[str]]]:
    indent = next((len(line) - len(line.lstrip()) for line in body if line.strip()), 0)
    current: tuple[str, list[str]] | None = None
    for line in body:
        match = _GOOGLE_ITEM.match(line.strip()) if len(line) - len(line.lstrip()) == indent else None
        if match:
            if current:
                yield current
            current = (match[1], [match[2] or ""])
        elif current:
            current[1].append(line)
    if current:
        yield current


def _numpy_items(body: list[str]) -> Iterator[tuple[str, list[str]]]:
    names: list[str] = []
    words: list[str] = []
    for line in body:
        match = _NUMPY_ITEM.match(line) if line and not line[0].isspace() else None
        if match:
            yield from ((name, words) for name in names)
            names, words = [name.strip().lstrip("*") for name in match[1].split(",")], []
        else:
            words.append(line)
    yield from ((name, words) for name in names)

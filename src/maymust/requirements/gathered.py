"""Values that the calls of a run took or returned: read off the steps once, as they come."""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from maymust.core.history import History
from maymust.core.step import Step
from maymust.errors import PolicyError


class Source:
    """Where values come from: the output or the arguments of one tool's successful calls.

    tool  its name
    side  "output" or "arguments"
    text  how the place is written: a JSONPath, a parameter, or the name of a function
    read  gives the values in an output, or in the arguments
    is_code  `read` is an author's function, so that two of the same text may differ
    """

    __slots__ = ("is_code", "read", "side", "text", "tool")

    def __init__(self, tool: str, side: str, text: str, read: Callable[[Any], Iterable[Any]], *, is_code: bool = False) -> None:
        self.tool = tool
        self.side = side
        self.text = text
        self.read = read
        self.is_code = is_code

    def values(self, step: Step) -> Iterable[Any]:
        """The values in one step."""
        return self.read(step.output if self.side == "output" else step.arguments)


def reader(place: Any, side: str, label: str) -> tuple[str, Callable[[Any], Iterable[Any]]]:
    """What an author wrote for a place, as a text and a function: a JSONPath, a parameter (of arguments), or a function of the whole.

    Raises PolicyError for anything else, and when the library for JSONPath is missing.
    """
    if callable(place):
        return str(getattr(place, "__name__", None) or repr(place)), _checked(place, label)
    if not isinstance(place, str) or not place:
        kinds = "a JSONPath such as '$.id'" if side == "output" else "a parameter, a JSONPath such as '$.ids[*]'"
        raise PolicyError(f"{label}: the place has to be {kinds} or a function, got {place!r}")
    if side == "arguments" and not place.startswith("$"):
        return place, lambda arguments: (arguments[place],) if arguments and place in arguments else ()
    return place, _json_path(place, label)


def _json_path(path: str, label: str) -> Callable[[Any], Iterable[Any]]:
    try:
        import jsonpath
    except ImportError as problem:
        raise PolicyError(
            f"{label}: JSONPath needs the extra `jsonpath`: pip install 'maymust[jsonpath]' (or give a function in the place of {path!r})"
        ) from problem
    try:
        compiled = jsonpath.compile(path, strict=True)
    except Exception as problem:
        raise PolicyError(f"{label}: {path!r} is no JSONPath ({_first_line(problem)}); write e.g. $.id or $.items[*].id") from None

    def read(data: Any) -> Iterable[Any]:
        if isinstance(data, str):
            if path == "$":
                return (data,)
            # Tools of other systems give their JSON as text.
            data = _parsed(data)
        return compiled.findall(data) if isinstance(data, dict | list) or path == "$" else ()

    return read


def _first_line(problem: Exception) -> str:
    try:
        return str(problem).splitlines()[0]
    except (ValueError, IndexError):
        return type(problem).__name__


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _checked(function: Callable[[Any], Any], label: str) -> Callable[[Any], Iterable[Any]]:
    def read(data: Any) -> Iterable[Any]:
        try:
            found = function(data)
        except Exception as error:
            raise PolicyError(f"{label}: {_name(function)} raised {type(error).__name__}: {error}") from error
        return as_values(found, f"{label}: {_name(function)}")

    return read


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", None) or repr(function))


def as_values(found: Any, label: str) -> list[Any]:
    """A function's answer as a list of JSON values; None is none. Raises PolicyError for anything else."""
    if found is None:
        return []
    if isinstance(found, str | bytes | dict) or not isinstance(found, Iterable):
        raise PolicyError(f"{label} has to give a list of JSON values, got {found!r}")
    values = list(found)
    try:
        json.dumps(values, allow_nan=False)
    except (TypeError, ValueError):
        raise PolicyError(f"{label} has to give a list of JSON values, got {found!r}") from None
    return values


def key_of(value: Any) -> Any:
    """What tells JSON values apart: 1 and 1.0 are equal, 1 and true are not."""
    return value if isinstance(value, str) else (json.dumps(_whole(value), sort_keys=True, default=repr),)


def _whole(value: Any) -> Any:
    """The value with each number that is whole as one, at whatever depth."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _whole(part) for key, part in value.items()}
    return [_whole(part) for part in value] if isinstance(value, list | tuple) else value


class Snapshot:
    """The values that count after some step: in order, each once, and what tells them from others."""

    __slots__ = ("key", "values")

    def __init__(self, values: Iterable[Any]) -> None:
        distinct = {key_of(value): value for value in values}
        self.key = tuple(distinct)
        self.values = list(distinct.values())


class Gathered:
    """The values of one run, in the order in which they were first seen. It grows with the steps, and is right for every version.

    sources    where they come from
    last_only  only the values of the last call of all sources count
    fit        gives a value in the form that the parameter takes, in a list; an empty one when the parameter does not take it
    """

    __slots__ = (
        "_asked",
        "_ends",
        "_fit",
        "_keys",
        "_last_only",
        "_lock",
        "_newest",
        "_places",
        "_read",
        "_sources",
        "_starts",
        "_values",
        "kept",
    )

    def __init__(self, sources: Sequence[Source], last_only: bool, fit: Callable[[Any], list[Any]]) -> None:
        self._sources: dict[str, list[Source]] = {}
        for source in sources:
            self._sources.setdefault(source.tool, []).append(source)
        self._last_only = last_only
        self._fit = fit
        self._lock = threading.Lock()
        self._read = dict.fromkeys(self._sources, 0)
        self._values: list[Any] = []
        self._places: list[int] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._keys: set[Any] = set()
        self._newest: tuple[int, Snapshot] = (0, Snapshot(()))
        self._asked = (-1, 0)
        self.kept: dict[object, tuple[int, Any]] = {}
        """What readers made of the values they saw last, with the number of calls it stands for."""

    def calls(self, history: History) -> int:
        """How many calls of the sources there are in this version of the history. O(1) at the newest one."""
        length = len(history)
        asked = self._asked
        if asked[0] == length:
            return asked[1]
        places = history.tally(False).places
        for tool, read in self._read.items():
            known = places.get(tool)
            if known is not None and len(known) > read and known[read] < length:
                self._grow(history)
                break
        mine = self._places
        calls = len(mine) if not mine or mine[-1] < length else bisect_left(mine, length)
        self._asked = (length, calls)
        return calls

    def after(self, calls: int) -> Snapshot:
        """The values that count after so many calls."""
        newest = self._newest
        if newest[0] != calls:
            start, end = (self._starts[calls - 1], self._ends[calls - 1]) if calls else (0, 0)
            # The values before `start` are of earlier calls; those that came up again are in the later part as well.
            newest = self._newest = (calls, Snapshot(self._values[start:end]))
        return newest[1]

    def _grow(self, history: History) -> None:
        length = len(history)
        places = history.tally(False).places
        with self._lock:
            fresh: list[int] = []
            reached = dict(self._read)
            for tool, read in self._read.items():
                known = places.get(tool, [])
                reached[tool] = max(read, bisect_left(known, length))
                fresh += known[read : reached[tool]]
            # Several tools give places in no order. All is read before anything is kept: an author's function may raise.
            for place, values in [(place, self._found(history[place])) for place in sorted(fresh)]:
                self._take(place, values)
            self._read = reached

    def _found(self, step: Step) -> list[Any]:
        return [value for source in self._sources[step.tool] for found in source.values(step) for value in self._fit(found)]

    def _take(self, place: int, values: list[Any]) -> None:
        start = len(self._values) if self._last_only else 0
        if self._last_only:
            self._keys.clear()
        for value in values:
            key = key_of(value)
            if key not in self._keys:
                self._keys.add(key)
                self._values.append(value)
        self._starts.append(start)
        self._ends.append(len(self._values))
        # Last, so that a reader without the lock never sees a place whose values are missing.
        self._places.append(place)

"""Values that the calls of a run took or returned: read off the steps once, as they come."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from maymust.core.step import Step
from maymust.errors import PolicyError, text_of
from maymust.requirements.step_log import StepLog


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
        self.tool: str = tool
        self.side: str = side
        self.text: str = text
        self.read: Callable[[Any], Iterable[Any]] = read
        self.is_code: bool = is_code

    def values(self, step: Step) -> Iterable[Any]:
        """The values in one step."""
        return self.read(step.output if self.side == "output" else step.arguments)


def reader(place: Any, side: str, label: str) -> tuple[str, Callable[[Any], Iterable[Any]]]:
    """What an author wrote for a place, as a text and a function: a JSONPath, a parameter (of arguments), or a function of the whole.

    Raises PolicyError for anything else, and when the library for JSONPath is missing.
    """
    if callable(place):
        return _name(place), partial(_of_function, place, label)
    if not isinstance(place, str) or not place:
        kinds = "a JSONPath such as '$.id'" if side == "output" else "a parameter, a JSONPath such as '$.ids[*]'"
        raise PolicyError(f"{label}: the place has to be {kinds} or a function, got {place!r}")
    if side == "arguments" and not place.startswith("$"):
        return place, partial(_of_parameter, place)
    return place, partial(_of_path, place, _compiled(place, label))


def _compiled(path: str, label: str) -> Any:
    try:
        import jsonpath
    except ImportError as problem:
        raise PolicyError(
            f"{label}: JSONPath needs the extra `jsonpath`: pip install 'maymust[jsonpath]' (or give a function in the place of {path!r})"
        ) from problem
    try:
        return jsonpath.compile(path, strict=True)
    except Exception as problem:
        raise PolicyError(f"{label}: {path!r} is no JSONPath ({_first_line(problem)}); write e.g. $.id or $.items[*].id") from None


# Functions of the module, since a policy can be pickled.
def _of_parameter(parameter: str, arguments: Any) -> Iterable[Any]:
    return (arguments[parameter],) if arguments and parameter in arguments else ()


def _of_path(path: str, compiled: Any, data: Any) -> Iterable[Any]:
    if isinstance(data, str):
        if path == "$":
            return (data,)
        # Tools of other systems give their JSON as text.
        data = _parsed(data)
    found: Iterable[Any] = compiled.findall(data) if isinstance(data, dict | list) or path == "$" else ()
    return found


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


def _of_function(function: Callable[[Any], Any], label: str, data: Any) -> Iterable[Any]:
    try:
        found = function(data)
    except Exception as error:
        raise PolicyError(f"{label}: {_name(function)} raised {type(error).__name__}: {text_of(error)}") from error
    return as_values(found, f"{label}: {_name(function)}")


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
        self.key: tuple[Any, ...] = tuple(distinct)
        self.values: list[Any] = list(distinct.values())


class Gathered(StepLog):
    """The values of one run, in the order in which they were first seen.

    sources    where they come from
    last_only  only the values of the last call of all sources count
    fit        gives a value in the form that the parameter takes, in a list; an empty one when the parameter does not take it
    """

    def __init__(self, sources: Sequence[Source], last_only: bool, fit: Callable[[Any], list[Any]]) -> None:
        self._sources: dict[str, list[Source]] = {}
        for source in sources:
            self._sources.setdefault(source.tool, []).append(source)
        super().__init__(self._sources)
        self._last_only = last_only
        self._fit = fit
        self._values: list[Any] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._keys: set[Any] = set()
        self._newest: tuple[int, Snapshot] = (0, Snapshot(()))

    def after(self, calls: int) -> Snapshot:
        """The values that count after so many calls."""
        newest = self._newest
        if newest[0] != calls:
            start, end = (self._starts[calls - 1], self._ends[calls - 1]) if calls else (0, 0)
            # The values before `start` are of earlier calls; those that came up again are in the later part as well.
            newest = self._newest = (calls, Snapshot(self._values[start:end]))
        return newest[1]

    def _found(self, step: Step) -> list[Any]:
        return [value for source in self._sources[step.tool] for found in source.values(step) for value in self._fit(found)]

    def _take(self, found: list[Any]) -> None:
        start = len(self._values) if self._last_only else 0
        if self._last_only:
            self._keys.clear()
        for value in found:
            key = key_of(value)
            if key not in self._keys:
                self._keys.add(key)
                self._values.append(value)
        self._starts.append(start)
        self._ends.append(len(self._values))

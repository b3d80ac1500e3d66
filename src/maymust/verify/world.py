"""What may happen beside the calls of a model: which may fail or be denied, and which tools arrive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maymust.core.tool_spec import did_you_mean, tool_name
from maymust.errors import PolicyError


class World:
    """What may happen beside the calls of a model.

    may_fail        tools whose calls may come back failed
    may_be_denied   tools whose calls a person may say no to
    present         tools that are there from the start; None: all tools of the policy
    loads           per tool the tools that a successful call of it adds
    """

    __slots__ = ("loads", "may_be_denied", "may_fail", "present")

    def __init__(
        self,
        tools: Sequence[str],
        *,
        may_fail: Iterable[object] = (),
        may_be_denied: Iterable[object] = (),
        present: Iterable[object] | None = None,
        loads: Mapping[str, Iterable[object]] | None = None,
    ) -> None:
        self.may_fail: frozenset[str] = frozenset(_known(tools, may_fail, "may_fail"))
        self.may_be_denied: frozenset[str] = frozenset(_known(tools, may_be_denied, "may_be_denied"))
        self.loads: dict[str, tuple[str, ...]] = {
            _known(tools, (one,), "loads")[0]: _known(tools, many, f"loads[{one}]") for one, many in (loads or {}).items()
        }
        self.present: tuple[str, ...] = tuple(tools) if present is None else _known(tools, present, "present")


def _known(tools: Sequence[str], named: Any, where: str) -> tuple[str, ...]:
    if isinstance(named, str) or not isinstance(named, Iterable):
        raise PolicyError(f"{where} has to be a list of tools, got {'the text ' if isinstance(named, str) else ''}{named!r}")
    names = tuple(tool_name(one) for one in named)
    for name in names:
        if name not in tools:
            raise PolicyError(f"{where}: the policy has no tool called {name}{did_you_mean(name, tools)}")
    return names

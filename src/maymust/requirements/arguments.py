"""A requirement on one argument of one tool: which values a call may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

from maymust.core.fragment import check_fragments, has_value
from maymust.core.history import History
from maymust.core.requirement import DEFAULT_PRIORITY, RunView, check_enabled, check_priority
from maymust.core.rule import Rule
from maymust.core.tool_spec import FINAL_ANSWER, ToolLike, target_text
from maymust.errors import PolicyError
from maymust.requirements.argument_values import ValuesOf
from maymust.requirements.bound_argument import BoundArgument
from maymust.requirements.gathered import Source, as_values, reader
from maymust.requirements.parameter import parameter_schema
from maymust.requirements.targets import resolve, resolve_one


@dataclass(frozen=True, slots=True, eq=False)
class ArgumentRequirement:
    """The values that one parameter of a tool may have.

    target         the tool: a name, its class, the Tool object or the decorated function; it has to stand for one tool
    param          name of the parameter
    one_of         a list of values, or a function of (history) or (history, run) that gives one
    minimum, maximum  bounds of a number
    pattern        a regular expression that the whole of a text has to match
    from_output    values that calls of a tool returned: `(tool, place)`, or a list of such pairs; a place is a JSONPath (RFC 9535)
                   or a function of the output that gives a list
    from_argument  values that calls of a tool took: `(tool, parameter)`, or a list of such pairs; a JSONPath or a function of all
                   arguments is taken as well
    last_only      only values of the last such call count
    each           the parameter is a list, and all of this is about each of its items
    optional       the parameter may be left out, or null
    name           default `argument:<target>.<param>`
    reason         shown instead of the requirement's own words

    Values of `one_of`, `from_output` and `from_argument` are one set; bounds hold beside it. Only calls that came back ok count.
    While there is no value at all the tool is denied, and the reason says what to call first. Numbers and texts are brought to
    the type of the parameter, so that the 7 of an output is "7" for a parameter that takes text.

    Raises PolicyError here for what cannot be meant, and in a policy for unknown tools and parameters.
    """

    target: Any
    param: str
    _: KW_ONLY
    one_of: Any = None
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None
    from_output: Any = None
    from_argument: Any = None
    last_only: bool = False
    each: bool = False
    optional: bool = False
    reason: str | None = None
    name: str | None = None
    priority: int = DEFAULT_PRIORITY
    enabled: bool = True

    def __post_init__(self) -> None:
        label, param, given = self._label, cast("Any", self.param), self.target
        if given is None or isinstance(given, list | tuple | set | frozenset):
            raise PolicyError(f"{label}: target has to be one tool, got {given!r}")
        if target_text(given) == FINAL_ANSWER:
            raise PolicyError(f"{label}: the fields of {FINAL_ANSWER} are a matter of output_type, not of a rule")
        if not isinstance(param, str) or not param.isprintable() or param == "":
            raise PolicyError(f"{label}: param has to be the name of a parameter, got {param!r}")
        for switch in ("last_only", "each", "optional"):
            if not isinstance(getattr(self, switch), bool):
                raise PolicyError(f"{label}: {switch} has to be True or False, got {getattr(self, switch)!r}")
        if self.reason is not None and not isinstance(self.reason, str):
            raise PolicyError(f"{label}: reason has to be a text, got {self.reason!r}")
        for side in ("from_output", "from_argument"):
            object.__setattr__(self, side, _pairs(getattr(self, side), f"{label}: {side}"))
        self._check_values(label)
        check_priority(self.priority, label)
        check_enabled(self.enabled, label)

    def _check_values(self, label: str) -> None:
        """Refuse values under which the tool could never be called, and a requirement that says nothing."""
        never = f"so {target_text(self.target)} could never be called"
        listed = self.one_of is not None and not callable(self.one_of)
        if isinstance(self.one_of, type):
            raise PolicyError(f"{label}: one_of has to be a list of values or a function of (history), got {self.one_of!r}")
        if listed:
            values = as_values(self.one_of, f"{label}: one_of")
            if not values:
                raise PolicyError(f"{label}: one_of is empty, {never}")
            object.__setattr__(self, "one_of", tuple(values))
        sources = self.from_output or self.from_argument
        if not self._bounds and self.one_of is None and not sources:
            ways = "one_of, minimum, maximum, pattern, from_output, from_argument"
            raise PolicyError(f"{label}: say which values {self.param} may have ({ways})")
        if self.last_only and not sources:
            raise PolicyError(f"{label}: last_only speaks of from_output and from_argument, and there is neither")
        if self.pattern is not None and not (self.minimum is None and self.maximum is None):
            raise PolicyError(f"{label}: minimum and maximum speak of numbers, pattern of texts, {never}")
        bounds = check_fragments({self.param: self._bounds}, label)[self.param]
        known = [{"enum": list(self.one_of)}] if listed and not sources else []
        if not has_value([bounds, *known]):
            raise PolicyError(f"{label}: no value of {self.param} satisfies all of this, {never}")

    @property
    def _label(self) -> str:
        return self.name or f"argument:{target_text(self.target)}.{self.param}"

    @property
    def _bounds(self) -> dict[str, Any]:
        """The fixed part of the fragment."""
        # JSON Schema lets every text pass a bound of numbers, and looks for a pattern anywhere in a text. A rule that holds does neither.
        bounds: dict[str, Any] = {} if self.minimum is None and self.maximum is None else {"type": "number"}
        bounds |= {key: value for key, value in (("minimum", self.minimum), ("maximum", self.maximum)) if value is not None}
        return bounds if self.pattern is None else {**bounds, "type": "string", "pattern": f"^(?:{self.pattern})$"}

    def bind(self, tools: Sequence[ToolLike]) -> BoundArgument:
        """Return the requirement over these tools. Raises PolicyError for unknown tools and parameters."""
        label = self._label
        target = resolve_one(self.target, tools, where=f"{label}: target")
        schema = parameter_schema(target, self.param, tools, label)
        sources = (
            *self._sources("from_output", "output", tools),
            *self._sources("from_argument", "arguments", tools),
        )
        if not (self.each or self.optional or has_value([schema, self._bounds])):
            raise PolicyError(f"{label}: {target} takes no value as {self.param} that satisfies all of this, so it could never be called")
        if self.each:
            schema = schema.get("items", {}) if isinstance(schema.get("items"), Mapping) else {}
        values = ValuesOf(self.one_of, sources, label, last_only=self.last_only, schema=schema, bounds=self._bounds)
        if sources and self.one_of is None and not self.optional and all(source.tool == target for source in sources):
            raise PolicyError(f"{label}: its values come from {target} itself, which could never be called; add one_of or another tool")
        return BoundArgument(
            name=self.name or f"argument:{target}.{self.param}",
            priority=self.priority,
            enabled=self.enabled,
            target=target,
            param=self.param,
            bounds=self._bounds,
            values=values,
            each=self.each,
            optional=self.optional,
            reason=self.reason,
        )

    def rules(self, history: History, run: RunView, /) -> tuple[Rule, ...]:
        """The rules over the tools of `run`, for a requirement used by itself. A policy binds it once and asks the bound form."""
        return self.bind(run.tools).rules(history, run)

    def _sources(self, parameter: str, side: str, tools: Sequence[ToolLike]) -> tuple[Source, ...]:
        where = f"{self._label}: {parameter}"
        found = []
        for tool, place in getattr(self, parameter):
            text, read = reader(place, side, where)
            for name in resolve(tool, tools, where=where):
                if side == "arguments" and text == place and not text.startswith("$"):
                    parameter_schema(name, text, tools, where)
                found.append(Source(name, side, text, read, is_code=callable(place)))
        return tuple(found)


def _pairs(given: Any, label: str) -> tuple[tuple[Any, Any], ...]:
    """`(tool, place)` or a list of such pairs, as a tuple of pairs."""
    if given is None:
        return ()
    several = isinstance(given, list) or (isinstance(given, tuple) and bool(given) and all(isinstance(one, tuple | list) for one in given))
    pairs = tuple(given) if several else (given,)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            example = "('get_record', '$.id')"
            raise PolicyError(f"{label} has to be a pair of a tool and a place, e.g. {example}, or a list of them, got {pair!r}")
    return tuple((tool, place) for tool, place in pairs)

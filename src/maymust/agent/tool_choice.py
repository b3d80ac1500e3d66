"""`tool_choice`: what the caller of a run demands of its tool calls, as rules above all requirements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from maymust.core.rule import Rule
from maymust.core.tool_spec import FINAL_ANSWER, closest
from maymust.core.verdict import Extra
from maymust.errors import PolicyError

Mode = Literal["auto", "required", "none"]
ToolMode = Mode | Mapping[str, Any]
"""`"auto"`, `"required"`, `"none"`, `{"mode": "required", "required_function_name": name}`
or `{"mode": "auto" | "required", "allowed_tools": [names]}`."""

SOURCE = "tool_choice"
_MODES = ("auto", "required", "none")
_KEYS = ("mode", "required_function_name", "allowed_tools")


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """A checked tool choice.

    `function` is the tool that has to succeed once; `allowed` the subset that is open for the whole run.
    """

    mode: Mode
    function: str | None = None
    allowed: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON form, which is a `ToolMode` too."""
        data: dict[str, Any] = {"mode": self.mode}
        if self.function is not None:
            data["required_function_name"] = self.function
        if self.allowed is not None:
            data["allowed_tools"] = list(self.allowed)
        return data

    @property
    def text_is_expected(self) -> bool:
        """Whether a text is the form of answer that was asked for, so that taking it is no coercion."""
        return self.mode in ("auto", "none")

    def released_by(self, tool: str) -> bool:
        """Whether a success of this tool is what is required."""
        return tool == self.function or (self.function is None and tool != FINAL_ANSWER)

    def rules(self, tools: Sequence[str], released: bool) -> tuple[Extra, ...]:
        """The rules this choice makes about the tools that are present. `released`: what was required has succeeded."""
        rules: list[Rule] = []
        if self.mode == "none":
            rules += [Rule(name, allowed=False, reason="tool_choice is none: no tool may be called in this run") for name in tools]
        if self.allowed is not None:
            reason = f"tool_choice allows only {', '.join(self.allowed) or 'the answer'}"
            rules += [Rule(name, allowed=False, reason=reason) for name in tools if name not in self.allowed]
        if self.mode == "required" and not released:
            if self.function is not None:
                reason = f"tool_choice requires {self.function}"
                rules.append(Rule(self.function, forced=True, prevent_stop=self.function != FINAL_ANSWER, reason=reason))
            else:
                rules.append(Rule(FINAL_ANSWER, prevent_stop=True, reason="tool_choice is required: a tool has to succeed first"))
        return tuple(Extra(SOURCE, rule) for rule in rules)


def parse_choice(value: ToolMode | None, names: Sequence[str]) -> ToolChoice | None:
    """Check a tool choice against the tools it may name. Raises PolicyError that quotes what is wrong."""
    if value is None:
        return None
    if isinstance(value, str):
        _check_mode(value)
        return ToolChoice(value)
    if not isinstance(value, Mapping):
        raise PolicyError(f"tool_choice={value!r}: give one of {', '.join(_MODES)}, or a dict with the key 'mode'")
    unknown = [key for key in value if key not in _KEYS]
    if unknown:
        raise PolicyError(f"tool_choice has the unknown key {unknown[0]!r}; the keys are {', '.join(_KEYS)}")
    mode = value.get("mode")
    _check_mode(mode)
    function, allowed = value.get("required_function_name"), value.get("allowed_tools")
    if function is not None:
        if mode != "required":
            raise PolicyError(f"tool_choice: required_function_name={function!r} needs mode 'required', not {mode!r}")
        _check_name(function, names)
    if allowed is not None:
        if isinstance(allowed, str) or not isinstance(allowed, Sequence):
            raise PolicyError(f"tool_choice: allowed_tools={allowed!r}: give a list of tool names")
        if mode == "none":
            raise PolicyError("tool_choice: mode 'none' and allowed_tools contradict each other")
        for name in allowed:
            _check_name(name, names)
        if function is not None and function not in (*allowed, FINAL_ANSWER):
            raise PolicyError(f"tool_choice requires {function!r}, which its own allowed_tools leave out")
    return ToolChoice(mode, function, None if allowed is None else tuple(allowed))  # type: ignore[arg-type]  # checked above


def _check_mode(mode: object) -> None:
    if mode not in _MODES:
        meant = closest(mode, _MODES) if isinstance(mode, str) else ()
        hint = f"; did you mean {meant[0]!r}?" if meant else ""
        raise PolicyError(f"tool_choice {mode!r} is no mode; the modes are {', '.join(_MODES)}{hint}")


def _check_name(name: object, names: Sequence[str]) -> None:
    if name not in names and name != FINAL_ANSWER:
        meant = closest(name, names) if isinstance(name, str) else ()
        hint = f"; did you mean {meant[0]!r}?" if meant else f"; the tools are {', '.join(names) or 'none'}"
        raise PolicyError(f"tool_choice names {name!r}, which is no tool of this agent{hint}")

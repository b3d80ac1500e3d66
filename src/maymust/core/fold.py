"""From the rules of all requirements to the verdicts over the whole set of tools. A pure function of its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from maymust.core.folded import Folded
from maymust.core.fragment import Fragment, as_spoken, has_value
from maymust.core.tool_set import ToolSet
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.core.verdict import Voice
from maymust.errors import ConflictError

Mode: TypeAlias = Literal["auto", "none"] | None
"""The word a run's `tool_choice` puts in the place of `required` (`auto`, where the run may stop) or of any choice (`none`)."""


class _Tool:
    """What was said about one tool so far."""

    __slots__ = ("asks", "closing", "forcing", "fragments", "hidden", "level")

    def __init__(self, level: tuple[float, int]) -> None:
        # Voices come sorted, so the first one is the highest of any kind.
        self.level = level
        self.closing: list[Voice] = []
        self.forcing: list[Voice] = []
        self.asks = False
        self.hidden = False
        self.fragments: dict[str, list[tuple[Voice, Fragment]]] = {}

    def hear(self, voice: Voice, forces: bool) -> None:
        rule = voice.rule
        if not rule.allowed or rule.hidden:
            self.closing.append(voice)
            self.hidden = self.hidden or rule.hidden
        if forces and rule.forced:
            self.forcing.append(voice)
        if rule.ask:
            self.asks = True
        if rule.arguments:
            for parameter, fragment in rule.arguments.items():
                self.fragments.setdefault(parameter, []).append((voice, fragment))


def fold(voices: Iterable[Voice], tools: ToolSet, *, final_answer_as_tool: bool = True, relaxed: bool = False, mode: Mode = None) -> Folded:
    """Fold rules into verdicts.

    voices   every rule with its requirement; targets are names
    tools    the tools of this moment; a rule about any other tool keeps its `prevent_stop` and nothing else
    relaxed  force and `prevent_stop` count only in extra rules

    Raises ConflictError. A dead end is returned (nothing is allowed), so that the caller can report it with the permit so far.
    """
    ranked = sorted(voices, key=lambda voice: voice.rank)
    spoken: dict[str, _Tool] = {}
    preventing: list[Voice] = []
    for voice in ranked:
        binding = not relaxed or voice.is_extra
        if voice.rule.prevent_stop and binding:
            preventing.append(voice)
        target = voice.rule.target
        if target in tools.order:
            if target not in spoken:
                spoken[target] = _Tool(voice.level)
            spoken[target].hear(voice, binding)
    for name, tool in spoken.items():
        if tool.fragments:
            _close_empty(name, tool, tools)
    lapsed = _lapse(spoken)
    for voice in lapsed:
        if voice in preventing:
            preventing.remove(voice)
    forced = min(
        (name for name, tool in spoken.items() if tool.forcing), key=lambda name: (spoken[name].level, tools.order[name]), default=None
    )
    result = _sort_out(spoken, tools, forced, bool(preventing))
    result.voices = tuple(ranked)
    result.preventing = tuple(preventing)
    result.lapsed = tuple((voice.rule.target, voice.requirement) for voice in lapsed)
    result.outranked = tuple(
        (name, voice.requirement) for name in tools.all if name in spoken and name != forced for voice in spoken[name].forcing
    )
    result.relaxed = tuple(
        _names(voice for voice in ranked if relaxed and not voice.is_extra and (voice.rule.forced or voice.rule.prevent_stop))
    )
    result.tool_choice = _choice(result, final_answer_as_tool, mode)
    return result


def _close_empty(name: str, tool: _Tool, tools: ToolSet) -> None:
    """Add to the closing voices those whose fragments leave a parameter no value."""
    for parameter, narrowing in tool.fragments.items():
        if not has_value([tools.schema_of(name, parameter), *(as_spoken(fragment) for _, fragment in narrowing)]):
            tool.closing.extend(voice for voice, _ in narrowing if voice not in tool.closing)
    tool.closing.sort(key=lambda voice: voice.rank)


def _lapse(spoken: Mapping[str, _Tool]) -> list[Voice]:
    """Take the forces off tools that are closed, and return them. Raises ConflictError where none of the two sides gives way."""
    lapsed: list[Voice] = []
    for name, tool in spoken.items():
        if not tool.forcing or not tool.closing:
            continue
        yielding = any(voice.lapses_force for voice in tool.closing)
        stubborn = [voice for voice in tool.forcing if not yielding and not voice.lapses_force]
        if stubborn:
            raise _conflict(name, stubborn, tool.closing)
        lapsed.extend(tool.forcing)
        tool.forcing = []
    return sorted(lapsed, key=lambda voice: voice.rank)


def _conflict(name: str, forcing: Sequence[Voice], closing: Sequence[Voice]) -> ConflictError:
    one, other = _names(forcing), _names(closing)
    why = "; ".join(dict.fromkeys(reason for voice in closing if (reason := voice.reason)))
    return ConflictError(
        f"{name} is forced by {_listed(one)} and closed by {_listed(other)}{f' ({why})' if why else ''}: no call can satisfy both. "
        "Where the force should lapse, write force and condition in one requirement",
        tool=name,
        forcing=one,
        closing=other,
    )


def _sort_out(spoken: Mapping[str, _Tool], tools: ToolSet, forced: str | None, prevented: bool) -> Folded:
    """Give every tool its place."""
    allowed: list[str] = []
    denied: list[str] = []
    hidden: list[str] = []
    withheld: list[str] = []
    for name in tools.all:
        tool = spoken.get(name)
        if tool is not None and tool.closing:
            (hidden if tool.hidden else denied).append(name)
        elif name == FINAL_ANSWER and prevented and forced != FINAL_ANSWER:
            denied.append(name)
        elif forced is None or name in (forced, FINAL_ANSWER):
            allowed.append(name)
        else:
            withheld.append(name)
    result = Folded(tools.all)
    result.allowed, result.denied, result.hidden, result.withheld = tuple(allowed), tuple(denied), tuple(hidden), tuple(withheld)
    result.asks = tuple(name for name in allowed if name in spoken and spoken[name].asks)
    result.forced = forced
    result.may_stop = bool(allowed) and allowed[-1] == FINAL_ANSWER
    result.closing = {name: tuple(tool.closing) for name, tool in spoken.items() if tool.closing}
    return result


def _choice(result: Folded, final_answer_as_tool: bool, mode: Mode) -> str:
    if mode == "none":
        return "none"
    if result.forced is not None:
        return result.forced
    if len(result.allowed) == 1:
        return result.allowed[0]
    return "auto" if result.may_stop and (mode == "auto" or not final_answer_as_tool) else "required"


def _names(voices: Iterable[Voice]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(voice.requirement for voice in voices))


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)

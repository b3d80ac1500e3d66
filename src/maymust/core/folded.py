"""The result of a fold, without the history it was made for: what permits share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from maymust.core.fragment import Fragment
from maymust.core.rule import Rule
from maymust.core.tool_spec import FINAL_ANSWER, did_you_mean
from maymust.core.verdict import Verdict, Voice
from maymust.errors import PolicyError


class Folded:
    """Verdicts over a set of tools, and the voices behind them. Filled in by the fold, and never changed afterwards.

    tools, allowed, denied, hidden, withheld, asks   names in the order of registration, `final_answer` last
    voices       every rule, highest rank first
    closing      per closed tool the voices that close it (a `prevent_stop` closes `final_answer` and is in `preventing`)
    preventing   voices whose `prevent_stop` is on
    lapsed       (tool, requirement) of forces that gave way to a denial which makes them lapse
    outranked    (tool, requirement) of forces that lost to another tool's
    relaxed      names of requirements whose force or `prevent_stop` was switched off
    derived      what others have made of it and keep beside it
    """

    __slots__ = (
        "_by_tool",
        "_narrowing",
        "_reasons",
        "_verdicts",
        "allowed",
        "asks",
        "closing",
        "denied",
        "derived",
        "forced",
        "hidden",
        "lapsed",
        "may_stop",
        "outranked",
        "preventing",
        "relaxed",
        "tool_choice",
        "tools",
        "voices",
        "withheld",
    )

    def __init__(self, tools: tuple[str, ...]) -> None:
        self.tools: tuple[str, ...] = tools
        self.allowed: tuple[str, ...] = ()
        self.denied: tuple[str, ...] = ()
        self.hidden: tuple[str, ...] = ()
        self.withheld: tuple[str, ...] = ()
        self.asks: tuple[str, ...] = ()
        self.forced: str | None = None
        self.tool_choice: str = "required"
        self.may_stop: bool = False
        self.voices: tuple[Voice, ...] = ()
        self.closing: Mapping[str, tuple[Voice, ...]] = {}
        self.preventing: tuple[Voice, ...] = ()
        self.lapsed: tuple[tuple[str, str], ...] = ()
        self.outranked: tuple[tuple[str, str], ...] = ()
        self.relaxed: tuple[str, ...] = ()
        self._verdicts: dict[str, Verdict] | None = None
        self._reasons: Mapping[str, tuple[str, ...]] | None = None
        self._by_tool: dict[str, tuple[Voice, ...]] | None = None
        self._narrowing: Mapping[str, Mapping[str, tuple[Fragment, ...]]] | None = None
        self.derived: dict[object, Any] = {}

    def renewed(self, rules: Mapping[int, Rule]) -> Folded:
        """The same verdicts, with other rules in the mouths of some requirements (by seat), which change none of them."""
        other = Folded.__new__(Folded)
        for slot in Folded.__slots__:
            setattr(other, slot, getattr(self, slot))
        other.voices = tuple([voice.saying(rules[voice.seat]) if voice.seat in rules else voice for voice in self.voices])
        other._by_tool = other._narrowing = None
        other.derived = {}
        return other

    @property
    def narrowing(self) -> Mapping[str, Mapping[str, tuple[Fragment, ...]]]:
        """Per tool and parameter the fragments that narrow it."""
        if self._narrowing is None:
            found: dict[str, dict[str, tuple[Fragment, ...]]] = {}
            for voice in self.voices:
                if voice.rule.arguments:
                    mine = found.setdefault(voice.rule.target, {})
                    for parameter, fragment in voice.rule.arguments.items():
                        mine[parameter] = (*mine.get(parameter, ()), fragment)
            self._narrowing = found
        return self._narrowing

    def verdict(self, name: str) -> Verdict:
        """The verdict on one tool. Raises PolicyError for a name that is no tool here."""
        verdicts = self._verdicts
        if verdicts is None:
            verdicts = dict.fromkeys(self.allowed, Verdict.ALLOWED)
            verdicts |= dict.fromkeys(self.asks, Verdict.ASK)
            verdicts |= dict.fromkeys(self.denied, Verdict.DENIED)
            verdicts |= dict.fromkeys(self.hidden, Verdict.HIDDEN)
            verdicts |= dict.fromkeys(self.withheld, Verdict.WITHHELD)
            if self.forced is not None:
                verdicts[self.forced] = Verdict.FORCED
            self._verdicts = verdicts
        if name not in verdicts:
            raise PolicyError(f"the permit knows no tool called {name}{did_you_mean(name, self.tools)}")
        return verdicts[name]

    def closers(self, name: str) -> tuple[Voice, ...]:
        """The voices that close a tool, highest rank first; for the final answer those that prevent the end as well."""
        closing = self.closing.get(name, ())
        if name != FINAL_ANSWER or self.forced == FINAL_ANSWER or not self.preventing:
            return closing
        return tuple(sorted({id(voice): voice for voice in (*closing, *self.preventing)}.values(), key=lambda voice: voice.rank))

    @property
    def reasons(self) -> Mapping[str, tuple[str, ...]]:
        """The reasons why each tool is closed, highest rank first; empty for open and withheld tools."""
        if self._reasons is None:
            self._reasons = MappingProxyType(
                {name: tuple(reason for voice in self.closers(name) if (reason := voice.reason)) for name in self.tools}
            )
        return self._reasons

    def spoken(self, name: str) -> tuple[Voice, ...]:
        """The voices that spoke about a tool: its own, for the final answer those that prevent the end, and for a withheld tool
        those that force the other one.
        """
        self.verdict(name)
        if self._by_tool is None:
            by_tool: dict[str, list[Voice]] = {}
            for voice in self.voices:
                by_tool.setdefault(voice.rule.target, []).append(voice)
            self._by_tool = {tool: tuple(voices) for tool, voices in by_tool.items()}
        own = self._by_tool.get(name, ())
        if name == FINAL_ANSWER:
            own = tuple(sorted({id(voice): voice for voice in (*own, *self.preventing)}.values(), key=lambda voice: voice.rank))
        if self.forced is not None and name in self.withheld:
            own += tuple(voice for voice in self._by_tool.get(self.forced, ()) if voice.rule.forced)
        return own

    def to_dict(self) -> dict[str, Any]:
        """JSON form, without the voices. Empty entries are left out."""
        data: dict[str, Any] = {"tools": list(self.tools), "tool_choice": self.tool_choice}
        for key in ("allowed", "denied", "hidden", "withheld", "asks", "relaxed"):
            if getattr(self, key):
                data[key] = list(getattr(self, key))
        for key in ("lapsed", "outranked"):
            if getattr(self, key):
                data[key] = [list(pair) for pair in getattr(self, key)]
        if self.forced is not None:
            data["forced"] = self.forced
        place = {id(voice): index for index, voice in enumerate(self.voices)}
        if self.closing:
            data["closing"] = {name: [place[id(voice)] for voice in voices] for name, voices in self.closing.items()}
        if self.preventing:
            data["preventing"] = [place[id(voice)] for voice in self.preventing]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], voices: tuple[Voice, ...]) -> Folded:
        """Read the JSON form."""
        result = cls(tuple(data["tools"]))
        for key in ("allowed", "denied", "hidden", "withheld", "asks", "relaxed"):
            setattr(result, key, tuple(data.get(key, ())))
        for key in ("lapsed", "outranked"):
            setattr(result, key, tuple((tool, requirement) for tool, requirement in data.get(key, ())))
        result.forced = data.get("forced")
        result.tool_choice = data["tool_choice"]
        result.may_stop = FINAL_ANSWER in result.allowed
        result.voices = voices
        result.closing = {name: tuple(voices[index] for index in places) for name, places in data.get("closing", {}).items()}
        result.preventing = tuple(voices[index] for index in data.get("preventing", ()))
        return result

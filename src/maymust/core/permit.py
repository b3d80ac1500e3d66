"""The pass: what may be called, what must be called, and whether the run may stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from maymust.core.folded import Folded
from maymust.core.fragment import Fragment
from maymust.core.history import History
from maymust.core.requirement import BoundRequirement, RunView
from maymust.core.verdict import Spoken, Verdict, Voice

__all__ = ["Permit", "Spoken", "Verdict"]

T = TypeVar("T")

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Permit:
    """An immutable pass for one turn. Cheap to make: verdicts are shared between permits, reasons and evidence are made on demand.

    history   the version of the history it speaks of. A policy without rules has one permit per tool set, whose history is empty.
    """

    __slots__ = ("_folded", "_memories", "_run", "_seats", "history")

    def __init__(
        self,
        folded: Folded,
        history: History,
        seats: Sequence[BoundRequirement] = (),
        run: RunView | None = None,
        memories: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        self._folded = folded
        self.history: History = history
        self._seats = seats
        self._run = run
        self._memories = memories

    @property
    def tools(self) -> tuple[str, ...]:
        """Every tool, in the order of registration, `final_answer` last. The same order holds for all other lists."""
        return self._folded.tools

    @property
    def requirements(self) -> tuple[BoundRequirement, ...]:
        """The enabled requirements that were asked; none of a permit that was read from JSON."""
        return tuple(self._seats)

    @property
    def allowed(self) -> tuple[str, ...]:
        """Tools that are offered and may be called; includes the forced one and those a person is asked about."""
        return self._folded.allowed

    @property
    def denied(self) -> tuple[str, ...]:
        """Tools that are shown and closed."""
        return self._folded.denied

    @property
    def hidden(self) -> tuple[str, ...]:
        """Tools that are neither shown nor callable."""
        return self._folded.hidden

    @property
    def withheld(self) -> tuple[str, ...]:
        """Tools that are closed only because another one is forced."""
        return self._folded.withheld

    @property
    def asks(self) -> tuple[str, ...]:
        """Those of the allowed tools that need a person's yes."""
        return self._folded.asks

    @property
    def forced(self) -> str | None:
        """The tool that must be called, None when there is none."""
        return self._folded.forced

    @property
    def tool_choice(self) -> str:
        """`auto`, `required`, `none`, or the name of the one tool to call."""
        return self._folded.tool_choice

    @property
    def may_stop(self) -> bool:
        """True exactly when `final_answer` is allowed."""
        return self._folded.may_stop

    @property
    def reasons(self) -> Mapping[str, tuple[str, ...]]:
        """Per tool the reasons why it is closed, highest priority first; empty for tools that are open or only withheld."""
        return self._folded.reasons

    @property
    def lapsed(self) -> tuple[tuple[str, str], ...]:
        """(tool, requirement) of forces that gave way to a person's no, the loop guard or the like."""
        return self._folded.lapsed

    @property
    def outranked(self) -> tuple[tuple[str, str], ...]:
        """(tool, requirement) of forces that lost to another tool's."""
        return self._folded.outranked

    @property
    def owed(self) -> tuple[str, ...]:
        """Names of the requirements whose `prevent_stop` is on."""
        return tuple(dict.fromkeys(voice.requirement for voice in self._folded.preventing))

    @property
    def relaxed(self) -> tuple[str, ...]:
        """Names of the requirements whose force or `prevent_stop` was switched off for this permit."""
        return self._folded.relaxed

    def verdict(self, name: str) -> Verdict:
        """The verdict on one tool. Raises PolicyError for an unknown name."""
        return self._folded.verdict(name)

    def why(self, name: str) -> tuple[Spoken, ...]:
        """The rules that spoke about a tool, highest priority first, each with its evidence from the history.

        For `final_answer` the rules that prevent the end are among them, and for a withheld tool those that force the other one.
        Raises PolicyError for an unknown name.
        """
        return tuple(Spoken(voice.requirement, voice.priority, voice.rule, self._evidence(voice)) for voice in self._folded.spoken(name))

    def unlocks(self, name: str) -> tuple[str, ...]:
        """What the closing requirements say by themselves where an author's `reason` stands in its place: what would open the tool."""
        said = (self._unlock(voice) for voice in self._folded.closers(name))
        return tuple(dict.fromkeys(text for text in said if text and text not in self.reasons.get(name, ())))

    def arguments(self, name: str) -> Mapping[str, tuple[Fragment, ...]]:
        """Per parameter the fragments that a call's value has to satisfy, all of them."""
        return self._folded.narrowing.get(name, _NOTHING)

    def questions(self, name: str) -> tuple[tuple[str, bool | Mapping[str, Fragment]], ...]:
        """Who asks about a tool: (requirement, True) or (requirement, `{parameter: fragment}` of the calls it asks about)."""
        return tuple((voice.requirement, voice.rule.ask) for voice in self._folded.voices if voice.rule.ask and voice.rule.target == name)

    def excused(self, requirement: str, name: str, arguments: Mapping[str, Any] | None) -> bool:
        """True when a requirement that asks about the tool waives its question about a call with these arguments."""
        for voice in self._folded.voices:
            if voice.requirement == requirement and voice.rule.ask and voice.rule.target == name and voice.seat >= 0 and self._seats:
                hook = getattr(self._seats[voice.seat], "excuses", None)
                if hook is not None:
                    return bool(hook(name, arguments, self.history, self.view_of(requirement)))
        return False

    def view_of(self, requirement: str) -> RunView:
        """The run as a requirement saw it: with its own memory."""
        base = self._run or RunView()
        if self._memories is None:
            return base
        return base.remembering(self._memories.get(requirement, {}))

    def derived(self, key: object, make: Callable[[], T]) -> T:
        """Return what `make` made for this key, made once for all permits that share their verdicts, reasons and limits.

        It must not depend on the history, the run or its memories.
        """
        kept: T | None = self._folded.derived.get(key)
        return kept if kept is not None else self._folded.derived.setdefault(key, make())

    def _evidence(self, voice: Voice) -> str:
        if voice.evidence is not None:
            return voice.evidence
        asked = getattr(self._seats[voice.seat], "evidence", None) if voice.seat >= 0 else None
        return str(asked(self.history, self.view_of(voice.requirement))) if asked is not None else ""

    def _unlock(self, voice: Voice) -> str | None:
        if voice.unlock is not None:
            return voice.unlock
        asked = getattr(self._seats[voice.seat], "default_reason", None) if voice.seat >= 0 else None
        return asked(self.history, self.view_of(voice.requirement)) if asked is not None else None

    def to_dict(self) -> dict[str, Any]:
        """JSON form, evidence as text. `steps` is the length of the history."""
        closing = {id(voice) for voices in self._folded.closing.values() for voice in voices} | {id(v) for v in self._folded.preventing}
        voices = []
        for voice in self._folded.voices:
            said = voice.to_dict() | {"evidence": self._evidence(voice)}
            unlock = self._unlock(voice) if id(voice) in closing else None
            if unlock and unlock != voice.rule.reason:
                said["unlock"] = unlock
            voices.append(said)
        return {**self._folded.to_dict(), "voices": voices, "steps": len(self.history)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], history: History | None = None) -> Permit:
        """Read the JSON form. The permit answers everything the original did; its history is the given one, or empty."""
        voices = tuple(Voice.from_dict(said, order) for order, said in enumerate(data.get("voices", ())))
        return cls(Folded.from_dict(data, voices), History() if history is None else history)

    def __reduce__(self) -> tuple[Any, ...]:
        # What it was made from may hold deps, which are never stored.
        return Permit.from_dict, (self.to_dict(), self.history)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Permit):
            return NotImplemented
        return self is other or (
            self.verdicts() == other.verdicts()
            and self.tool_choice == other.tool_choice
            and dict(self.reasons) == dict(other.reasons)
            and [(v.requirement, v.priority, v.rule) for v in self._folded.voices]
            == [(v.requirement, v.priority, v.rule) for v in other._folded.voices]
        )

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def verdicts(self) -> dict[str, Verdict]:
        """The verdict of every tool, in order."""
        return {name: self.verdict(name) for name in self.tools}

    def __repr__(self) -> str:
        marks = "  ".join(f"{verdict.glyph} {name}" for name, verdict in self.verdicts().items())
        return f"<Permit {marks}  tool_choice={self.tool_choice}{'' if self.may_stop else '  may not stop'}>"

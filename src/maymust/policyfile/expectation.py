"""What somebody expects of a permit, and how it differs from what the permit says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from maymust.core.permit import Permit, Spoken, Verdict
from maymust.core.tool_spec import FINAL_ANSWER, did_you_mean
from maymust.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One difference: the word of the expectation, the tool it is about (None: the whole permit), what is the matter, and why."""

    word: str
    tool: str | None
    message: str
    why: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((self.message, *(f"    {line}" for line in self.why)))


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a permit should say; what is not mentioned may be as it is.

    allows       tools that may be called, with or without a person's yes
    allows_only  the same, and no other tool may be called
    asks         tools that may be called after a person's yes
    denies       tools that are shown and closed, each with texts that have to occur in its reasons
    hides        tools that are neither shown nor callable
    withholds    tools that are closed because another one is forced
    forces       the tool that must be called; "" for none
    may_stop     whether the run may end
    tool_choice  what is sent as `tool_choice`
    """

    allows: tuple[str, ...] = ()
    allows_only: tuple[str, ...] | None = None
    asks: tuple[str, ...] = ()
    denies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hides: tuple[str, ...] = ()
    withholds: tuple[str, ...] = ()
    forces: str | None = None
    may_stop: bool | None = None
    tool_choice: str | None = None

    def mismatches(self, permit: Permit) -> tuple[Mismatch, ...]:
        """Every difference, in the order of the words above. Raises PolicyError for names the permit does not know."""
        self._check_names(permit)
        return tuple(self._compare(permit))

    def _compare(self, permit: Permit) -> Iterator[Mismatch]:
        for word, tools in (("allows", self.allows), ("allows_only", self.allows_only or ())):
            yield from (_wrong(word, permit, tool, "allowed") for tool in tools if tool not in permit.allowed)
        if self.allows_only is not None:
            extra = (tool for tool in permit.allowed if tool not in (self.allows_only or ()))
            yield from (_wrong("allows_only", permit, tool, "closed") for tool in extra)
        yield from (_wrong("asks", permit, tool, "asked about") for tool in self.asks if tool not in permit.asks)
        for tool, texts in self.denies.items():
            if tool not in permit.denied:
                yield _wrong("denies", permit, tool, "denied")
            else:
                yield from _unsaid(permit, tool, texts)
        yield from (_wrong("hides", permit, tool, "hidden") for tool in self.hides if tool not in permit.hidden)
        yield from (_wrong("withholds", permit, tool, "withheld") for tool in self.withholds if tool not in permit.withheld)
        yield from self._whole(permit)

    def _whole(self, permit: Permit) -> Iterator[Mismatch]:
        if self.forces is not None and (permit.forced or "") != self.forces:
            tool = self.forces or permit.forced or ""
            said = f"{permit.forced or 'nothing'} is forced, and {self.forces or 'nothing'} should be"
            yield Mismatch("forces", tool, said, because(permit, tool))
        if self.may_stop is not None and permit.may_stop is not self.may_stop:
            said = "the run may stop, and should not" if permit.may_stop else "the run may not stop, and should"
            yield Mismatch("may_stop", FINAL_ANSWER, said, because(permit, FINAL_ANSWER))
        if self.tool_choice is not None and permit.tool_choice != self.tool_choice:
            yield Mismatch("tool_choice", None, f"tool_choice is {permit.tool_choice}, and should be {self.tool_choice}")

    def _check_names(self, permit: Permit) -> None:
        named = (*self.allows, *(self.allows_only or ()), *self.asks, *self.denies, *self.hides, *self.withholds)
        for tool in (*named, *((self.forces,) if self.forces else ())):
            if tool not in permit.tools:
                raise PolicyError(f"there is no tool called {tool}{did_you_mean(tool, permit.tools)}")


def because(permit: Permit, tool: str) -> tuple[str, ...]:
    """The rules that spoke about a tool, one line each; a line that says so when none did."""
    lines = tuple(spoken_text(spoken) for spoken in permit.why(tool))
    return lines or (f"no rule speaks of {tool}",)


def spoken_text(spoken: Spoken) -> str:
    """One rule with its reason and its evidence."""
    rule = spoken.rule
    verbs = (
        ("denies", not rule.allowed and not rule.hidden),
        ("hides", rule.hidden),
        ("forces", rule.forced),
        ("asks about", bool(rule.ask)),
        ("narrows", bool(rule.arguments)),
    )
    done = [f"{verb} {rule.target}" for verb, on in verbs if on] + (["prevents the end"] if rule.prevent_stop else [])
    said = f"{spoken.requirement} {' and '.join(done) or f'lets {rule.target} be'}"
    reason = f": {rule.reason}" if rule.reason else ""
    evidence = f" ({spoken.evidence})" if spoken.evidence else ""
    return f"{said}{reason}{evidence}"


def _wrong(word: str, permit: Permit, tool: str, wanted: str) -> Mismatch:
    verdict = permit.verdict(tool)
    said = "allowed after a person's yes" if verdict is Verdict.ASK else verdict.word
    return Mismatch(word, tool, f"{tool} is {verdict.glyph} {said}, and should be {wanted}", because(permit, tool))


def _unsaid(permit: Permit, tool: str, texts: Iterable[str]) -> Iterator[Mismatch]:
    reasons = permit.reasons.get(tool, ())
    for text in texts:
        if not any(text in reason for reason in reasons):
            yield Mismatch("denies", tool, f"{tool} is denied, and no reason says {text!r}", because(permit, tool))


def expectation(
    *,
    allows: Any = (),
    allows_only: Any = None,
    asks: Any = (),
    denies: Any = (),
    hides: Any = (),
    withholds: Any = (),
    forces: Any = None,
    may_stop: bool | None = None,
    tool_choice: str | None = None,
) -> Expectation:
    """An expectation from what people write: a name or several; for `denies` also names with a text or several."""
    if isinstance(denies, Mapping):
        closed = {tool: () if texts is None else _names(texts) for tool, texts in denies.items()}
    else:
        closed = dict.fromkeys(_names(denies), ())
    return Expectation(
        allows=_names(allows),
        allows_only=None if allows_only is None else _names(allows_only),
        asks=_names(asks),
        denies=closed,
        hides=_names(hides),
        withholds=_names(withholds),
        forces=forces,
        may_stop=may_stop,
        tool_choice=tool_choice,
    )


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)

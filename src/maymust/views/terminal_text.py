"""What is printed of a run, line by line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from maymust.agent import events
from maymust.agent.call_record import PendingCall
from maymust.agent.events import RunEvent
from maymust.core.permit import Permit, Verdict
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.views.paint import Paint, clean, width

_STYLES = {Verdict.FORCED: "help", Verdict.ALLOWED: "good", Verdict.ASK: "warning", Verdict.DENIED: "bad"}
_CLOSED = (Verdict.DENIED, Verdict.HIDDEN)
_MARKS = {"ok": ("✓", "good"), "failed": ("✗", "bad"), "denied": ("✗", "warning"), "refused": ("⊘", "warning")}
_RUNGS = ("nudged", "asked again", "obligations relaxed")
_NAME = 40
_LEAST = 20


class RunText:
    """Turns the events of one run into lines. It remembers the last permit, of which only what changed is told."""

    KINDS: ClassVar[tuple[type[RunEvent], ...]]
    """The events that give lines."""

    def __init__(self, paint: Paint, columns: int) -> None:
        self._paint = paint
        self._columns = columns
        self._before: dict[str, tuple[Verdict, tuple[str, ...]]] = {}
        self._turns = self._tokens = 0

    def lines(self, event: RunEvent) -> list[str]:
        """What to print of an event; often nothing."""
        if isinstance(event, events.ModelCallFinished):
            self._tokens += event.reply.usage.total_tokens
        teller = _TELLERS.get(type(event))
        return [] if teller is None else list(teller(self, event))

    # --- turns ---
    def turn(self, event: events.TurnStarted) -> Iterator[str]:
        self._turns = event.number
        extra = " (obligations relaxed)" if event.relaxed else " (beyond the budget)" if event.grace else ""
        extra += f" (loop guard: {event.measure})" if event.measure else ""
        yield self._paint("bold", self.fit(f"turn {event.number}{extra}"))
        yield from self.permit(event.permit)

    def permit(self, permit: Permit) -> Iterator[str]:
        """The verdicts that are not as they were in the last turn."""
        now = {tool: (permit.verdict(tool), permit.reasons.get(tool, ())) for tool in permit.tools}
        changed = [tool for tool in permit.tools if now[tool] != self._before.get(tool)]
        gone = [tool for tool in self._before if tool not in now]
        self._before = now
        if not changed and not gone:
            return
        column = max((width(self.name(tool)) for tool in changed), default=0)
        for tool in changed:
            yield from self._verdict(permit, tool, column)
        if gone:
            yield self._paint("dim", self.fit(f"  - gone: {', '.join(map(clean, gone))}"))
        if changed and len(changed) < len(now):
            yield self._paint("dim", f"    {len(now) - len(changed)} as before")

    def _verdict(self, permit: Permit, tool: str, column: int) -> Iterator[str]:
        verdict = permit.verdict(tool)
        name = self.name(tool)
        head = f"  {verdict.glyph} {verdict.word:<8}  {name}{' ' * (column - width(name))}"
        said = list(dict.fromkeys(_why(permit, tool)))
        first = self.fit(f"  {said[0]}", width(head)) if said else ""
        yield f"{self._paint(_STYLES.get(verdict, 'dim'), head)}{first}".rstrip()
        indent = " " * (column + 16)
        for line in said[1:]:
            yield self.fit(f"{indent}{line}")

    # --- calls ---
    def finished(self, event: events.CallFinished) -> Iterator[str]:
        if event.tool == FINAL_ANSWER and event.outcome == "ok":
            return
        mark, style = _MARKS[event.outcome]
        word = "" if event.outcome == "ok" else f"{event.outcome}: "
        call = self.call(event.tool, event.arguments)
        yield f"  {self._paint(style, mark)} {call} {self._paint('dim', self.fit(word + event.text, width(call) + 5))}"

    def asked(self, event: events.QuestionAsked) -> Iterator[str]:
        call: PendingCall = event.call
        why = "; ".join(call.reasons) or ", ".join(call.requirements)
        text = f"{self.call(call.tool, call.arguments)} needs a person's yes{f': {why}' if why else ''}"
        yield f"  {self._paint('warning', '?')} {self.fit(text, 4)}"

    def answered(self, event: events.QuestionAnswered) -> Iterator[str]:
        who = event.by or "a person"
        yield self.note(f"{event.call.tool}: {who} said {'yes' if event.allow else 'no'}{f': {event.reason}' if event.reason else ''}")

    def ended(self, event: events.RunFinished) -> Iterator[str]:
        turns = f"{self._turns} turn{'' if self._turns == 1 else 's'}"
        tokens = f", {self._tokens:,} tokens" if self._tokens else ""
        yield self._paint("dim", self.fit(f"ended: {event.stop_reason} after {turns}{tokens}{f': {event.error}' if event.error else ''}"))

    # --- texts ---
    def note(self, text: str) -> str:
        """Something that happened besides."""
        return f"  {self._paint('note', 'note')}: {self.fit(text, 8)}"

    def call(self, tool: str, arguments: Mapping[str, Any] | None) -> str:
        """A call with its arguments, at most half a line."""
        said = json.dumps(arguments or {}, ensure_ascii=False, default=repr)[1:-1]
        return self.fit(f"{self.name(tool)}({said})", self._columns - self._columns // 2)

    def name(self, tool: str) -> str:
        """A tool's name, which may be anything when a model wrote it."""
        return _cut(tool, _NAME)

    def fit(self, text: str, taken: int = 0) -> str:
        """The text made safe, and cut to what is left of a line."""
        return _cut(text, max(self._columns - taken, _LEAST))


def _cut(text: str, columns: int) -> str:
    line = clean(text[: columns * 2 + 1])
    if width(line) <= columns and len(text) <= columns * 2 + 1:
        return line
    while width(line) > columns - 1:
        line = line[: -max((width(line) - columns) // 2, 1)]
    return f"{line}…"


def _why(permit: Permit, tool: str) -> Iterator[str]:
    """The reasons of a verdict, each with its rule and the facts of the history it rests on."""
    verdict = permit.verdict(tool)
    if verdict is Verdict.WITHHELD:
        yield f"{permit.forced} has to be called first"
        return
    for spoken in permit.why(tool):
        rule = spoken.rule
        if verdict is Verdict.FORCED and rule.forced:
            reason = rule.reason or "it has to be called now"
        elif verdict in _CLOSED and (not rule.allowed or rule.hidden or rule.prevent_stop):
            reason = rule.reason or "closed"
        elif verdict is Verdict.ASK and rule.ask:
            reason = "a person is asked"
        else:
            continue
        evidence = f" ({spoken.evidence})" if spoken.evidence and spoken.evidence not in reason else ""
        yield f"{reason} [{spoken.requirement}]{evidence}"


_TELLERS: dict[type[RunEvent], Callable[[RunText, Any], Iterator[str]]] = {
    events.TurnStarted: RunText.turn,
    events.CallFinished: RunText.finished,
    events.QuestionAsked: RunText.asked,
    events.QuestionAnswered: RunText.answered,
    events.RunFinished: RunText.ended,
}


def _noting(kind: type[RunEvent], text: Callable[[Any], str]) -> None:
    _TELLERS[kind] = lambda told, event: iter([told.note(text(event))])


_noting(events.LadderRung, lambda event: f"no usable reply, {_RUNGS[min(event.rung, len(_RUNGS)) - 1]}")
_noting(events.TextCoerced, lambda event: "a text was taken for the answer")
_noting(events.GuardHit, lambda event: f"loop guard: {event.tool}: {event.reason}")
_noting(events.ForceLapsed, lambda event: f"{event.tool} is not forced any more, {event.requirement} gave way")
_noting(events.ModelRetried, lambda event: f"the model was asked {event.retries + 1} times")
_noting(events.ModelCallFailed, lambda event: f"the model failed: {event.error}")
_noting(events.AbilityLost, lambda event: f"the provider takes no {event.ability}: {event.why}")
_noting(events.ConversationCompacted, lambda event: f"the conversation was shortened, from about {event.before} to {event.after} tokens")
_noting(events.MessageReceived, lambda event: f"said to the run: {event.text}")
_noting(events.AnswerWithdrawn, lambda event: f"the answer was not accepted: {event.reason}")
RunText.KINDS = (*_TELLERS, events.ModelCallFinished)

"""The spans of one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from opentelemetry.trace import Link, SpanContext

from maymust.agent import events
from maymust.agent.events import RunEvent
from maymust.agent.state import RunState
from maymust.models.chat_model import Usage
from maymust.telemetry import content, names
from maymust.telemetry.decisions import Value
from maymust.telemetry.model_calls import ModelCalls
from maymust.telemetry.scope import OpenSpan, Outlet, Scope, of_call, of_input, of_output, of_usage
from maymust.telemetry.tool_calls import ToolCalls


class RunSpans:
    """Turns the events of one run, from its start or its resumption to its end or pause, into spans."""

    KINDS: ClassVar[tuple[type[RunEvent], ...]]
    """The events that are needed. Pieces of texts are not among them, for whoever listens to those makes the model stream."""

    def __init__(
        self,
        outlet: Outlet,
        state: Callable[[], RunState | None],
        started: events.RunStarted,
        link: SpanContext | None,
        paused_at: float | None,
    ) -> None:
        self._scope = Scope(outlet, started.model, state)
        self._models, self._calls = ModelCalls(self._scope), ToolCalls(self._scope)
        self._asked: dict[str, float] = {}
        self.ended_at: float = 0.0
        here = state()
        self._used_before = here.usage if here is not None else Usage()
        self._run = self._scope.run = self._begin(started, link, here)
        if started.resumed and here is not None:
            self._tell_decisions(here, paused_at)

    @property
    def context(self) -> SpanContext:
        """The run's span."""
        return self._run.span.get_span_context()

    def tell(self, event: RunEvent) -> None:
        """Take note of an event."""
        teller = _TELLERS.get(type(event))
        if teller is not None:
            teller(self, event)

    # --- the run ---
    def _begin(self, started: events.RunStarted, link: SpanContext | None, state: RunState | None) -> OpenSpan:
        name = started.agent
        attributes: dict[str, Value] = {names.SPAN_KIND: "AGENT", names.RUN_ID: started.run_id}
        if name:
            attributes |= {names.AGENT_NAME: name, names.OI_AGENT_NAME: name}
        if started.resumed:
            attributes[names.RESUMED] = True
        if self._scope.outlet.content and state is not None:
            attributes |= of_input(content.input_messages(state.messages))
        links = () if link is None else (Link(link),)
        measured: dict[str, Value] = {names.AGENT_NAME: name} if name else {}
        return self._scope.begin("invoke_agent", name, attributes, measured=measured, links=links)

    def _tell_decisions(self, state: RunState, paused_at: float | None) -> None:
        """What a person said while the run was paused."""
        for record in state.calls:
            if record.status == "admitted" and record.approvals and not record.ran:
                last = record.approvals[-1]
                self._decided(record.name, record.call_id, last.allow, last.by)
                if paused_at is not None:
                    self._waited(record.name, last.allow, time.time() - paused_at)

    def _paused(self, event: events.RunPaused) -> None:
        self._scope.event(names.PAUSED, {names.PENDING: tuple(call.call_id for call in event.pending)})
        self._models.close("paused")
        self._calls.close("paused", None)
        self._end("paused")

    def _finished(self, event: events.RunFinished) -> None:
        fault = None
        if event.stop_reason == "error":
            # The state has the kind of error before its text.
            state = self._scope.state()
            kind = (state.error or "").partition(":")[0] if state is not None else ""
            fault = kind if kind.isidentifier() else "RunError"
        self._models.close(fault or "cancelled")
        self._calls.close("cancelled", fault or "cancelled")
        if self._scope.outlet.content and event.answer is not None:
            self._run.set(of_output(event.answer))
        self._end(event.stop_reason, fault, event.error)

    def _end(self, reason: str, fault: str | None = None, error: str | None = None) -> None:
        state = self._scope.state()
        self._run.set({names.STOP_REASON: reason, names.TURNS: self._models.turns})
        if state is not None:
            self._run.set(of_usage(_difference(state.usage, self._used_before)))
            if state.unmet:
                self._run.set({names.UNMET: state.unmet})
        self._scope.end(self._run, fault, error)
        self.ended_at = time.time()

    # --- questions ---
    def _question(self, event: events.QuestionAsked) -> None:
        if self._is_mine(event.call.call_id):
            self._asked[event.call.call_id] = time.perf_counter()
            rules: dict[str, Value] = {names.RULES: event.call.requirements} if event.call.requirements else {}
            self._scope.event(names.APPROVAL_ASKED, of_call(event.call.tool, event.call.call_id) | rules)

    def _answered(self, event: events.QuestionAnswered) -> None:
        asked = self._asked.pop(event.call.call_id, None)
        if asked is not None:
            self._decided(event.call.tool, event.call.call_id, event.allow, event.by)
            self._waited(event.call.tool, event.allow, time.perf_counter() - asked)

    def _is_mine(self, call_id: str) -> bool:
        """Whether a question is about a call of this run: those of child agents are told a second time, in the parent's words."""
        state = self._scope.state()
        return state is None or any(one.call_id == call_id for one in state.calls)

    def _decided(self, tool: str, call_id: str, allow: bool, by: str | None) -> None:
        said = {**of_call(tool, call_id), names.ALLOW: allow}
        self._scope.event(names.APPROVAL_GIVEN, {**said, names.BY: by} if by else said)

    def _waited(self, tool: str, allow: bool, seconds: float) -> None:
        self._scope.outlet.instruments.waited(max(seconds, 0.0), {names.TOOL_NAME: tool, names.ALLOW: allow})

    def note(self, name: str, attributes: Mapping[str, Value]) -> None:
        """Something that happened besides."""
        self._scope.event(name, attributes)


def _difference(now: Usage, before: Usage) -> Usage:
    return Usage(now.input_tokens - before.input_tokens, now.output_tokens - before.output_tokens, now.cached_tokens - before.cached_tokens)


_TELLERS: dict[type[RunEvent], Callable[[RunSpans, Any], None]] = {
    events.TurnStarted: lambda spans, event: spans._models.turn(event),
    events.ModelCallStarted: lambda spans, event: spans._models.started(event),
    events.ModelCallFinished: lambda spans, event: spans._models.finished(event),
    events.ModelCallFailed: lambda spans, event: spans._models.failed(event),
    events.ModelRetried: lambda spans, event: spans._models.retried(event),
    events.CallStarted: lambda spans, event: spans._calls.started(event),
    events.CallRefused: lambda spans, event: spans._calls.refused(event, spans._models.permit),
    events.CallFinished: lambda spans, event: spans._calls.finished(event),
    events.QuestionAsked: RunSpans._question,
    events.QuestionAnswered: RunSpans._answered,
    events.RunPaused: RunSpans._paused,
    events.RunFinished: RunSpans._finished,
}


def _noting(kind: type[RunEvent], name: str, attributes: Callable[[Any], Mapping[str, Value]]) -> None:
    _TELLERS[kind] = lambda spans, event: spans.note(name, attributes(event))


_noting(events.LadderRung, names.LADDER, lambda event: {names.RUNG: event.rung})
_noting(events.GuardHit, names.LOOP_GUARD, lambda event: {names.TOOL_NAME: event.tool, names.HITS: event.hits})
_noting(events.ForceLapsed, names.FORCE_LAPSED, lambda event: {names.TOOL_NAME: event.tool, names.RULES: (event.requirement,)})
_noting(events.TextCoerced, names.TEXT_COERCED, lambda event: {})
_noting(events.ToolsChanged, names.TOOLS_CHANGED, lambda event: {names.PRESENT: event.tools})
_noting(events.AbilityLost, names.ABILITY_LOST, lambda event: {names.ABILITY: event.ability})
_noting(events.ConversationCompacted, names.COMPACTED, lambda event: {names.BEFORE: event.before, names.AFTER: event.after})

RunSpans.KINDS = (events.RunStarted, *_TELLERS)

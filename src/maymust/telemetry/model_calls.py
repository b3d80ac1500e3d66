"""`chat` spans: a model call each, with the pass it was made under."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.trace import SpanKind

from maymust.agent import events
from maymust.core.permit import Permit
from maymust.telemetry import content, names
from maymust.telemetry.decisions import Value, node_attributes, permit_attributes
from maymust.telemetry.scope import OpenSpan, Scope, of_input, of_output, of_usage


class ModelCalls:
    """The model calls of one run."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._cause: events.ModelCallStarted | None = None
        self._open: OpenSpan | None = None
        self._retries = 0
        self.turns: int = 0
        self.permit: Permit | None = None

    def turn(self, event: events.TurnStarted) -> None:
        """A turn begins, under this pass."""
        self.permit = event.permit
        self.turns += 1
        if event.seconds is not None:
            self._scope.outlet.instruments.fold(event.seconds, {})

    def started(self, event: events.ModelCallStarted) -> None:
        """The model is asked."""
        scope = self._scope
        kind = SpanKind.INTERNAL if scope.provider == "local" else SpanKind.CLIENT
        attributes: dict[str, Value] = {names.SPAN_KIND: "LLM", names.OI_MODEL: scope.model, names.OI_PROVIDER: scope.provider}
        self._open = scope.begin("chat", scope.model, attributes | {names.TURN: event.number}, kind=kind)
        self._cause = event
        # Where it is found again does not depend on whether this span is sampled.
        node = self._node()
        if not self._open.span.is_recording():
            return
        if self.permit is not None:
            self._open.set({**permit_attributes(self.permit), **node})
        if scope.outlet.content:
            messages = content.input_messages(event.request.messages)
            self._open.set(of_input(messages) | {names.TOOL_DEFINITIONS: content.tool_definitions(event.request.tools)})
            system = content.system_instructions(event.request.messages)
            if system is not None:
                self._open.set({names.SYSTEM_INSTRUCTIONS: system})

    def _node(self) -> Mapping[str, Value]:
        scope = self._scope
        state = scope.state()
        if state is None or state.plan is None or self.permit is None:
            return {}
        before, scope.node = scope.node, scope.outlet.nodes.id_of(state.plan.policy, self.permit)
        return node_attributes(scope.node, self.permit, before)

    def finished(self, event: events.ModelCallFinished) -> None:
        """The model has replied, or a listener in its place."""
        chat, self._open = self._open, None
        if chat is None or self._cause is None:
            return
        reply, scope = event.reply, self._scope
        asked = self._cause.output is None
        chat.set(of_usage(reply.usage) | {names.FINISH_REASONS: (content.finish_reason(reply),)})
        chat.set({names.ENFORCED_BY: reply.enforced_by, names.LEVEL: reply.level} if asked else {names.MODEL_NOT_ASKED: True})
        if self._retries:
            chat.set({names.RETRIES: self._retries})
        self._retries = 0
        if scope.outlet.content:
            said = content.output_messages(reply)
            chat.set({names.OUTPUT_MESSAGES: said, **of_output(said, "application/json")})
        if asked:
            scope.outlet.instruments.tokens(reply.usage, {key: str(value) for key, value in chat.measured.items()})
        scope.end(chat, measured=asked)

    def failed(self, event: events.ModelCallFailed) -> None:
        """There is no reply."""
        chat, self._open = self._open, None
        if chat is None:
            return
        if event.attempts > 1:
            chat.set({names.RETRIES: event.attempts - 1})
        self._scope.end(chat, event.kind, event.error)

    def retried(self, event: events.ModelRetried) -> None:
        """It took more than one attempt."""
        self._retries = event.retries

    def close(self, fault: str) -> None:
        """The run is over while the model was at work."""
        chat, self._open = self._open, None
        if chat is None:
            return
        if self._cause is not None and self._cause.refusal is not None:
            # A listener refused it, so the model was never asked.
            chat.leave()
        else:
            self._scope.end(chat, fault)

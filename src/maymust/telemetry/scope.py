"""What belongs to one run's spans: where they go, what they share, and how one is begun and ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import Token
from dataclasses import dataclass

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode

from maymust.agent.state import RunState
from maymust.models.chat_model import Usage
from maymust.telemetry import names
from maymust.telemetry.decisions import Nodes, Value
from maymust.telemetry.instruments import Instruments


@dataclass(frozen=True, slots=True)
class Outlet:
    """What all runs of one `Telemetry` share."""

    tracer: trace.Tracer
    instruments: Instruments
    nodes: Nodes
    content: bool


class OpenSpan:
    """A span under way, current in the task that began it, so that what is traced inside becomes its child."""

    def __init__(self, span: Span, measured: Mapping[str, Value]) -> None:
        self.span: Span = span
        self.measured: Mapping[str, Value] = measured
        self._begun = time.perf_counter()
        self._task = asyncio.current_task()
        self._token: Token[Context] | None = contexts.attach(trace.set_span_in_context(span))

    def leave(self) -> float:
        """Be current no more; gives the seconds since the beginning. A span that is left and not ended is never told."""
        if self._token is not None and asyncio.current_task() is self._task:
            contexts.detach(self._token)
        self._token = None
        return time.perf_counter() - self._begun

    def set(self, attributes: Mapping[str, Value]) -> None:
        """Add attributes."""
        self.span.set_attributes(dict(attributes))


class Scope:
    """One run: its model, its state, and its span, of which the others are children."""

    def __init__(self, outlet: Outlet, model: str, state: Callable[[], RunState | None]) -> None:
        self.outlet: Outlet = outlet
        self.state: Callable[[], RunState | None] = state
        self.provider: str
        self.model: str
        self.provider, self.model = provider_and_model(model)
        self.node: str | None = None
        self.run: OpenSpan | None = None

    def common(self, operation: str) -> dict[str, Value]:
        """The attributes that every span and every measure has."""
        return {names.OPERATION: operation, names.PROVIDER: self.provider, names.REQUEST_MODEL: self.model}

    def begin(
        self,
        operation: str,
        about: str | None,
        attributes: Mapping[str, Value],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        measured: Mapping[str, Value] | None = None,
        links: Sequence[Link] = (),
    ) -> OpenSpan:
        """Begin a span, inside of the run's as soon as there is one. `measured` are attributes of its duration too."""
        common = self.common(operation)
        parent = None if self.run is None else trace.set_span_in_context(self.run.span)
        span = self.outlet.tracer.start_span(
            f"{operation} {about}" if about else operation, parent, kind=kind, attributes={**common, **attributes}, links=links
        )
        return OpenSpan(span, {**common, **(measured or {})})

    def end(self, one: OpenSpan, fault: str | None = None, error: str | None = None, *, measured: bool = True) -> None:
        """End a span, and note how long it took. `fault` is the kind of error it ended in, `error` what there is to say of it."""
        seconds = one.leave()
        if fault is not None:
            one.set({names.ERROR_TYPE: fault})
            one.span.set_status(Status(StatusCode.ERROR, error))
        one.span.end()
        if measured:
            told = {key: value for key, value in one.measured.items() if isinstance(value, str)}
            self.outlet.instruments.duration(seconds, told | ({names.ERROR_TYPE: fault} if fault is not None else {}))

    def event(self, name: str, attributes: Mapping[str, Value]) -> None:
        """Something that happened in the run and took no time."""
        if self.run is not None:
            self.run.span.add_event(name, dict(attributes))


def provider_and_model(name: str) -> tuple[str, str]:
    """The parts of "openai:gpt-5"; a name without a provider stands for both."""
    provider, _, model = name.removeprefix("pydantic-ai:").partition(":")
    return provider or "_OTHER", model or provider or "_OTHER"


def of_call(tool: str, call_id: str) -> dict[str, Value]:
    """Which call it is about."""
    return {names.TOOL_NAME: tool, names.TOOL_CALL_ID: call_id}


def of_usage(usage: Usage) -> dict[str, Value]:
    """Tokens; nothing where the model does not tell."""
    if not usage.total_tokens:
        return {}
    return {
        names.INPUT_TOKENS: usage.input_tokens,
        names.OUTPUT_TOKENS: usage.output_tokens,
        names.CACHED_TOKENS: usage.cached_tokens,
        names.OI_PROMPT_TOKENS: usage.input_tokens,
        names.OI_COMPLETION_TOKENS: usage.output_tokens,
        names.OI_TOTAL_TOKENS: usage.total_tokens,
    }


def of_input(messages: str) -> dict[str, Value]:
    """What was asked."""
    return {names.INPUT_MESSAGES: messages, names.OI_INPUT: messages, names.OI_INPUT_TYPE: "application/json"}


def of_output(text: str, kind: str = "text/plain") -> dict[str, Value]:
    """What came of it."""
    return {names.OI_OUTPUT: text, names.OI_OUTPUT_TYPE: kind}

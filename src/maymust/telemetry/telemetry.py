"""`Telemetry`: listen to runs, and tell OpenTelemetry what happens in them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, TypeVar

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanContext
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from maymust.agent import events
from maymust.agent.events import RunEvent
from maymust.agent.run import Run
from maymust.agent.state import RunState
from maymust.errors import PolicyError
from maymust.telemetry import content as contents
from maymust.telemetry import names
from maymust.telemetry.decisions import Nodes
from maymust.telemetry.instruments import Instruments
from maymust.telemetry.run_spans import RunSpans
from maymust.telemetry.scope import Outlet

R = TypeVar("R", bound="Run[Any]")
_REMEMBERED = 10_000
_ENDS = (events.RunFinished, events.RunPaused)


class Telemetry:
    """Spans and metrics of runs, by OpenTelemetry's GenAI conventions 1.41 and OpenInference. One object serves any number of runs.

    tracer_provider, meter_provider   where to; the global ones by default
    content                           whether messages, arguments and results go into the spans; None: as
                                      `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says (`true`, `span_only`, `span_and_event`).
                                      Secrets are masked in any case

    A run is an `invoke_agent` span, with a `chat` span a model call and an `execute_tool` span for each tool that ran; a child agent's run
    is inside the `execute_tool` span of its call. The pass of each turn is on its `chat` span as `maymust.permit.*`. A call that was not
    let through is an event of the run's span: what did not run has no span.

    Raises PolicyError for a switch in the environment that cannot be read.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        *,
        content: bool | None = None,
    ) -> None:
        tracer = trace.get_tracer(names.SCOPE, tracer_provider=tracer_provider, schema_url=names.SCHEMA_URL)
        meter = metrics.get_meter(names.SCOPE, meter_provider=meter_provider, schema_url=names.SCHEMA_URL)
        self._outlet = Outlet(tracer, Instruments(meter), Nodes(), contents.wanted(content))
        # Where runs that paused or ended were told last, for those that go on. The oldest are forgotten.
        self._last: OrderedDict[str, tuple[SpanContext, float]] = OrderedDict()

    def listen(self, run: R, *, resumes: str | None = None) -> R:
        """Tell of this run from now on; call it right after `agent.start(...)` or `agent.start_resume(...)`. Returns the run.

        resumes   the `traceparent` of the span to link to, for a run that goes on in another process than the one it paused in.
                  Where the same `Telemetry` has heard it pause, this is known

        Raises PolicyError for what is no `traceparent`.
        """
        watch = _Watch(self, run, None if resumes is None else _parsed(resumes))
        for kind in RunSpans.KINDS:
            run.on(kind, watch, children=True)
        return run

    def traceparent(self, run_id: str) -> str | None:
        """The last span of a run that paused or ended here, as W3C `traceparent`, to keep beside its state.

        None for a run that is not known, or still runs.
        """
        found = self._last.get(run_id)
        if found is None or not found[0].is_valid:
            return None
        span = found[0]
        return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"

    def _remember(self, run_id: str, span: SpanContext, at: float) -> None:
        self._last[run_id] = span, at
        self._last.move_to_end(run_id)
        while len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)


class _Watch:
    """One run that is listened to, with the runs of its child agents."""

    def __init__(self, telemetry: Telemetry, run: Run[Any], link: SpanContext | None) -> None:
        self._telemetry, self._run, self._link = telemetry, run, link
        self._spans: dict[str, RunSpans] = {}

    def __call__(self, event: RunEvent) -> None:
        telemetry, run_id = self._telemetry, event.run_id
        if isinstance(event, events.RunStarted):
            last = telemetry._last.pop(run_id, None)
            link = last[0] if last is not None else self._link if run_id == self._run.id else None
            paused_at = last[1] if last is not None else None
            self._spans[run_id] = RunSpans(telemetry._outlet, lambda: self._state(run_id), event, link, paused_at)
        spans = self._spans.get(run_id)
        if spans is None:
            return
        spans.tell(event)
        if isinstance(event, _ENDS):
            del self._spans[run_id]
            telemetry._remember(run_id, spans.context, spans.ended_at)

    def _state(self, run_id: str) -> RunState | None:
        return next((state for state in _with_children(self._run.state) if state.run_id == run_id), None)


def _with_children(state: RunState) -> Iterator[RunState]:
    yield state
    for child in state.children.values():
        yield from _with_children(child)


def _parsed(traceparent: str) -> SpanContext:
    context = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
    span = trace.get_current_span(context).get_span_context()
    if not span.is_valid:
        raise PolicyError(f"resumes={traceparent!r} is no W3C traceparent; give what telemetry.traceparent(run_id) gave, or leave it out")
    return span

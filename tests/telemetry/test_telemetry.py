"""Runs as OpenTelemetry tells them: real SDK, in-memory exporters."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import SpanKind, StatusCode
from pydantic import SecretStr

from maymust import (
    Agent,
    AskPermissionRequirement,
    Budget,
    ConditionalRequirement,
    Decision,
    FunctionInvocationContext,
    PolicyError,
    RunError,
    RunResult,
    RunState,
    tool,
)
from maymust.events import CallStarted, ModelCallStarted
from maymust.models import ScriptedModel, call, reply
from maymust.telemetry import Telemetry, names

SWITCH = names.CAPTURE_VARIABLE


class Sink:
    """Where spans and metrics end up."""

    def __init__(self, **settings: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.traces = TracerProvider(**settings)
        self.traces.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def telemetry(self, content: bool | None = None) -> Telemetry:
        return Telemetry(self.traces, self.meters, content=content)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def points(self, metric: str) -> list[tuple[dict[str, Any], float, int]]:
        data = self.reader.get_metrics_data()
        found: list[tuple[dict[str, Any], float, int]] = []
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for one in scope.metrics:
                    for point in one.data.data_points if one.name == metric else ():
                        if isinstance(point, HistogramDataPoint):
                            found.append((dict(point.attributes or {}), point.sum, point.count))
                        elif isinstance(point, NumberDataPoint):
                            found.append((dict(point.attributes or {}), point.value, 1))
        return found

    def text(self) -> str:
        """Everything that would leave."""
        data = self.reader.get_metrics_data()
        return "\n".join([*(span.to_json() for span in self.spans), data.to_json() if data is not None else ""])


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture(autouse=True)
def _no_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)


@pytest.fixture(autouse=True)
def _nothing_fails_unseen(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A listener that raises is only logged, and so is a context that is left in the wrong place."""
    yield
    for record in caplog.get_records("call"):
        assert not record.name.startswith("opentelemetry"), record.getMessage()
        assert "a listener to" not in record.getMessage()


def parent_of(span: ReadableSpan, spans: list[ReadableSpan]) -> str | None:
    if span.parent is None:
        return None
    return next((one.name for one in spans if one.context.span_id == span.parent.span_id), "?")


def events_of(span: ReadableSpan) -> list[tuple[str, dict[str, Any]]]:
    return [(event.name, dict(event.attributes or {})) for event in span.events]


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def told(sink: Sink, agent: Agent[Any], content: bool | None = None, hook: Callable[[Any], None] | None = None) -> RunResult[Any]:
    async def main() -> RunResult[Any]:
        run = sink.telemetry(content).listen(agent.start("How far is it?"))
        if hook is not None:
            hook(run)
        return await run

    return asyncio.run(main())


@tool
async def look(town: str) -> str:
    """Look up a town."""
    await asyncio.sleep(0)
    return f"{town} is far"


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("the well is dry")


AFTER = ConditionalRequirement("pay", only_after=["look"])


def guide(turns: list[Any], **settings: Any) -> Agent[Any]:
    return Agent(
        ScriptedModel(turns, name="openai:gpt-5"), name="guide", **{"tools": [look, pay, fail], "requirements": [AFTER], **settings}
    )


# --- the shape ---


def test_a_run_is_a_tree_of_spans(sink: Sink) -> None:
    told(sink, guide([reply(call("look", town="Delft"), tokens=12), call("final_answer", answer="far")]))
    assert [(span.name, parent_of(span, sink.spans)) for span in sink.spans] == [
        ("chat gpt-5", "invoke_agent guide"),
        ("execute_tool look", "invoke_agent guide"),
        ("chat gpt-5", "invoke_agent guide"),
        ("invoke_agent guide", None),
    ]
    agent, chat, used = sink.one("invoke_agent guide"), sink.named("chat gpt-5")[0], sink.one("execute_tool look")
    assert (agent.kind, chat.kind, used.kind) == (SpanKind.INTERNAL, SpanKind.CLIENT, SpanKind.INTERNAL)
    assert all(span.status.status_code is StatusCode.UNSET for span in sink.spans)
    assert said(agent)["gen_ai.agent.name"] == "guide"
    assert said(agent)["maymust.run.stop_reason"] == "final_answer"
    assert said(agent)["gen_ai.usage.input_tokens"] + said(agent)["gen_ai.usage.output_tokens"] == 12
    assert said(chat)["gen_ai.operation.name"] == "chat"
    assert (said(chat)["gen_ai.provider.name"], said(chat)["gen_ai.request.model"]) == ("openai", "gpt-5")
    assert said(chat)["gen_ai.response.finish_reasons"] == ("tool_call",)
    assert said(used)["gen_ai.tool.name"] == "look"
    assert said(used)["gen_ai.tool.description"] == "Look up a town."
    assert said(used)["maymust.call.outcome"] == "ok"
    kinds = [said(span)["openinference.span.kind"] for span in (agent, chat, used)]
    assert kinds == ["AGENT", "LLM", "TOOL"]
    assert agent.instrumentation_scope is not None
    assert agent.instrumentation_scope.schema_url == "https://opentelemetry.io/schemas/1.41.0"


def test_names_are_those_of_the_conventions() -> None:
    modules = (gen_ai_attributes, gen_ai_metrics, error_attributes)
    standard = {value for module in modules for value in vars(module).values() if isinstance(value, str)}
    ours = {value for value in vars(names).values() if isinstance(value, str) and value.startswith(("gen_ai.", "error."))}
    assert len(ours) > 20
    assert ours <= standard


def test_the_pass_of_each_turn_is_on_its_model_call(sink: Sink) -> None:
    told(sink, guide([call("look", town="Delft"), call("pay", amount=3), call("final_answer", answer="x")]))
    first, second, _ = (said(span) for span in sink.named("chat gpt-5"))
    assert first["maymust.permit.allowed"] == ("look", "fail", "final_answer")
    assert first["maymust.permit.denied"] == ("pay",)
    assert first["maymust.permit.reasons"] == ("pay: look has to succeed first",)
    assert first["maymust.permit.rules"] == ("conditional:pay",)
    assert (first["maymust.permit.tool_choice"], first["maymust.permit.may_stop"]) == ("required", True)
    assert first["maymust.permit.enforced_by"] == "maymust"
    assert "maymust.permit.denied" not in second
    assert [first["maymust.turn"], second["maymust.turn"]] == [1, 2]


def test_a_forced_tool_and_what_is_owed_are_told(sink: Sink) -> None:
    think = ConditionalRequirement("look", force_at_step=1, min_invocations=1)
    told(sink, guide([call("look", town="x"), call("final_answer", answer="x")], requirements=[think]))
    first, second = (said(span) for span in sink.named("chat gpt-5"))
    assert (first["maymust.permit.forced"], first["maymust.permit.tool_choice"]) == ("look", "look")
    assert first["maymust.permit.withheld"] == ("pay", "fail")
    assert first["maymust.permit.owed"] == ("conditional:look",)
    assert first["graph.node.name"] == "must look"
    assert "maymust.permit.forced" not in second


def test_the_graphs_node_is_the_state_of_the_automaton(sink: Sink) -> None:
    told(sink, guide([call("look", town="x"), call("look", town="y"), call("final_answer", answer="x")]))
    told(sink, guide([call("look", town="z"), call("final_answer", answer="x")]))
    one, two, three, again, after = (said(span) for span in sink.named("chat gpt-5"))
    assert one["graph.node.id"] != two["graph.node.id"] == three["graph.node.id"]
    assert (again["graph.node.id"], after["graph.node.id"]) == (one["graph.node.id"], two["graph.node.id"])
    assert "graph.node.parent_id" not in one
    assert two["graph.node.parent_id"] == one["graph.node.id"]
    assert "graph.node.parent_id" not in three
    assert said(sink.named("execute_tool look")[0])["graph.node.id"] == one["graph.node.id"]


def test_the_surrounding_span_is_the_parent_and_ones_own_spans_fall_inside(sink: Sink) -> None:
    tracer = sink.traces.get_tracer("app")

    @tool
    def inner() -> str:
        """Trace something of its own, in a thread."""
        with tracer.start_as_current_span("query"):
            return "x"

    async def main() -> None:
        agent = guide([call("inner"), call("final_answer", answer="x")], tools=[inner], requirements=[])
        with tracer.start_as_current_span("request") as around:
            run = sink.telemetry().listen(agent.start("go"))
            await run
            assert trace.get_current_span() is around
        assert not trace.get_current_span().get_span_context().is_valid

    asyncio.run(main())
    parents = {span.name: parent_of(span, sink.spans) for span in sink.spans}
    assert parents["invoke_agent guide"] == "request"
    assert parents["query"] == "execute_tool inner"


# --- what is not let through ---


def test_a_refused_call_is_an_event_and_has_no_span(sink: Sink) -> None:
    told(sink, guide([[call("pay", amount=3), call("nope")], call("final_answer", answer="x")]))
    assert not [span for span in sink.spans if span.name.startswith("execute_tool")]
    assert events_of(sink.one("invoke_agent guide")) == [
        (
            "maymust.call.refused",
            {"gen_ai.tool.name": "pay", "gen_ai.tool.call.id": "c1", "maymust.permit.reasons": ("look has to succeed first",)},
        ),
        ("maymust.call.refused", {"gen_ai.tool.name": "nope", "gen_ai.tool.call.id": "c2"}),
    ]
    refused = sorted((attributes["gen_ai.tool.name"], value) for attributes, value, _ in sink.points("maymust.calls.refused"))
    assert refused == [("_OTHER", 1), ("pay", 1)]


def test_what_a_listener_or_middleware_refuses_or_answers_has_no_span(sink: Sink) -> None:
    async def gatekeeper(event: CallStarted) -> None:
        if event.tool == "look":
            event.output = "from the cache"
        elif event.tool == "pay":
            event.refuse("closed today")

    async def cache(ctx: FunctionInvocationContext, call_next: Any) -> None:
        if ctx.name == "fail":
            ctx.answer("no need")
        else:
            await call_next()

    turns = [call("look", town="x"), call("pay", amount=1), call("fail"), call("final_answer", answer="x")]
    told(sink, guide(turns, middleware=[cache]), hook=lambda run: run.on(CallStarted, gatekeeper, blocking=True))
    assert not [span for span in sink.spans if span.name.startswith("execute_tool")]
    kinds = [(name, attributes["gen_ai.tool.name"]) for name, attributes in events_of(sink.one("invoke_agent guide"))]
    assert kinds == [("maymust.call.answered", "look"), ("maymust.call.refused", "pay"), ("maymust.call.answered", "fail")]


def test_a_model_call_answered_by_a_listener_says_so_and_is_not_counted(sink: Sink) -> None:
    async def cached(event: ModelCallStarted) -> None:
        event.output = "from the cache"

    told(sink, guide([]), hook=lambda run: run.on(ModelCallStarted, cached, blocking=True))
    assert said(sink.one("chat gpt-5"))["maymust.model_not_asked"] is True
    assert {attributes["gen_ai.operation.name"] for attributes, _, _ in sink.points("gen_ai.client.operation.duration")} == {"invoke_agent"}


def test_invalid_arguments_are_an_event(sink: Sink) -> None:
    told(sink, guide([call("look", town=3), call("final_answer", answer="x")]))
    assert [name for name, _ in events_of(sink.one("invoke_agent guide"))] == ["maymust.call.failed"]
    assert not sink.named("execute_tool look")


# --- errors and ends ---


def test_a_failed_tool_is_an_error_of_its_span_only(sink: Sink) -> None:
    told(sink, guide([call("fail"), call("final_answer", answer="x")]))
    failed = sink.one("execute_tool fail")
    assert (failed.status.status_code, said(failed)["error.type"]) == (StatusCode.ERROR, "failed")
    assert failed.status.description is None
    assert sink.one("invoke_agent guide").status.status_code is StatusCode.UNSET


def test_a_tool_that_middleware_tries_again_has_a_span_each_time(sink: Sink) -> None:
    tries: list[int] = []

    @tool
    def shaky() -> str:
        """Work the second time."""
        tries.append(1)
        if len(tries) == 1:
            raise OSError("once")
        return "x"

    async def retry(ctx: FunctionInvocationContext, call_next: Any) -> None:
        try:
            await call_next()
        except OSError:
            await call_next()

    told(sink, guide([call("shaky"), call("final_answer", answer="x")], tools=[shaky], requirements=[], middleware=[retry]))
    assert [said(span)["maymust.call.outcome"] for span in sink.named("execute_tool shaky")] == ["failed", "ok"]


def test_a_model_that_breaks_ends_the_spans_in_error(sink: Sink) -> None:
    with pytest.raises(RunError):
        told(sink, guide([call("look", town="x")]))
    last, agent = sink.named("chat gpt-5")[-1], sink.one("invoke_agent guide")
    assert (last.status.status_code, agent.status.status_code) == (StatusCode.ERROR, StatusCode.ERROR)
    assert said(agent)["error.type"] == "RunError"
    assert agent.status.description is not None
    assert "script" in agent.status.description
    assert {a["error.type"] for a, _, _ in sink.points("gen_ai.client.operation.duration") if "error.type" in a} == {"RunError"}


def test_a_model_call_that_is_refused_has_no_span(sink: Sink) -> None:
    async def never(event: ModelCallStarted) -> None:
        event.refuse("no money left")

    with pytest.raises(RunError, match="no money left"):
        told(sink, guide([]), hook=lambda run: run.on(ModelCallStarted, never, blocking=True))
    assert [span.name for span in sink.spans] == ["invoke_agent guide"]


def test_a_cancelled_run_ends_all_its_spans(sink: Sink) -> None:
    @tool
    async def wait() -> str:
        """Wait."""
        await asyncio.sleep(60)
        return "x"

    async def main() -> None:
        agent = guide([[call("wait"), call("wait")]], tools=[wait], requirements=[])
        run = sink.telemetry().listen(agent.start("go"))
        begun: list[str] = []
        run.on(CallStarted, lambda event: begun.append(event.call_id))
        while len(begun) < 2:
            await asyncio.sleep(0)
        run.cancel()
        assert (await run).stop_reason == "aborted"

    asyncio.run(main())
    waits, agent = sink.named("execute_tool wait"), sink.one("invoke_agent guide")
    assert [span.status.status_code for span in waits] == [StatusCode.ERROR] * 2
    assert (said(agent)["maymust.run.stop_reason"], agent.status.status_code) == ("aborted", StatusCode.UNSET)


def test_a_run_cancelled_before_it_began_leaves_nothing(sink: Sink) -> None:
    async def main() -> None:
        run = sink.telemetry().listen(guide(["x"]).start("go"))
        run.cancel()
        await run

    asyncio.run(main())
    assert sink.spans == []


def test_what_was_owed_and_how_the_model_was_brought_round_is_told(sink: Sink) -> None:
    owed = ConditionalRequirement("look", min_invocations=1)
    told(sink, guide(["no", "no", "no", "no"], requirements=[owed], budget=Budget(turns=6)))
    agent = sink.one("invoke_agent guide")
    assert said(agent)["maymust.run.unmet"] == ("conditional:look",)
    assert [attributes["maymust.ladder.rung"] for name, attributes in events_of(agent) if name == "maymust.ladder"] == [1, 2, 3]


# --- parallel, nested, paused, two at once ---


def test_parallel_tools_are_siblings(sink: Sink) -> None:
    tracer = sink.traces.get_tracer("app")
    both = asyncio.Event()
    there: list[str] = []

    @tool
    async def meet(name: str) -> str:
        """Wait for the other."""
        there.append(name)
        if len(there) == 2:
            both.set()
        await both.wait()
        with tracer.start_as_current_span(f"inside {name}"):
            return name

    told(sink, guide([[call("meet", name="a"), call("meet", name="b")], call("final_answer", answer="x")], tools=[meet], requirements=[]))
    meets = sink.named("execute_tool meet")
    assert [parent_of(span, sink.spans) for span in meets] == ["invoke_agent guide"] * 2
    by_id = {said(span)["gen_ai.tool.call.id"]: span.context.span_id for span in meets}
    inside = {span.name[-1]: span.parent.span_id for span in sink.spans if span.name.startswith("inside") and span.parent is not None}
    assert inside == {"a": by_id["c1"], "b": by_id["c2"]}


def test_a_child_agents_run_is_inside_the_call(sink: Sink) -> None:
    child = Agent(
        ScriptedModel([call("look", town="x"), "found"], name="anthropic:claude"), name="scout", description="Looks.", tools=[look]
    )
    told(sink, guide([call("scout", task="look", call_id="s"), call("final_answer", answer="x")], tools=[child.as_tool()], requirements=[]))
    parents = [(span.name, parent_of(span, sink.spans)) for span in sink.spans]
    assert parents == [
        ("chat gpt-5", "invoke_agent guide"),
        ("chat claude", "invoke_agent scout"),
        ("execute_tool look", "invoke_agent scout"),
        ("chat claude", "invoke_agent scout"),
        ("invoke_agent scout", "execute_tool scout"),
        ("execute_tool scout", "invoke_agent guide"),
        ("chat gpt-5", "invoke_agent guide"),
        ("invoke_agent guide", None),
    ]
    assert said(sink.one("invoke_agent scout"))["maymust.run.id"].endswith("/s")
    assert said(sink.named("chat claude")[0])["graph.node.id"] is not None


def asking(handler: Any = None) -> Agent[Any]:
    return guide([call("pay", amount=3), call("final_answer", answer="x")], requirements=[AskPermissionRequirement("pay", handler=handler)])


def test_a_pause_ends_the_span_and_the_resumed_run_links_to_it(sink: Sink) -> None:
    async def main() -> None:
        telemetry, agent = sink.telemetry(), asking()
        paused = await telemetry.listen(agent.start("go"))
        assert paused.stop_reason == "paused"
        assert telemetry.traceparent(paused.state.run_id) is not None
        await telemetry.listen(agent.start_resume(paused, {"c1": Decision(True, by="ann")}))

    asyncio.run(main())
    first, second = sink.named("invoke_agent guide")
    assert said(first)["maymust.run.stop_reason"] == "paused"
    assert events_of(first)[-1] == ("maymust.paused", {"maymust.run.pending": ("c1",)})
    assert said(second)["maymust.run.resumed"] is True
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    given = dict(events_of(second))["maymust.approval.given"]
    assert given == {"gen_ai.tool.name": "pay", "gen_ai.tool.call.id": "c1", "maymust.approval.allow": True, "maymust.approval.by": "ann"}
    (attributes, _, count), *more = sink.points("maymust.approval.wait.duration")
    assert (attributes, count, more) == ({"gen_ai.tool.name": "pay", "maymust.approval.allow": True}, 1, [])
    assert parent_of(sink.one("execute_tool pay"), [second]) == "invoke_agent guide"


def test_a_run_resumed_elsewhere_links_by_traceparent(sink: Sink) -> None:
    async def main() -> str | None:
        here, agent = sink.telemetry(), asking()
        paused = await here.listen(agent.start("go"))
        text = paused.state.to_json()
        traceparent = here.traceparent(paused.state.run_id)
        there = sink.telemetry()
        await there.listen(agent.start_resume(RunState.from_json(text), {"c1": False}), resumes=traceparent)
        return traceparent

    traceparent = asyncio.run(main())
    first, second = sink.named("invoke_agent guide")
    assert traceparent == f"00-{first.context.trace_id:032x}-{first.context.span_id:016x}-{first.context.trace_flags:02x}"
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    assert [name for name, _ in events_of(second)] == ["maymust.approval.given", "maymust.call.denied"]
    assert not sink.named("execute_tool pay")


def test_a_child_that_pauses_is_told_in_its_own_words(sink: Sink) -> None:
    async def main() -> None:
        child = Agent(
            ScriptedModel([call("pay", amount=3, call_id="p"), "paid"]),
            name="clerk",
            description="Pays.",
            tools=[pay],
            requirements=[AskPermissionRequirement("pay")],
        )
        agent = guide([call("clerk", task="pay", call_id="k"), call("final_answer", answer="x")], tools=[child.as_tool()], requirements=[])
        telemetry = sink.telemetry()
        paused = await telemetry.listen(agent.start("go"))
        await telemetry.listen(agent.start_resume(paused, {"k/p": True}))

    asyncio.run(main())
    first, second = sink.named("invoke_agent clerk")
    assert [name for name, _ in events_of(first)] == ["maymust.approval.asked", "maymust.paused"]
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    assert [said(span)["maymust.call.outcome"] for span in sink.named("execute_tool clerk")] == ["paused", "ok"]
    assert [span.status.status_code for span in sink.named("execute_tool clerk")] == [StatusCode.UNSET] * 2
    for agent_span in sink.named("invoke_agent guide"):
        assert not [name for name, _ in events_of(agent_span) if name == "maymust.approval.asked"]


def test_a_handlers_answer_is_timed(sink: Sink) -> None:
    async def think(_: Any) -> bool:
        await asyncio.sleep(0.02)
        return True

    told(sink, asking(think))
    ((_, seconds, count),) = sink.points("maymust.approval.wait.duration")
    assert count == 1
    assert seconds >= 0.02
    assert [name for name, _ in events_of(sink.one("invoke_agent guide"))] == ["maymust.approval.asked", "maymust.approval.given"]


def test_two_runs_at_once_keep_apart(sink: Sink) -> None:
    async def main() -> None:
        telemetry = sink.telemetry()
        turns = [call("look", town="x"), call("look", town="y"), call("final_answer", answer="x")]
        agents = [Agent(ScriptedModel(turns), name=f"agent{number}", tools=[look]) for number in range(5)]
        await asyncio.gather(*(telemetry.listen(agent.start("go")) for agent in agents))

    asyncio.run(main())
    for number in range(5):
        agent = sink.one(f"invoke_agent agent{number}")
        inside = [span for span in sink.spans if span.parent is not None and span.parent.span_id == agent.context.span_id]
        assert len(inside) == 5
        assert {span.context.trace_id for span in inside} == {agent.context.trace_id}


# --- metrics ---


def test_tokens_and_durations_are_measured(sink: Sink) -> None:
    told(sink, guide([reply(call("look", town="x"), tokens=7), call("final_answer", answer="x")]))
    tokens = {attributes["gen_ai.token.type"]: value for attributes, value, _ in sink.points("gen_ai.client.token.usage")}
    assert set(tokens) == {"input", "output"}
    assert sum(tokens.values()) == 7
    counts = {attributes["gen_ai.operation.name"]: count for attributes, _, count in sink.points("gen_ai.client.operation.duration")}
    assert counts == {"chat": 2, "execute_tool": 1, "invoke_agent": 1}


def test_the_time_of_the_fold_is_measured_from_the_second_turn_on(sink: Sink) -> None:
    told(sink, guide([call("look", town="x"), call("look", town="y"), call("final_answer", answer="x")]))
    ((_, seconds, count),) = sink.points("maymust.permit.fold.duration")
    assert count == 2
    assert 0 < seconds < 0.5


# --- content ---

SAID = ("How far is it?", "Delft", "is far", "far away")


def content_run(sink: Sink, content: bool | None = None) -> None:
    told(sink, guide([call("look", town="Delft"), call("final_answer", answer="far away")]), content)


def test_content_stays_here_unless_it_is_asked_for(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    content_run(sink)
    for word in ("false", "EVENT_ONLY", "no_content", " "):
        monkeypatch.setenv(SWITCH, word)
        content_run(sink)
    assert len(sink.named("invoke_agent guide")) == 5
    assert not [text for text in SAID if text in sink.text()]


@pytest.mark.parametrize("word", ["true", "SPAN_ONLY", "span_and_event"])
def test_the_standard_switch_lets_content_out(sink: Sink, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv(SWITCH, word)
    content_run(sink)
    first, second = (said(span) for span in sink.named("chat gpt-5"))
    assert json.loads(first["gen_ai.input.messages"])[0] == {"role": "user", "parts": [{"type": "text", "content": "How far is it?"}]}
    assert json.loads(first["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": {"town": "Delft"}}],
            "finish_reason": "tool_call",
        }
    ]
    responses = [part for message in json.loads(second["gen_ai.input.messages"]) for part in message["parts"] if "response" in part]
    assert responses == [{"type": "tool_call_response", "id": "c1", "response": "Delft is far"}]
    assert "You work in steps" in json.loads(first["gen_ai.system_instructions"])[0]["content"]
    assert [one["name"] for one in json.loads(first["gen_ai.tool.definitions"])] == ["look", "pay", "fail", "final_answer"]
    used = said(sink.one("execute_tool look"))
    assert (json.loads(used["gen_ai.tool.call.arguments"]), used["gen_ai.tool.call.result"]) == ({"town": "Delft"}, "Delft is far")
    assert said(sink.one("invoke_agent guide"))["output.value"] == "far away"


def test_what_is_said_in_code_counts_more_than_the_switch(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "true")
    content_run(sink, content=False)
    assert "Delft" not in sink.text()
    monkeypatch.setenv(SWITCH, "")
    content_run(sink, content=True)
    assert "Delft" in sink.text()


def test_a_switch_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "yes please")
    with pytest.raises(PolicyError, match=r"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT='yes please'"):
        Telemetry()


def test_secrets_are_masked_even_then(sink: Sink) -> None:
    @tool
    def log_in(user: str, password: SecretStr) -> str:
        """Log in."""
        return f"{user} with {password.get_secret_value()}"

    turns = [call("log_in", user="ann", password="correct horse"), call("final_answer", answer="in")]
    told(sink, guide(turns, tools=[log_in], requirements=[]), content=True)
    assert "ann" in sink.text()
    assert "correct horse" not in sink.text()


# --- robustness ---


def test_spans_that_are_not_sampled_cost_no_metrics() -> None:
    sink = Sink(sampler=ALWAYS_OFF)
    told(sink, guide([call("look", town="x"), call("pay", amount=1), call("final_answer", answer="x")]))
    assert sink.spans == []
    assert {attributes["gen_ai.operation.name"] for attributes, _, _ in sink.points("gen_ai.client.operation.duration")} == {
        "chat",
        "execute_tool",
        "invoke_agent",
    }


def test_without_providers_nothing_happens(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        telemetry = Telemetry()
        run = telemetry.listen(guide([call("look", town="x"), call("final_answer", answer="x")]).start("go"))
        result = await run
        assert telemetry.traceparent(run.id) is None
        assert result.answer == "x"

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert not caplog.records


def test_odd_replies_and_texts_are_told_as_they_are(sink: Sink) -> None:
    turns = [[call("look", town="\ud800"), call("pay", amount=1)], call("fail"), "", "x"]
    told(sink, guide(turns), content=True)
    assert len(sink.named("chat gpt-5")) == 4


def test_listening_does_not_make_the_model_stream(sink: Sink) -> None:
    class Model(ScriptedModel):
        streamed = 0

        def stream(self, request: Any) -> Any:
            self.streamed += 1
            return super().stream(request)

    model = Model([call("look", town="x"), call("final_answer", answer="x")])
    told(sink, Agent(model, tools=[look]))
    assert model.streamed == 0
    assert len(sink.named("chat scripted")) == 2


def test_leaving_the_iteration_ends_the_spans(sink: Sink) -> None:
    async def main() -> None:
        run = sink.telemetry().listen(guide([call("look", town="x"), call("final_answer", answer="x")]).start("go"))
        async for event in run:
            if isinstance(event, CallStarted):
                break
        await run

    asyncio.run(main())
    assert said(sink.one("invoke_agent guide"))["maymust.run.stop_reason"] == "aborted"
    assert said(sink.one("execute_tool look"))["error.type"] == "cancelled"


def test_child_agents_side_by_side_keep_apart(sink: Sink) -> None:
    def scout(name: str) -> Any:
        turns: list[Any] = [call("look", town=name), "found"]
        return Agent(ScriptedModel(turns), name=name, description="Looks.", tools=[look]).as_tool()

    both = [call("north", task="look", call_id="n"), call("south", task="look", call_id="s")]
    told(sink, guide([both, call("final_answer", answer="x")], tools=[scout("north"), scout("south")], requirements=[]))
    for name in ("north", "south"):
        assert parent_of(sink.one(f"invoke_agent {name}"), sink.spans) == f"execute_tool {name}"
        child = sink.one(f"invoke_agent {name}").context.span_id
        inside = [span.name for span in sink.spans if span.parent is not None and span.parent.span_id == child]
        assert inside == ["chat scripted", "execute_tool look", "chat scripted"]


def test_middleware_may_call_the_tool_in_a_task_of_its_own(sink: Sink) -> None:
    async def patient(ctx: FunctionInvocationContext, call_next: Any) -> None:
        await asyncio.wait_for(call_next(), 5)

    told(sink, guide([call("look", town="x"), call("look", town="y"), call("final_answer", answer="x")], middleware=[patient]))
    assert [parent_of(span, sink.spans) for span in sink.named("execute_tool look")] == ["invoke_agent guide"] * 2
    assert [parent_of(span, sink.spans) for span in sink.named("chat gpt-5")] == ["invoke_agent guide"] * 3


def test_a_traceparent_that_is_none_is_an_error(sink: Sink) -> None:
    async def main() -> None:
        run = guide(["x"]).start("go")
        with pytest.raises(PolicyError, match="'nonsense' is no W3C traceparent"):
            sink.telemetry().listen(run, resumes="nonsense")
        await run

    asyncio.run(main())

"""A trace tells what a run was: written as it goes, whole after a crash, and without secrets."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from maymust import Agent, AskPermissionRequirement, ConditionalRequirement, FunctionInvocationContext, Outcome, RunResult, RunState, tool
from maymust.events import CallFinished, RunEvent, RunFinished, TextDelta, TurnStarted
from maymust.models import ScriptedModel, call
from maymust.trace import (
    ChildRun,
    TraceError,
    TraceStarted,
    TraceWriter,
    UnknownRecord,
    compare_runs,
    read_trace,
    recording_of,
    replay,
    write_trace,
)

HEAD = b'{"trace":1,"at":1,"run":"r","kind":"TraceStarted","data":{}}\n'
HOSTILE = "\x1b[2J\u202e\ud800\u2028\r\n\x00end"


@tool
def look(order: int) -> str:
    """Look an order up."""
    return f"order {order}"


@tool
def refund(order: int, amount: int) -> str:
    """Pay back."""
    return "paid"


RULES = [
    ConditionalRequirement("refund", only_after=["look"], max_invocations=1),
    ConditionalRequirement("final_answer", only_after=["look"]),
]
SCRIPT: list[Any] = [
    call("refund", order=1, amount=2),
    [call("look", order=1), call("look", order=2)],
    [call("refund", order=1, amount=2), call("refund", order=2, amount=2)],
    call("final_answer", answer="Done."),
]


def desk(script: list[Any] = SCRIPT, rules: list[Any] = RULES, tools: Any = (look, refund), **more: Any) -> Agent[Any]:
    return Agent(ScriptedModel(script), tools=list(tools), requirements=rules, **more)


def traced(agent: Agent[Any], path: Path, **more: Any) -> RunResult[Any]:
    async def main() -> RunResult[Any]:
        run = agent.start("Please.", **more)
        write_trace(run, path)
        return await run

    return asyncio.run(main())


def test_a_trace_tells_the_same_as_the_state(tmp_path: Path) -> None:
    result = traced(desk(), tmp_path / "t.jsonl")
    trace = read_trace(tmp_path / "t.jsonl")
    assert isinstance(trace.events[0], TraceStarted)
    assert isinstance(trace.events[-1], RunFinished)
    assert (trace.start.input, trace.torn) == ("Please.", False)
    run = recording_of(trace)
    assert run.steps == result.steps
    assert tuple(turn.permit for turn in run.turns) == result.permits
    assert [turn.first_step for turn in run.turns] == [turn.first_step for turn in result.turns]
    assert (run.stop_reason, run.answer, run.policy) == ("final_answer", "Done.", result.state.policy)
    assert compare_runs(run, recording_of(RunState.from_json(result.state.to_json()))) == ()


def test_a_mere_listener_writes_what_events_tell(tmp_path: Path) -> None:
    async def main() -> RunResult[Any]:
        run = desk().start("Please.")
        run.on(RunEvent, TraceWriter(tmp_path / "t.jsonl", deltas=True))
        return await run

    result = asyncio.run(main())
    trace = read_trace(tmp_path / "t.jsonl")
    assert recording_of(trace).steps == result.steps
    assert trace.start.policy is None


def test_writing_does_not_make_the_model_stream(tmp_path: Path) -> None:
    traced(desk(["Hello."], [], ()), tmp_path / "t.jsonl")
    assert not any(isinstance(event, TextDelta) for event in read_trace(tmp_path / "t.jsonl").events)


def test_each_line_is_there_as_soon_as_it_happened(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    seen: list[int] = []

    @tool
    def peek() -> str:
        """Peek."""
        trace = read_trace(path)
        seen.append(len([event for event in trace.events if isinstance(event, TurnStarted)]))
        return "seen"

    traced(desk([call("peek"), call("peek"), call("final_answer", answer="x")], [], [peek]), path)
    assert seen == [1, 2]


def test_a_torn_last_line_is_left_out_wherever_it_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    traced(desk(), path)
    content = path.read_bytes()
    lines = content.split(b"\n")
    whole = len(read_trace(path).records)
    for cut in range(len(content) - len(lines[-2]), len(content) - 1, 17):
        path.write_bytes(content[:cut])
        trace = read_trace(path)
        assert len(trace.records) == whole - 1
        assert trace.torn == (content[cut - 1 : cut] != b"\n")
        recording_of(trace)
    path.write_bytes(content[:-1])
    assert (len(read_trace(path).records), read_trace(path).torn) == (whole, False)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is no trace"),
        (b"{}\n", "is no trace"),
        (b'{"trace":1', "first line is not whole"),
        (b'{"trace":2,"at":1,"run":"r","kind":"TraceStarted","data":{}}\n', "version 2"),
        (HEAD + b"not json\n{}", ":2: this line is damaged"),
        (
            b'{"trace":1,"at":1,"run":"r","kind":"TraceStarted","data":{}}\n{"at":1,"run":"q","kind":"X","data":{}}\n',
            "one file holds one run",
        ),
        (HEAD + b"[" * 100_000 + b"\n", "damaged"),
        (b'{"trace":1,"at":1,"run":"r","kind":"CallFinished","data":{"outcome":"no"}}\n', "damaged"),
    ],
)
def test_what_is_no_trace_is_told(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "t.jsonl").write_bytes(content)
    with pytest.raises(TraceError, match=says):
        read_trace(tmp_path / "t.jsonl")


def test_a_record_of_a_newer_kind_is_kept(tmp_path: Path) -> None:
    head = '{"trace":1,"at":1,"run":"r","kind":"TraceStarted","data":{"more":1}}\n'
    (tmp_path / "t.jsonl").write_text(head + '{"at":2,"run":"r","kind":"Dreamt","data":{"of":"sheep"}}\n', encoding="utf-8")
    assert read_trace(tmp_path / "t.jsonl").events[1] == UnknownRecord("r", "Dreamt", {"of": "sheep"})


def test_secrets_are_masked_and_deps_are_not_there(tmp_path: Path) -> None:
    @tool
    def log_in(password: SecretStr, context: FunctionInvocationContext) -> str:
        """Log in."""
        return f"{context.deps} {password.get_secret_value()}" if context.deps == "?" else "in"

    script = [call("log_in", password="hunter22"), call("login", password="hunter22"), call("final_answer", answer="x")]
    traced(desk(script, [], [log_in]), tmp_path / "t.jsonl", deps="the database key")
    content = (tmp_path / "t.jsonl").read_text(encoding="ascii")
    assert "hunter22" not in content
    assert "the database key" not in content
    assert "**********" in content


def test_hostile_content_survives(tmp_path: Path) -> None:
    texts = iter([HOSTILE, "x" * 1_000_000])

    @tool
    def fetch(url: str) -> str:
        """Fetch."""
        return next(texts)

    script = [call("fetch", url=HOSTILE), call("fetch", url="b"), call("nosuch" + HOSTILE), call("final_answer", answer=HOSTILE)]
    result = traced(desk(script, [], [fetch]), tmp_path / "t.jsonl")
    content = (tmp_path / "t.jsonl").read_bytes()
    assert all(byte == 10 or 32 <= byte < 127 for byte in set(content))
    run = recording_of(read_trace(tmp_path / "t.jsonl"))
    assert run.steps == result.steps
    assert run.answer == result.answer
    writer = TraceWriter(tmp_path / "direct.jsonl")
    told = CallFinished("r", "c", HOSTILE, Outcome.OK, HOSTILE, {HOSTILE: HOSTILE}, HOSTILE)
    writer(told)
    writer.close()
    assert read_trace(tmp_path / "direct.jsonl").events[1] == told


def test_values_without_a_json_form_are_written_as_text(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    writer = TraceWriter(tmp_path / "t.jsonl")
    for value in (float("nan"), object(), {(1, 2): {3}}, deep):
        writer(CallFinished("r", "c", "t", "ok", "text", output=value))  # type: ignore[arg-type]
    writer.close()
    assert len(read_trace(tmp_path / "t.jsonl").records) == 5
    while deep:  # taken apart by hand: the interpreter would recurse
        deep = deep[0]


def test_a_pause_goes_on_in_the_same_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    agent = desk(rules=[*RULES, AskPermissionRequirement(include=["refund"], remember_choices=True)])
    paused = traced(agent, path)
    assert paused.stop_reason == "paused"
    with path.open("ab") as file:
        file.write(b'{"at":1,"ki')

    async def main() -> RunResult[Any]:
        run = agent.start_resume(paused, {pending.call_id: True for pending in paused.pending})
        write_trace(run, path, append=True)
        return await run

    result = asyncio.run(main())
    run = recording_of(read_trace(path))
    assert run.steps == result.steps
    assert len(run.turns) == len(result.turns)
    assert replay(run, agent.policy).differences == ()


def test_child_runs_are_in_the_trace(tmp_path: Path) -> None:
    child = desk([call("look", order=3), call("final_answer", answer="It is paid.")], [], [look])
    parent = desk([call("clerk", task="Look."), call("final_answer", answer="x")], [], [child.as_tool("clerk", "Looks.")])
    traced(parent, tmp_path / "t.jsonl")
    trace = read_trace(tmp_path / "t.jsonl")
    assert len([event for event in trace.events if isinstance(event, ChildRun)]) == 1
    ((_, state),) = recording_of(trace).children
    assert [step.tool for step in state.steps] == ["look", "final_answer"]
    assert [turn.number for turn in recording_of(state).turns] == [1, 2]


def test_a_killed_run_keeps_the_calls_that_had_finished(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    traced(desk(), path)
    lines = path.read_text(encoding="ascii").splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if json.loads(line)["kind"] == "CallFinished" and '"refund"' in line)
    path.write_text("".join(lines[: last + 1]), encoding="ascii")
    assert [step.tool for step in recording_of(read_trace(path)).steps] == ["refund", "look", "look", "refund", "refund"]


def test_a_file_that_cannot_be_written_is_told_before_the_run(tmp_path: Path) -> None:
    from maymust import RunError

    with pytest.raises(RunError, match="cannot be written"):
        TraceWriter(tmp_path / "nowhere" / "t.jsonl")


def test_a_full_disk_loses_lines_and_neither_the_run_nor_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "t.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    @tool
    def fill(size: int) -> str:
        """Fill."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + size, hard))
        return "x" * 1000

    @tool
    def free() -> str:
        """Free."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        return "free"

    try:
        result = traced(desk([call("fill", size=300), call("free"), call("final_answer", answer="x")], [], [fill, free]), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.answer == "x"
    assert "a listener to CallFinished raised; the run goes on" in caplog.text
    trace = read_trace(path)
    assert isinstance(trace.events[-1], RunFinished)
    assert [event.tool for event in trace.events if isinstance(event, CallFinished)][-1] == "final_answer"
    assert recording_of(trace).steps == result.steps

"""The coding agent: it reads before it writes, leaves the tests alone, and is done when they are green after the last change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from examples.coding_agent.__main__ import make_agent, work
from examples.coding_agent.script import FIXED, SCRIPT, WORSE
from examples.coding_agent.tools import Workspace
from maymust import FunctionInvocationContext, RunResult, function_middleware
from maymust.models import ScriptedModel, call
from maymust.models.scripted import Turn

DONE = call("final_answer", answer="Done.")
READ = call("read_file", path="prices.py")


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    made = Workspace()
    yield made
    made.close()


def run(workspace: Workspace, *turns: Turn) -> RunResult[str]:
    return asyncio.run(make_agent(ScriptedModel(turns)).run("go", deps=workspace))


def outcomes(result: RunResult[str], tool: str) -> list[str]:
    return [str(step.outcome) for step in result.steps if step.tool == tool]


def test_the_fault_is_mended_and_the_test_is_not_bent(capsys: pytest.CaptureFixture[str]) -> None:
    assert asyncio.run(work("go", ScriptedModel(SCRIPT))) == 0
    told = capsys.readouterr().out
    assert "tests, asked separately: green" in told
    assert told.count("changed: ") == 1
    assert "changed: prices.py" in told


def test_of_the_script_only_read_files_are_written_and_only_green_ends_it(workspace: Workspace) -> None:
    result = run(workspace, *SCRIPT)
    assert outcomes(result, "write_file") == ["refused", "refused", "refused", "ok", "refused", "ok"]
    assert outcomes(result, "run_tests") == ["failed", "failed", "ok"]
    assert outcomes(result, "final_answer") == ["refused", "refused", "refused", "ok"]
    assert outcomes(result, "read_file") == ["ok", "failed", "ok"]
    assert workspace.changed() == ["prices.py"]


def test_green_tests_before_a_change_do_not_count_after_it(workspace: Workspace) -> None:
    change = [READ, call("write_file", path="prices.py", text=FIXED)]
    result = run(
        workspace,
        *change,
        call("run_tests"),
        [call("write_file", path="prices.py", text=WORSE), DONE],
        [call("write_file", path="prices.py", text=FIXED), DONE],
        call("run_tests"),
        DONE,
    )
    # In the turn of the change the answer was not on offer, whatever the tests said meanwhile.
    assert outcomes(result, "final_answer") == ["refused", "refused", "ok"]
    assert asyncio.run(workspace.test())[0]


def test_green_tests_of_other_files_than_there_are_now_do_not_count(workspace: Workspace) -> None:
    edits = iter([WORSE])

    @function_middleware
    async def somebody_edits(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()
        if context.name == "run_tests" and (text := next(edits, None)) is not None:
            (workspace.folder / "prices.py").write_text(text, encoding="utf-8")

    write = call("write_file", path="prices.py", text=FIXED)
    model = ScriptedModel([READ, write, call("run_tests"), DONE, write, call("run_tests"), DONE])
    result = asyncio.run(make_agent(model).run("go", deps=workspace, middleware=[somebody_edits]))
    assert outcomes(result, "run_tests") == ["ok", "ok"]
    assert outcomes(result, "final_answer") == ["refused", "ok"]


def test_a_model_that_gives_up_ends_without_an_answer_and_the_debt_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    model = ScriptedModel([READ, call("write_file", path="prices.py", text=WORSE), *["I give up."] * 12])
    assert asyncio.run(work("go", model)) == 1
    told = capsys.readouterr().out
    assert "owed: tests-after-changes" in told
    assert "tests, asked separately: red" in told

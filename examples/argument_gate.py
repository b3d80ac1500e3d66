"""Gating single calls by their arguments: what a tool may be called *with*.

A middleware sees every call before it runs and refuses those that reach outside a folder; a person is asked about the large ones.
What is refused never runs, and the model reads why.

Run it: python -m examples.argument_gate
"""

from collections.abc import Awaitable, Callable
from pathlib import PurePosixPath

from maymust import Agent, AskPermissionRequirement, FunctionInvocationContext, RunResult, function_middleware, tool
from maymust.models import ChatModel, ScriptedModel, call

FOLDER = PurePosixPath("/srv/reports")
FILES: dict[str, str] = {}


@tool
def write_file(path: str, text: str, copies: int = 1) -> str:
    """Write a file."""
    for number in range(copies):
        FILES[path if copies == 1 else f"{path}.{number}"] = text
    return f"wrote {copies} x {path}"


@function_middleware
async def only_in_the_folder(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
    """Let calls with a `path` through only when it lies in the folder."""
    path = (context.arguments or {}).get("path")
    if path is not None:
        target = PurePosixPath(str(path))
        if FOLDER not in target.parents or ".." in target.parts:
            context.refuse(f"{path} is not in {FOLDER}; choose a path in there")
            return
    await call_next()


def make_agent(model: ChatModel) -> Agent:
    """An agent that may write in one folder, and asks before it writes more than ten copies."""
    large = AskPermissionRequirement(["write_file"], when={"copies": {"type": "integer", "exclusiveMinimum": 10}})
    return Agent(model, tools=[write_file], middleware=[only_in_the_folder], requirements=[large])


SCRIPT = [
    call("write_file", path="/etc/passwd", text="me"),
    call("write_file", path="/srv/reports/../../etc/passwd", text="me"),
    call("write_file", path="/srv/reports/may.txt", text="all is well"),
    call("write_file", path="/srv/reports/june.txt", text="all is well", copies=500),
    call("final_answer", answer="The report of May is written."),
]


def main() -> RunResult:
    """Run the script, say no to what a person is asked, and tell what happened."""
    agent = make_agent(ScriptedModel(SCRIPT))
    result = agent.run_sync("Write the reports.")
    while result.pending:
        for pending in result.pending:
            print(f"asked    {pending.tool} {pending.arguments}")
        result = agent.resume_sync(result, {pending.call_id: False for pending in result.pending})
    for step in result.steps:
        print(f"{step.outcome:8} {step.tool}: {step.text}")
    return result


if __name__ == "__main__":
    main()

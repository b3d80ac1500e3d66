"""Tools over a folder with a project in it. The folder is the run's `deps`; nothing here reaches out of it."""

import asyncio
import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from maymust import FunctionInvocationContext, ToolError, tool

PROJECT = Path(__file__).with_name("project")
SECONDS = 60


class Workspace:
    """A copy of the project in a temporary folder. Use it in one event loop."""

    def __init__(self) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="maymust-coding-")
        self.folder = Path(self._made.name).resolve() / "project"
        shutil.copytree(PROJECT, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.before = self.digests()
        self.tested: dict[str, str] = {}  # the files as they were when the tests last passed
        self.turn = asyncio.Lock()

    def files(self) -> list[str]:
        """The project's files, as paths within it."""
        return sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*.py"))

    def digests(self) -> dict[str, str]:
        """Each file with a hash of what is in it."""
        return {name: hashlib.sha256((self.folder / name).read_bytes()).hexdigest() for name in self.files()}

    def changed(self) -> list[str]:
        """The files that are not what they were, or not there any more."""
        now = self.digests()
        return sorted(name for name in {*self.before, *now} if self.before.get(name) != now.get(name))

    def path(self, name: str) -> Path:
        """A file of the project. Raises ToolError for anything else."""
        path = (self.folder / name).resolve()
        if self.folder not in path.parents or not path.is_file():
            raise ToolError(f"there is no file {name!r}; there are {', '.join(self.files())}")
        return path

    async def test(self) -> tuple[bool, str]:
        """Run the project's tests in a process of their own: whether they passed, and what they said."""
        # -B: a file that changes twice in a second must not be taken from its cache.
        command = [sys.executable, "-B", "-m", "unittest", "discover", "-s", "tests"]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, cwd=self.folder, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
        try:
            async with asyncio.timeout(SECONDS):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode == 0, said.decode(errors="replace")

    def close(self) -> None:
        """Remove the folder."""
        self._made.cleanup()


def workspace_of(ctx: FunctionInvocationContext) -> Workspace:
    if not isinstance(ctx.deps, Workspace):
        raise ToolError("there is no project: start the run with deps=Workspace()")
    return ctx.deps


@tool(effect="read")
async def list_files(ctx: FunctionInvocationContext) -> list[str]:
    """List the files of the project."""
    return workspace_of(ctx).files()


@tool(effect="read")
async def read_file(path: str, ctx: FunctionInvocationContext) -> str:
    """Read a file."""
    workspace = workspace_of(ctx)
    async with workspace.turn:
        return workspace.path(path).read_text(encoding="utf-8")


@tool(effect="idempotent")
async def write_file(path: str, text: str, ctx: FunctionInvocationContext) -> str:
    """Replace a file by this text."""
    workspace = workspace_of(ctx)
    async with workspace.turn:
        workspace.path(path).write_text(text, encoding="utf-8")
    return f"wrote {len(text)} characters to {path}"


@tool(effect="read", repeatable=True)
async def run_tests(ctx: FunctionInvocationContext) -> str:
    """Run all tests of the project."""
    workspace = workspace_of(ctx)
    async with workspace.turn:
        files = workspace.digests()
        passed, said = await workspace.test()
        if not passed:
            raise ToolError(said[-1500:])
        workspace.tested = files
    return "all tests pass"

"""Running `maymust` in this process, and as a process of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from maymust.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str


def command(directory: Path, *arguments: str) -> Done:
    """Run a command in this process, in a directory. A usage error is an exit code as well."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(directory), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(arguments))
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


def process(directory: Path, *arguments: str, stdin: str | None = None, **environment: str) -> Done:
    """Run a command as users do."""
    done = subprocess.run(
        [sys.executable, "-m", "maymust", *arguments],
        cwd=directory,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, **environment},
    )
    return Done(done.returncode, done.stdout, done.stderr)


def write(directory: Path, name: str, text: str) -> str:
    """Write a file, and return its name."""
    (directory / name).write_text(text, encoding="utf-8")
    return name

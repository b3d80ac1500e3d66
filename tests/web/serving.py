"""`maymust serve` as users start it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(directory: Path, *arguments: str) -> Iterator[str]:
    """Start a server on a free port, and give its address; it is ended by Ctrl-C, and has to end cleanly."""
    process = subprocess.Popen(
        [sys.executable, "-m", "maymust", "serve", *arguments, *([] if "--port" in arguments else ["--port", "0"])],
        cwd=directory,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        found = re.search(r"http://\S+", said)
        assert found is not None, said + process.stderr.read()
        yield found[0]
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(15) == 0, rest
        assert rest == "", rest
    finally:
        process.kill()
        process.wait()
        process.stderr.close()

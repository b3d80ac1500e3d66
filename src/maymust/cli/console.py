"""Where a command writes: results on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from maymust.errors import MaymustError
from maymust.views.paint import Paint, clean, wants_colours

_PATIENCE = 1.0
"""Seconds after which a reader is told that something is still going on."""


class UnusableError(MaymustError):
    """The command line or its input cannot be used: exit code 2."""


@contextlib.contextmanager
def told_once() -> Iterator[None]:
    """Keep warnings of the log off stderr, where the events of a run tell the same. Errors, and what a program has set up, stay."""
    log, handler = logging.getLogger("maymust"), logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.ERROR)
    handler.setFormatter(logging.Formatter("maymust: %(message)s"))
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


class Console:
    """The two streams of a command.

    output  a file for the results instead of stdout
    """

    def __init__(self, output: str | None = None) -> None:
        self.output = output
        self.paint: Paint = Paint(output is None and wants_colours(sys.stdout))
        self.err_paint: Paint = Paint(wants_colours(sys.stderr))

    def result(self, text: str) -> None:
        """Write a result. Raises UnusableError when the output file cannot be written."""
        if self.output is None:
            sys.stdout.write(text)
            return
        try:
            Path(self.output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UnusableError(f"{self.output} cannot be written: {error.strerror}") from error

    def say(self, text: str) -> None:
        """Write something that is no result."""
        print(text, file=sys.stderr)

    def error(self, text: str) -> None:
        """Write what went wrong. Each line is made safe to print."""
        said = "\n".join(clean(line) for line in text.splitlines())
        self.say(f"{self.err_paint('error', 'maymust: error')}: {said}")

    @contextlib.contextmanager
    def progress(self, what: str) -> Iterator[None]:
        """Tell on stderr that `what` is going on when it takes longer than a second; on a terminal with the seconds so far."""
        done = threading.Event()
        live = sys.stderr.isatty()

        def tell() -> None:
            started = time.monotonic()
            pause = _PATIENCE
            while not done.wait(pause):
                seconds = time.monotonic() - started
                sys.stderr.write(f"\r\x1b[K{clean(what)} … {seconds:.0f} s" if live else f"maymust: {clean(what)} …\n")
                sys.stderr.flush()
                if not live:
                    return
                pause = _PATIENCE

        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            if live:
                sys.stderr.write("\r\x1b[K")

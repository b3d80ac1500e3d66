"""A run on a terminal, as it goes: each turn's permit as far as it changed, the calls, and what came of them."""

from __future__ import annotations

import shutil
import sys
from typing import Any, TextIO, TypeVar

from maymust.agent.events import RunEvent
from maymust.agent.run import Run
from maymust.views.paint import Paint, wants_colours
from maymust.views.terminal_live import Spinner, spinner_for
from maymust.views.terminal_text import RunText

R = TypeVar("R", bound="Run[Any]")
_WIDE = 160


class Terminal:
    """Prints what happens in a run.

    stream   where to; standard error by default, so that results can be piped
    colours  None: if the stream is a terminal, and `NO_COLOR` does not say no
    live     show with a spinner who is at work, with tokens and seconds; None: if the stream is a terminal with colours, and `rich` is
             installed (`maymust[cli]`). Tokens of a reply can be counted only when it is streamed, so the model is made to stream

    Texts from tools and models are printed without control characters and marks of direction, and cut to the width of the terminal.
    """

    def __init__(self, stream: TextIO | None = None, *, colours: bool | None = None, live: bool | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        coloured = wants_colours(self._stream) if colours is None else colours
        on_terminal = self._stream.isatty()
        width = max(shutil.get_terminal_size((_WIDE, 24)).columns, 60) if on_terminal else _WIDE
        self._text = RunText(Paint(coloured), width)
        wanted = on_terminal and coloured if live is None else live
        self._spinner = spinner_for(self._stream) if wanted else None

    def listen(self, run: R) -> R:
        """Print this run from now on; also one that goes on after a pause. Returns the run."""
        for kind in dict.fromkeys((*RunText.KINDS, *(Spinner.KINDS if self._spinner is not None else ()))):
            run.on(kind, self.show)
        return run

    def show(self, event: RunEvent) -> None:
        """Print one event, if it is one of those that tell the story."""
        lines = self._text.lines(event)
        spinner = self._spinner
        if lines:
            if spinner is not None:
                spinner.pause()
            self._print("\n".join(lines))
        if spinner is not None:
            spinner.show(event)
            if lines:
                spinner.go_on()

    def close(self) -> None:
        """Take the spinner away; happens by itself when the run ends or pauses."""
        if self._spinner is not None:
            self._spinner.close()

    def _print(self, text: str) -> None:
        try:
            self._stream.write(text + "\n")
        except UnicodeEncodeError:
            encoding = self._stream.encoding or "ascii"
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        self._stream.flush()

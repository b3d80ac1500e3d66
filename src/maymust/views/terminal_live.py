"""Who is at work, with tokens and seconds, on one line that is taken away again. Needs `rich`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, TextIO

from maymust.agent import events
from maymust.agent.events import RunEvent
from maymust.views.paint import clean

if TYPE_CHECKING:
    from rich.live import Live
    from rich.spinner import Spinner as Dots

_CHARACTERS = 4
"""About so many characters are a token."""
_REFRESH = 8
_NAMES = 3


class Spinner:
    """The line at the bottom while the model, or a tool, is at work."""

    KINDS: ClassVar[tuple[type[RunEvent], ...]] = (
        events.ModelCallStarted,
        events.ModelCallFinished,
        events.ModelCallFailed,
        events.TextDelta,
        events.ArgumentsDelta,
        events.CallStarted,
        events.CallFinished,
        events.QuestionAsked,
        events.QuestionAnswered,
        events.RunPaused,
        events.RunFinished,
    )

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.spinner import Spinner as Dots

        self._console = Console(file=stream, force_terminal=True, highlight=False, markup=False, emoji=False)
        self._dots: Dots = Dots("dots")
        self._live: Live | None = None
        self._since = 0.0
        self._model = False
        self._asking = 0
        self._characters = self._tokens = 0
        self._calls: dict[str, str] = {}

    def show(self, event: RunEvent) -> None:
        """Take note of an event, and show who is at work."""
        idle = not self._busy
        match event:
            case events.ModelCallStarted():
                self._model, self._characters = True, 0
            case events.ModelCallFinished():
                self._model = False
                self._tokens += event.reply.usage.total_tokens
            case events.ModelCallFailed():
                self._model = False
            case events.TextDelta():
                self._characters += len(event.text)
            case events.ArgumentsDelta():
                self._characters += len(event.arguments)
            case events.CallStarted():
                self._calls[event.call_id] = clean(event.tool[:40])
            case events.CallFinished():
                self._calls.pop(event.call_id, None)
            case events.QuestionAsked():
                self._asking += 1
            case events.QuestionAnswered():
                self._asking = max(self._asking - 1, 0)
            case events.RunPaused() | events.RunFinished():
                self._model, self._asking = False, 0
                self._calls.clear()
        if idle:
            self._since = time.monotonic()
        self.go_on()

    @property
    def _busy(self) -> bool:
        return (self._model or bool(self._calls)) and not self._asking

    def text(self) -> str:
        """The line as it is now."""
        if not self._busy:
            return ""
        seconds = f"{time.monotonic() - self._since:.0f} s"
        if not self._model:
            names = list(self._calls.values())
            return f"{', '.join(names[:_NAMES])}{' …' if len(names) > _NAMES else ''}  {seconds}"
        coming = f", ~{max(self._characters // _CHARACTERS, 1):,} more" if self._characters else ""
        return f"the model is at work  {seconds}, {self._tokens:,} tokens{coming}"

    def __rich__(self) -> Dots:
        """What `rich` draws, several times a second."""
        from rich.text import Text

        self._dots.text = Text(self.text())
        return self._dots

    def go_on(self) -> None:
        """Show the line, if somebody is at work; else take it away."""
        if not self._busy:
            self.pause()
        elif self._live is None:
            from rich.live import Live

            self._live = Live(
                self, console=self._console, refresh_per_second=_REFRESH, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()

    def pause(self) -> None:
        """Take the line away, for something is printed, or typed."""
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    close = pause


def spinner_for(stream: TextIO) -> Spinner | None:
    """A spinner, or None where `rich` is not installed."""
    try:
        return Spinner(stream)
    except ImportError:
        return None

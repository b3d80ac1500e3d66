"""A run on the terminal: each turn's pass, as far as it changed, the call, and what came of it."""

import json
import shutil
from typing import Any

from maymust import Permit, Verdict
from maymust.events import CallFinished, GuardHit, LadderRung, RunEvent, RunFinished, TextCoerced, TurnStarted


class Screen:
    """Prints the events of one run."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[Verdict, str]] = {}
        self._width = max(shutil.get_terminal_size((110, 24)).columns, 60)

    def show(self, event: RunEvent) -> None:
        """Print one event, if it is one of those that tell the story."""
        match event:
            case TurnStarted():
                self.line(f"\nturn {event.number}" + (f" ({event.measure})" if event.measure else ""))
                self._pass(event.permit)
            case CallFinished():
                self.line(f"  -> {event.tool} {json.dumps(event.arguments or {}, ensure_ascii=False)}")
                self.line(f"  <- {event.outcome}: {event.text}")
            case GuardHit():
                self.line(f"  !! loop guard: {event.reason}")
            case LadderRung():
                self.line(f"  !! no usable reply: {event.text}")
            case TextCoerced():
                self.line("  !! a text was taken for the answer")
            case RunFinished():
                self.line(f"\nended: {event.stop_reason}")
                self.line(f"answer: {event.answer if event.answer is not None else '(none)'}")

    def line(self, text: Any) -> None:
        """One line of output, cut to the width of the terminal."""
        lead = len(str(text)) - len(str(text).lstrip("\n"))
        flat = " ".join(str(text).lstrip("\n").split("\n"))
        print("\n" * lead + (flat if len(flat) <= self._width else flat[: self._width - 3] + "..."), flush=True)

    def _pass(self, permit: Permit) -> None:
        now = {name: (permit.verdict(name), "; ".join(permit.reasons.get(name, ()))) for name in permit.tools}
        changed = [name for name in permit.tools if now[name] != self._before.get(name)]
        for name in changed:
            verdict, reasons = now[name]
            self.line(f"  {verdict.glyph} {name:<14} {verdict.word}" + (f": {reasons}" if reasons else ""))
        if not changed:
            self.line("  (the pass is the same)")
        elif len(changed) < len(now):
            self.line(f"    {len(now) - len(changed)} as before")
        self._before = now

"""What happens in a run, told on stderr as it happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from maymust.agent.events import (
    CallFinished,
    GuardHit,
    LadderRung,
    ModelCallFailed,
    ModelRetried,
    QuestionAnswered,
    TextCoerced,
    TurnStarted,
)
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.views.paint import clean

if TYPE_CHECKING:
    from maymust.agent.run import Run
    from maymust.cli.console import Console

_MARKS = {"ok": ("✓", "good"), "failed": ("✗", "bad"), "denied": ("✗", "warning"), "refused": ("⊘", "warning")}
_SHOWN = 100


def teller(console: Console) -> Callable[[Run[Any]], None]:
    """A function that lets the console tell of a run."""
    paint = console.err_paint

    def short(text: str) -> str:
        line = clean(text)
        return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"

    def turn(event: TurnStarted) -> None:
        permit = event.permit
        offered = f"{permit.forced} is forced" if permit.forced else ", ".join(permit.allowed)
        extra = " (obligations relaxed)" if event.relaxed else " (beyond the budget)" if event.grace else ""
        console.say(paint("dim", short(f"turn {event.number}: {offered}{extra}")))

    def finished(event: CallFinished) -> None:
        if event.tool == FINAL_ANSWER and event.outcome == "ok":
            return
        mark, style = _MARKS[event.outcome]
        arguments = json.dumps(event.arguments or {}, ensure_ascii=False, default=repr)
        console.say(f"  {paint(style, mark)} {short(f'{event.tool}({arguments[1:-1]})')} {paint('dim', short(event.text))}")

    def note(text: str) -> None:
        console.say(f"  {paint('note', 'note')}: {short(text)}")

    def tell(run: Run[Any]) -> None:
        run.on(TurnStarted, turn)
        run.on(CallFinished, finished)
        run.on(QuestionAnswered, lambda event: note(f"{event.call.tool}: {'yes' if event.allow else 'no'}"))
        run.on(LadderRung, lambda event: note(f"no usable reply, {('nudged', 'asked again', 'obligations relaxed')[event.rung - 1]}"))
        run.on(TextCoerced, lambda event: note("a text was taken for the answer"))
        run.on(GuardHit, lambda event: note(f"{event.tool}: {event.reason}"))
        run.on(ModelRetried, lambda event: note(f"the model was asked {event.retries + 1} times"))
        run.on(ModelCallFailed, lambda event: note(f"the model failed: {event.error}"))

    return tell

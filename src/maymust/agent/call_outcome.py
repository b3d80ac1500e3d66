"""How a call came out, and the two ways in which it can end without running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maymust.agent.final_answer import FinalAnswer
from maymust.core.step import Outcome
from maymust.errors import RunError, ToolError
from maymust.tools.arguments import ArgumentsInvalid
from maymust.tools.output import OutputInvalid, render_output

ERROR_LENGTH = 2_000


class CallFailed(ToolError):
    """A call failed without an exception of its own: invalid arguments, a timeout, a return value without a JSON form."""


class Paused(BaseException):
    """Unwinds the middleware of a call that a person has to be asked about. Not an error, so it passes `except Exception`."""


@dataclass(slots=True)
class Done:
    """How a call came out."""

    outcome: Outcome
    text: str
    output: Any = None
    arguments: dict[str, Any] | None = None
    fault: BaseException | None = None


def answer_given_instead(final: FinalAnswer[Any], value: Any, arguments: dict[str, Any] | None) -> Done:
    """How a final answer comes out that middleware has given in the model's place."""
    try:
        text, output = final.parse(value if isinstance(value, dict) else {"answer": value})
    except ArgumentsInvalid as fault:
        return Done(Outcome.FAILED, str(fault), arguments=arguments)
    return Done(Outcome.OK, text, output, arguments)


def render_given(value: Any, who: str) -> tuple[Any, str]:
    """What `who` gave in the tool's place, as JSON and as text. Raises RunError for what is no JSON: it is not the tool's fault."""
    try:
        return render_output(value)
    except OutputInvalid as fault:
        raise RunError(f"the {who} gave a result that is no JSON: {fault.detail}") from fault


def shorten(text: str) -> str:
    """The text of an error as the model reads it: not longer than it can use."""
    return text if len(text) <= ERROR_LENGTH else f"{text[:ERROR_LENGTH]}… ({len(text) - ERROR_LENGTH} more characters)"

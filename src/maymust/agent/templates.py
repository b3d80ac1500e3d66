"""The words of the prompt. Each is a plain function, and each can be replaced: `Agent(templates=Templates(status=mine))`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from maymust.core.narrowing import fragment_words
from maymust.core.permit import Permit, Verdict
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import PolicyError
from maymust.tools.function_tool import Tool

RULES_OF_THE_GAME = (
    "You work in steps: each step you call tools and read their results. Some tools are open only at some steps; "
    "a note at the end of the conversation says so where it matters."
)
ANSWER_BY_TOOL = "When everything is done, call final_answer; that ends the work."
ALL_OPEN = "All tools are open again."
GO_ON = "Go on."
MOST_VALUES = 20
"""So many values of an argument are named in a status; a model has read the others where they came from."""


def said_by(template: str, words: Any) -> str:
    """What a template gave. Raises PolicyError for what is no text: every provider would take it for something else."""
    if not isinstance(words, str):
        raise PolicyError(f"Templates({template}=...) gave {words!r:.80}, and the words of a prompt are a text")
    return words


@dataclass(frozen=True, slots=True)
class StatusView:
    """What a status is made of.

    answers_in_text  whether the final answer is a text instead of a call
    must             what has to be called, in words, for a model that cannot be forced; else empty
    """

    permit: Permit
    answers_in_text: bool
    must: str = ""


def system_prompt(instructions: str, answers_in_text: bool) -> str:
    """The system prompt of a run, rendered once. What moves (the date, say) belongs into a message: here it costs the cache."""
    parts = [instructions.strip(), RULES_OF_THE_GAME, "" if answers_in_text else ANSWER_BY_TOOL]
    return "\n\n".join(part for part in parts if part)


def status_text(view: StatusView) -> str:
    """The step's status; empty when everything is open and nothing has to be said."""
    permit = view.permit
    closed = [name for name in permit.tools if permit.verdict(name) in (Verdict.DENIED, Verdict.WITHHELD)]
    limits = [text for name in permit.allowed if (text := limits_text(permit, name))]
    if not closed:
        return " ".join([view.must, *limits] if view.must else limits)
    open_now = [name for name in permit.allowed if not (view.answers_in_text and name == FINAL_ANSWER)]
    lines = [view.must or _open(permit, open_now), *limits]
    for name in closed:
        reasons = "; ".join(permit.reasons.get(name, ()))
        if reasons:
            lines.append(f"Not now: {'the answer' if name == FINAL_ANSWER and view.answers_in_text else name} ({reasons}).")
    return " ".join(lines)


def limits_text(permit: Permit, name: str) -> str:
    """What the rules leave of a tool's arguments, in words; empty when they leave all."""
    parts = [
        f"{parameter}: {' and '.join(dict.fromkeys(fragment_words(fragment, most=MOST_VALUES) for fragment in fragments))}"
        for parameter, fragments in permit.arguments(name).items()
    ]
    return f"{name} takes only {'; '.join(parts)}." if parts else ""


def _open(permit: Permit, open_now: Sequence[str]) -> str:
    if permit.forced and not permit.may_stop:
        return f"You have to call {permit.forced} now."
    return f"This step you may call: {', '.join(open_now) or 'no tool'}."


def classic_prompt(system: str, permit: Permit, tools: Sequence[Tool]) -> str:
    """The system prompt of the classic layout: every tool with what it does and whether it is allowed now."""
    parts = [system]
    for tool in tools:
        verdict = permit.verdict(tool.name)
        if verdict is Verdict.HIDDEN:
            continue
        reasons = "; ".join(permit.reasons.get(tool.name, ()))
        lines = [f"Name: {tool.name}", f"Description: {tool.description}", f"Allowed: {'yes' if tool.name in permit.allowed else 'no'}"]
        limits = limits_text(permit, tool.name) if tool.name in permit.allowed else ""
        parts.append("\n".join(lines + ([f"Reason: {reasons}"] if reasons else []) + ([f"Limits: {limits}"] if limits else [])))
    return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class Templates:
    """The words of the prompt.

    system   (instructions, answers_in_text) -> the system prompt, once a run
    status   (StatusView) -> the step's status; the same status is written once, so let it change only when its meaning does
    classic  (system, permit, tools) -> the system prompt of a step in the classic layout
    """

    system: Callable[[str, bool], str] = system_prompt
    status: Callable[[StatusView], str] = status_text
    classic: Callable[[str, Permit, Sequence[Tool]], str] = classic_prompt


DEFAULT = Templates()

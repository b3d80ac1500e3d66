"""What the model is sent: the system prompt, the conversation, the tools, and the step's status (design 3.11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from maymust.agent.planning import plan_of
from maymust.agent.state import RunState
from maymust.core.log import Log
from maymust.core.permit import Permit, Verdict
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.models.chat_model import ModelRequest, ToolDefinition
from maymust.models.message import Message
from maymust.tools.function_tool import Tool

RULES_OF_THE_GAME = (
    "You work in steps: each step you call tools and read their results. Some tools are open only at some steps; "
    "a note at the end of the conversation says so where it matters."
)
ANSWER_BY_TOOL = "When everything is done, call final_answer; that ends the work."


class Conversation(Sequence[Message]):
    """The messages of one request: a view, so that a long conversation is not copied every turn."""

    __slots__ = ("_log", "_status", "_system")

    def __init__(self, system: Message | None, log: Log[Message], status: Message | None) -> None:
        self._system, self._log, self._status = system, log, status

    def __len__(self) -> int:
        return (self._system is not None) + len(self._log) + (self._status is not None)

    def __iter__(self) -> Iterator[Message]:
        if self._system is not None:
            yield self._system
        yield from self._log
        if self._status is not None:
            yield self._status

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        return tuple(self)[index]


def system_prompt(instructions: str, *, answers_in_text: bool) -> str:
    """The system prompt of a run, rendered once."""
    parts = [instructions.strip(), RULES_OF_THE_GAME, "" if answers_in_text else ANSWER_BY_TOOL]
    return "\n\n".join(part for part in parts if part)


def build_request(state: RunState) -> ModelRequest:
    """The request of the coming turn."""
    plan, coming = plan_of(state), state.coming
    assert coming is not None
    assert coming.permit is not None
    permit = coming.permit
    allowed, choice = permit.allowed, permit.tool_choice
    if plan.answers_in_text:
        allowed = tuple(name for name in allowed if name != FINAL_ANSWER)
        if choice == FINAL_ANSWER:
            choice = "none"
    text = status_text(permit, plan.answers_in_text)
    due = text and not (plan.prefix_bound and text == state.last_status)
    menu = _menu(state, permit.hidden)
    if plan.layout == "classic":
        system = classic_prompt(state.system, permit, (*state.tools, plan.final.tool))
        menu, due = tuple(tool for tool in menu if tool.name in allowed), ""
    else:
        system = state.system
    status = Message("user", text, kind="status") if due else None
    return ModelRequest(
        Conversation(Message("system", system) if system else None, state.messages, status),
        menu,
        allowed,
        choice,
        text,
    )


def _menu(state: RunState, hidden: tuple[str, ...]) -> tuple[ToolDefinition, ...]:
    """The definitions of all tools that are shown; kept while neither the tools nor what is hidden changes."""
    if state.menu is None or state.menu[0] is not state.tools or state.menu[1] != hidden:
        plan = plan_of(state)
        shown = [tool for tool in state.tools if tool.name not in hidden]
        if not plan.answers_in_text and FINAL_ANSWER not in hidden:
            shown.append(plan.final.tool)
        state.menu = (state.tools, hidden, tuple(definition(tool) for tool in shown))
    return state.menu[2]


def definition(tool: Tool) -> ToolDefinition:
    """The tool as the model sees it."""
    return ToolDefinition(tool.name, tool.description, tool.parameters)


def note_request(state: RunState) -> None:
    """Keep the status that was just sent, for models whose reasoning is bound to the prefix."""
    coming = state.coming
    if not plan_of(state).prefix_bound or coming is None or coming.permit is None:
        return
    text = status_text(coming.permit, plan_of(state).answers_in_text)
    if text and text != state.last_status:
        state.messages = state.messages.add(Message("user", text, kind="status"))
    state.last_status = text


def status_text(permit: Permit, answers_in_text: bool) -> str:
    """The step's status in words; empty when everything is open."""
    if not permit.denied and not permit.withheld:
        return ""
    closed = [name for name in permit.tools if permit.verdict(name) in (Verdict.DENIED, Verdict.WITHHELD)]
    open_now = [name for name in permit.allowed if not (answers_in_text and name == FINAL_ANSWER)]
    lines = [
        f"You have to call {permit.forced} now."
        if permit.forced and not permit.may_stop
        else f"This step you may call: {', '.join(open_now) or 'no tool'}."
    ]
    for name in closed:
        reasons = "; ".join(permit.reasons.get(name, ()))
        if reasons:
            lines.append(f"Not now: {'the answer' if name == FINAL_ANSWER and answers_in_text else name} ({reasons}).")
    return " ".join(lines)


def classic_prompt(system: str, permit: Permit, tools: Sequence[Tool]) -> str:
    """The system prompt of the classic layout: every tool with what it does and whether it is allowed now."""
    parts = [system]
    for tool in tools:
        verdict = permit.verdict(tool.name)
        if verdict is Verdict.HIDDEN:
            continue
        reasons = "; ".join(permit.reasons.get(tool.name, ()))
        lines = [f"Name: {tool.name}", f"Description: {tool.description}", f"Allowed: {'yes' if tool.name in permit.allowed else 'no'}"]
        parts.append("\n".join(lines + ([f"Reason: {reasons}"] if reasons else [])))
    return "\n\n".join(parts)

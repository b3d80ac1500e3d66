"""What the model is sent: the system prompt, the conversation, the tools, and the step's status (design 3.11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from maymust.agent.narrowed_schema import narrowed_tools
from maymust.agent.offers import offers_of
from maymust.agent.plan import LoopPlan
from maymust.agent.planning import plan_of
from maymust.agent.state import RunState
from maymust.agent.templates import ALL_OPEN, GO_ON, StatusView, said_by, status_text
from maymust.core.log import Log
from maymust.core.permit import Permit
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.models.chat_model import ModelRequest, ToolDefinition
from maymust.models.encode import can_force, must_text
from maymust.models.message import Message
from maymust.tools.function_tool import Tool


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


def build_request(state: RunState) -> ModelRequest:
    """The request of the coming turn."""
    plan, coming = plan_of(state), state.coming
    assert coming is not None
    assert coming.permit is not None
    permit = coming.permit
    allowed, choice, text = _told(state, plan, permit)
    if plan.layout == "classic":
        text = due = ""
    else:
        due = text if not (plan.status_stays and text == state.last_status) else ""
    if state.messages and state.messages.last.role == "assistant":
        # A reply that was not usable comes last: some providers would take it for the beginning of the next one.
        due = text or GO_ON
    menu = _menu(state, permit.hidden)
    if plan.layout == "classic":
        system = said_by("classic", plan.templates.classic(state.system, permit, (*state.tools, plan.final.tool)))
        opening = Message("system", system) if system else None
        menu = tuple(tool for tool in menu if tool.name in allowed)
    else:
        if state.opening is None and state.system:
            state.opening = Message("system", state.system)
        opening = state.opening
    narrowed: tuple[ToolDefinition, ...] = ()
    if plan.narrow == "schema":
        menu, narrowed = _fitted(state, plan, permit, menu)
    return ModelRequest(
        Conversation(opening, state.messages, Message("user", due, kind="status") if due else None),
        menu,
        allowed,
        choice,
        text,
        offers_of(state, menu, allowed, choice) if plan.tracks_offers else (),
        state.lost,
        narrowed,
    )


def _fitted(
    state: RunState, plan: LoopPlan, permit: Permit, menu: tuple[ToolDefinition, ...]
) -> tuple[tuple[ToolDefinition, ...], tuple[ToolDefinition, ...]]:
    """The tools as they are shown, and those of them that constrain the output in a narrower form."""
    fitted = narrowed_tools(menu, permit)
    if plan.told.subset == "grammar":
        return menu, tuple(tool for tool, before in zip(fitted, menu, strict=True) if tool is not before)
    # Without a tool API a value that is not left would make the whole output unreadable; there the words have to do.
    return (fitted if plan.told.without(state.lost).tools else menu), ()


def _told(state: RunState, plan: LoopPlan, permit: Permit) -> tuple[tuple[str, ...], str, str]:
    """What may be called, what has to be, and the step's status in words."""
    forceable = can_force(plan.told.without(state.lost))
    words = plan.templates.status
    if words is status_text:
        allowed, choice, text = permit.derived(
            (build_request, plan.answers_in_text, forceable), lambda: _in_words(permit, plan.answers_in_text, forceable, words)
        )
    else:
        # Words of somebody else's may speak of the evidence, which changes with each step.
        allowed, choice, text = _in_words(permit, plan.answers_in_text, forceable, words)
        said_by("status", text)
    if not text and state.last_status and plan.status_stays:
        # Where statuses stay, the last one has to be taken back when everything is open again.
        text = ALL_OPEN
    return allowed, choice, text


def _in_words(
    permit: Permit, answers_in_text: bool, forceable: bool, words: Callable[[StatusView], str]
) -> tuple[tuple[str, ...], str, str]:
    allowed, choice = permit.allowed, permit.tool_choice
    if answers_in_text:
        allowed = tuple(name for name in allowed if name != FINAL_ANSWER)
        if choice == FINAL_ANSWER:
            choice = "none"
    must = "" if forceable else must_text(choice, allowed)
    return allowed, choice, words(StatusView(permit, answers_in_text, must))


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


def note_request(state: RunState, request: ModelRequest) -> None:
    """Keep what was said just now and has to be said again in all later requests."""
    plan = plan_of(state)
    if plan.tracks_offers:
        state.offers = request.offers
    if plan.status_stays:
        status = request.messages[-1] if request.messages else None
        if status is not None and status.kind == "status":
            state.messages = state.messages.add(status)
        state.last_status = request.guidance

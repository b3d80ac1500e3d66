"""An agent as a tool of another agent (design 3.10).

To the parent's rules the child is one tool. It has its own policy and history; usage, budget and cancellation are the parent's.
Its state is part of the parent's, so that a question of the child pauses the parent, and resuming goes through both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from maymust.agent.actions import CallPending, ChildEvent, ChildStarted, Event
from maymust.agent.budget import spent
from maymust.agent.call_outcome import Paused
from maymust.agent.call_record import PendingCall
from maymust.agent.children import allowance
from maymust.agent.driver import drive
from maymust.agent.events import QuestionAnswered, QuestionAsked
from maymust.agent.session import Session
from maymust.agent.state import RunState
from maymust.errors import PolicyError, ToolError
from maymust.tools.context import FunctionInvocationContext
from maymust.tools.function_tool import ApprovalMode, Effect, Tool

if TYPE_CHECKING:
    from maymust.agent.agent import Agent

_SHOWN = 500


class ChildTool(Tool):
    """A tool whose body is a run of an agent; made by `Agent.as_tool`."""

    runs_an_agent = True
    # An interrupted call goes on from the child's state, it does not begin again.
    effect: Effect = "idempotent"

    def __init__(
        self, agent: Agent[Any], name: str | None, description: str | None, *, approval_mode: ApprovalMode | None, timeout: float | None
    ) -> None:
        self.agent = agent
        name, description = name or agent.name, description or agent.description
        if not name or not description:
            raise PolicyError("agent.as_tool(name, description): an agent needs both to be a tool, here or at its construction")
        super().__init__(name=name, description=description, approval_mode=approval_mode, timeout=timeout)

    async def run(self, task: str, context: FunctionInvocationContext) -> Any:
        """Run the child, or go on with it.

        Args:
            task: What is to be done, complete: nothing else of this conversation is known there.
            context: The call.
        """
        parent = context._run
        if not isinstance(parent, Session):
            raise RuntimeError(f"{self.name} is a child agent and can only be called inside a run")
        call_id = context.call_id
        if call_id not in parent.state.children:
            parent.apply(ChildStarted(call_id, self._first_state(parent.state, call_id, task)))
        session = self._session(parent, call_id)
        try:
            await drive(session)
        finally:
            await session.listeners.close()
        if session.pending:
            record = next(one for one in parent.state.calls if one.call_id == call_id)
            parent.apply(CallPending(call_id, dict(record.arguments or {}), ()))
            raise Paused
        state = session.state
        if state.answer is None:
            raise ToolError(_without_answer(self.name, state))
        return state.output

    def _first_state(self, parent: RunState, call_id: str, task: str) -> RunState:
        agent = self.agent
        budget = allowance(parent, call_id, agent.budget)
        if budget is None:
            raise ToolError(f"{self.name} was not started: the budget of the run leaves nothing for it")
        # An id of its own that is the same in every replay.
        state = agent.first_state(
            task, metadata=parent.metadata, budget=budget, run_id=f"{parent.run_id}/{call_id}", caller=parent, deps=parent.deps
        )
        state.own_budget = agent.budget
        return state

    def _session(self, parent: Session, call_id: str) -> Session:
        agent = self.agent

        def fold(_: RunState, event: Event) -> RunState:
            parent.apply(ChildEvent(call_id, event, parent.seconds))
            return parent.state.children[call_id]

        session = Session(
            plan=agent.plan,
            model=agent.model,
            state=parent.state.children[call_id],
            middleware=agent.middleware,
            show_errors=agent.show_errors,
            fold=fold,
            recovers=parent.recovers,
        )
        parent.listeners.hand_down(session.listeners)
        _pass_questions_on(session, parent, call_id)
        return session


def _pass_questions_on(session: Session, parent: Session, call_id: str) -> None:
    """Whoever listens to the parent hears the child's questions, under the ids by which they are decided."""

    def seen_from_parent(call: PendingCall) -> PendingCall:
        return replace(call, call_id=f"{call_id}/{call.call_id}")

    def asked(event: QuestionAsked) -> None:
        parent.listeners.emit(QuestionAsked(parent.state.run_id, seen_from_parent(event.call)))

    def answered(event: QuestionAnswered) -> None:
        call = seen_from_parent(event.call)
        parent.listeners.emit(QuestionAnswered(parent.state.run_id, call, event.allow, event.reason, event.by))

    if parent.listeners.wants(QuestionAsked):
        session.listeners.on(QuestionAsked, asked)
    if parent.listeners.wants(QuestionAnswered):
        session.listeners.on(QuestionAnswered, answered)


def _without_answer(name: str, state: RunState) -> str:
    """Why a child gave no answer, what it owes, and how far it got."""
    if state.stop_reason == "budget":
        why = spent(state) or f"its budget of {state.budget.turns} turns is spent"
    elif state.stop_reason == "stalled":
        why = "it got stuck: its model gave no usable reply, or did the same thing again and again"
    else:
        why = f"it was {state.stop_reason}"
    parts = [f"{name} ended without an answer: {why}."]
    if state.unmet:
        parts.append(f"Still owed: {', '.join(state.unmet)}.")
    if state.steps:
        parts.append(f"It did: {', '.join(f'{step.tool} ({step.outcome})' for step in state.steps[-20:])}.")
    last = next((step.text for step in reversed(state.steps) if step.outcome == "ok" and step.text), None)
    if last:
        parts.append(f"Its last result: {last[:_SHOWN]}{'…' if len(last) > _SHOWN else ''}")
    return " ".join(parts)

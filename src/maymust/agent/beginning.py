"""The state that a new run starts from."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from maymust.agent.budget import Budget
from maymust.agent.call_ids import CallIds
from maymust.agent.inputs import Input, as_messages, conversation
from maymust.agent.outside import read_before, read_by_caller, words_of
from maymust.agent.reducer import settle
from maymust.agent.result import RunResult
from maymust.agent.settings import of_kind
from maymust.agent.state import RunState
from maymust.agent.templates import said_by
from maymust.agent.tool_choice import ToolMode, parse_choice
from maymust.core.history import History

if TYPE_CHECKING:
    from maymust.agent.agent import Agent


def first_state(
    agent: Agent[Any],
    input: Input,
    *,
    previous: RunResult[Any] | RunState | None,
    carry_history: bool,
    metadata: Mapping[str, Any] | None,
    budget: Budget | None,
    tool_choice: ToolMode | None,
    run_id: str | None,
    caller: RunState | None,
    deps: Any,
) -> RunState:
    """See `Agent.first_state`."""
    plan = agent.plan
    earlier = previous.state if isinstance(previous, RunResult) else previous
    if earlier is not None and not isinstance(earlier, RunState):
        raise TypeError(f"previous={previous!r}: give the result or the state of an earlier run")
    history = earlier.history if earlier is not None and carry_history else History()
    choice = agent.tool_choice if tool_choice is None else parse_choice(tool_choice, tuple(plan.known))
    messages = conversation(earlier, input, agent.model)
    state = RunState(
        run_id=run_id or uuid.uuid4().hex,
        system=said_by("system", plan.templates.system(agent.instructions, plan.answers_in_text)),
        budget=of_kind("budget", budget, Budget, "a Budget") or agent.budget,
        messages=messages,
        history=history,
        call_ids=CallIds(call.call_id for message in messages for call in message.calls),
        agent=agent.name,
        policy_hash=plan.fingerprint,
        policy=plan.description,
        carried=len(history),
        carried_invocations=history.total(failures=True),
        choice=choice,
        metadata=_own(metadata) if metadata else {},
        tool_names=tuple(tool.name for tool in plan.tools),
        offers=earlier.offers if earlier is not None else (),
        before=read_by_caller(caller) if caller is not None else read_before(earlier, carries_history=carry_history),
        said=() if caller is not None else (*(earlier.said if earlier is not None else ()), *words_of(as_messages(input))),
        last_status=earlier.last_status if earlier is not None and plan.status_stays else "",
        plan=plan,
        deps=deps,
        tools=plan.tools,
        present=plan.present,
    )
    settle(state)
    return state


def _own(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that nobody else changes. Raises TypeError for what is no JSON, since it is stored with the state."""
    try:
        kept: dict[str, Any] = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as fault:
        raise TypeError(f"metadata has no JSON form: {fault}; give text, numbers, lists and dicts there, and objects in deps") from fault
    return kept

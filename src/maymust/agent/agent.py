"""`Agent`: a model, tools and a policy. Immutable configuration; the state of a run belongs to the run."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from maymust.agent.actions import Decided, Resumed
from maymust.agent.budget import Budget
from maymust.agent.call_ids import CallIds
from maymust.agent.exposure import restore_tools
from maymust.agent.final_answer import FinalAnswer
from maymust.agent.loop_guard import LoopGuard
from maymust.agent.middleware import as_middleware
from maymust.agent.plan import LoopPlan, OnStall, PromptLayout
from maymust.agent.planning import plan_of
from maymust.agent.prompt import system_prompt
from maymust.agent.reducer import apply, settle
from maymust.agent.result import RunResult
from maymust.agent.run import Run
from maymust.agent.session import Session
from maymust.agent.state import RunState
from maymust.agent.tool_choice import ToolChoice, ToolMode, parse_choice
from maymust.core.history import History
from maymust.core.log import Log
from maymust.core.policy import Policy
from maymust.errors import PolicyError, RunError
from maymust.models.by_name import model_by_name
from maymust.models.chat_model import ChatModel
from maymust.models.message import Message
from maymust.requirements.permission import Decision
from maymust.tools.function_tool import Tool, as_tool

T = TypeVar("T")
Input = str | Message | Sequence[Message]
_GUARD = LoopGuard()


class Agent(Generic[T]):
    """An agent. Any number of runs may use one object at the same time.

    model                  "local", "openai:NAME", "anthropic:NAME" or a `ChatModel`
    instructions           what the model is told about its work
    tools                  functions, `Tool` objects or classes the model may call, in order
    loadable               tools that may be added during a run; their names are reserved and rules may speak of them
    requirements / policy  the rules; with `policy`, its tools must be the agent's by name
    middleware             around each call, outermost first
    tool_choice            see `ToolMode`
    output_type            the type of `result.output`; None for text
    final_answer_as_tool   False lets the model answer in text
    on_stall               "relax" obligations for a model that gives no usable reply, or "stop"
    prompt_layout          "stable" keeps the prompt's prefix, "classic" renders the system prompt anew each step
    show_errors            False keeps the text of tools' exceptions (other than `ToolError`) from the model

    Raises PolicyError for contradictions, unknown and duplicate names.
    """

    def __init__(
        self,
        model: str | ChatModel,
        *,
        name: str | None = None,
        description: str | None = None,
        instructions: str = "",
        tools: Iterable[Any] = (),
        loadable: Iterable[Any] = (),
        requirements: Iterable[Any] | None = None,
        policy: Policy | None = None,
        middleware: Sequence[Any] = (),
        tool_choice: ToolMode | None = None,
        output_type: type[T] | Any = None,
        final_answer_as_tool: bool | None = None,
        budget: Budget | None = None,
        loop_guard: LoopGuard | None = _GUARD,
        on_stall: OnStall = "relax",
        prompt_layout: PromptLayout = "stable",
        show_errors: bool = True,
    ) -> None:
        if on_stall not in ("relax", "stop"):
            raise PolicyError(f"on_stall={on_stall!r}: give 'relax' or 'stop'")
        if prompt_layout not in ("stable", "classic"):
            raise PolicyError(f"prompt_layout={prompt_layout!r}: give 'stable' or 'classic'")
        self.model: ChatModel = model_by_name(model) if isinstance(model, str) else model
        if not isinstance(self.model, ChatModel):
            raise PolicyError(f"model={model!r}: give 'local', 'openai:NAME', 'anthropic:NAME' or a ChatModel")
        self.name, self.description, self.instructions = name, description, instructions
        own, more = tuple(as_tool(thing) for thing in tools), tuple(as_tool(thing) for thing in loadable)
        bound = _policy(policy, requirements, final_answer_as_tool, own, more)
        final: FinalAnswer[T] = FinalAnswer(output_type)
        self.budget = budget if budget is not None else Budget()
        self.plan = LoopPlan(
            policy=bound,
            tools=own,
            loadable=more,
            final=final,
            agent=name,
            guard=loop_guard,
            on_stall=on_stall,
            layout=prompt_layout,
            prefix_bound=self.model.capabilities.prefix_bound,
        )
        self.middleware = as_middleware(middleware)
        self.show_errors = show_errors
        self.tool_choice: ToolChoice | None = parse_choice(tool_choice, tuple(self.plan.known))

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The agent's own tools."""
        return self.plan.tools

    @property
    def policy(self) -> Policy:
        """The agent's policy."""
        return self.plan.policy

    def start(
        self,
        input: Input,
        *,
        previous: RunResult[Any] | RunState | None = None,
        carry_history: bool = False,
        deps: Any = None,
        metadata: Mapping[str, Any] | None = None,
        budget: Budget | None = None,
        tool_choice: ToolMode | None = None,
        middleware: Sequence[Any] = (),
    ) -> Run[T]:
        """Start a run in the running event loop.

        input      text, a `Message`, or a list of them
        previous   a result or state whose conversation goes on; `carry_history` also counts its steps
        deps       for tools and rules; never stored
        metadata   JSON that rules and tools may read; stored with the state
        tool_choice, budget  replace the agent's

        Raises PolicyError for a bad tool_choice, RuntimeError without an event loop (use `run_sync`).
        """
        layers = (*self.middleware, *as_middleware(middleware))
        state = self._first_state(input, previous, carry_history, metadata, budget, tool_choice)
        return Run(self._session(state, layers, deps))

    async def run(self, input: Input, **settings: Any) -> RunResult[T]:
        """Run to the end, or to a question for a person. Takes what `start` takes.

        Raises MaymustError with the partial `state` for what breaks a run: PermitError for a policy that leaves no next step,
        RunError for the model, middleware or an approval handler.
        """
        return await self.start(input, **settings)

    def stream(self, input: Input, **settings: Any) -> Run[T]:
        """The same as `start`, for `async for event in agent.stream(...)`."""
        return self.start(input, **settings)

    def run_sync(self, input: Input, **settings: Any) -> RunResult[T]:
        """`run` for code that is not async. Inside a running event loop it works in a thread of its own, and blocks the caller."""
        return _blocking(self.run(input, **settings))

    async def resume(
        self,
        state: RunState | RunResult[Any],
        decisions: Mapping[str, bool | Decision] | None = None,
        *,
        budget: Budget | None = None,
        tools: Iterable[Any] | None = None,
        deps: Any = None,
        middleware: Sequence[Any] = (),
        allow_policy_change: bool = False,
    ) -> RunResult[T]:
        """Go on with a run that paused, was stopped or broke off. The state given stays as it is and can be used again.

        decisions  call id to True, False or a `Decision`; calls without one stay pending
        tools      tools of the run that are neither the agent's own nor loadable

        Raises RunError for a decision about a call that is not pending, a state of another policy (unless `allow_policy_change`),
        a missing tool, or a run that has its answer.
        """
        return await self.start_resume(
            state, decisions, budget=budget, tools=tools, deps=deps, middleware=middleware, allow_policy_change=allow_policy_change
        )

    def start_resume(
        self,
        state: RunState | RunResult[Any],
        decisions: Mapping[str, bool | Decision] | None = None,
        *,
        budget: Budget | None = None,
        tools: Iterable[Any] | None = None,
        deps: Any = None,
        middleware: Sequence[Any] = (),
        allow_policy_change: bool = False,
    ) -> Run[T]:
        """`resume` as a `Run`, to listen to its events."""
        layers = (*self.middleware, *as_middleware(middleware))
        resumed = self.prepare_resume(state, decisions, budget=budget, tools=tools, allow_policy_change=allow_policy_change)
        return Run(self._session(resumed, layers, deps))

    def prepare_resume(
        self,
        state: RunState | RunResult[Any],
        decisions: Mapping[str, bool | Decision] | None = None,
        *,
        budget: Budget | None = None,
        tools: Iterable[Any] | None = None,
        allow_policy_change: bool = False,
    ) -> RunState:
        """The state a resumed run starts from, for drivers."""
        before = state.state if isinstance(state, RunResult) else state
        new = before.fork()
        _check_same_policy(new, self.plan, allow_policy_change)
        new.plan, new.policy_hash, new.policy = self.plan, self.plan.fingerprint, self.plan.description
        restore_tools(new, self.plan.known, tools or ())
        if new.phase == "model":
            # The permit of a turn is made anew from the same state; the request is asked again.
            new.phase, new.coming = "plan", None
        pending = {record.call_id: record for record in new.calls if record.status == "pending"}
        for call_id in decisions or {}:
            if call_id not in pending:
                waiting = ", ".join(pending) or "none"
                raise RunError(f"there is no call {call_id!r} that waits for a decision; waiting: {waiting}")
        if new.phase == "ended" or budget is not None:
            new = apply(new, Resumed(budget.to_dict() if budget is not None else None))
        else:
            settle(new)
        for call_id, decision in (decisions or {}).items():
            new = _decide(new, call_id, decision)
        return new

    def resume_sync(
        self, state: RunState | RunResult[Any], decisions: Mapping[str, bool | Decision] | None = None, **settings: Any
    ) -> RunResult[T]:
        """`resume` for code that is not async."""
        return _blocking(self.resume(state, decisions, **settings))

    def _session(self, state: RunState, layers: tuple[Any, ...], deps: Any) -> Session:
        return Session(plan=self.plan, model=self.model, state=state, middleware=layers, deps=deps, show_errors=self.show_errors)

    def _first_state(
        self,
        input: Input,
        previous: RunResult[Any] | RunState | None,
        carry_history: bool,
        metadata: Mapping[str, Any] | None,
        budget: Budget | None,
        tool_choice: ToolMode | None,
    ) -> RunState:
        plan = self.plan
        earlier = previous.state if isinstance(previous, RunResult) else previous
        messages = earlier.messages if earlier is not None else Log(())
        for message in (*(earlier.inbox if earlier is not None else ()), *_as_messages(input)):
            _check_parts(message, self.model)
            messages = messages.add(message)
        history = earlier.history if earlier is not None and carry_history else History()
        choice = self.tool_choice if tool_choice is None else parse_choice(tool_choice, tuple(plan.known))
        state = RunState(
            run_id=uuid.uuid4().hex,
            system=system_prompt(self.instructions, answers_in_text=plan.answers_in_text),
            budget=budget if budget is not None else self.budget,
            messages=messages,
            history=history,
            call_ids=CallIds(call.call_id for message in messages for call in message.calls),
            agent=self.name,
            policy_hash=plan.fingerprint,
            policy=plan.description,
            carried=len(history),
            carried_invocations=history.total(failures=True),
            choice=choice,
            metadata=dict(metadata or {}),
            tool_names=tuple(tool.name for tool in plan.tools),
            plan=plan,
            tools=plan.tools,
        )
        settle(state)
        return state


def _policy(
    policy: Policy | None, requirements: Iterable[Any] | None, as_tool_: bool | None, own: tuple[Tool, ...], loadable: tuple[Tool, ...]
) -> Policy:
    if policy is None:
        return Policy(list(requirements or ()), tools=[*own, *loadable], final_answer_as_tool=as_tool_ is not False)
    if requirements is not None:
        raise PolicyError("Agent: give requirements or policy, not both")
    if as_tool_ is not None:
        raise PolicyError("Agent: final_answer_as_tool is a setting of the policy; leave it out, or make the policy with it")
    have, know = {tool.name for tool in (*own, *loadable)}, set(policy.tools)
    if have != know:
        missing, extra = sorted(know - have), sorted(have - know)
        parts = [f"the policy knows {', '.join(missing)}, which the agent has not"] if missing else []
        parts += [f"the agent has {', '.join(extra)}, which the policy does not know"] if extra else []
        raise PolicyError(f"Agent: the policy's tools must be the agent's: {'; '.join(parts)}")
    names = [tool.name for tool in (*own, *loadable)]
    if len(names) != len(have):
        raise PolicyError(
            f"two tools have the name {next(name for name in names if names.count(name) > 1)!r}; give one of them another name"
        )
    return policy


def _as_messages(input: Input) -> list[Message]:
    if isinstance(input, str):
        return [Message("user", input)]
    if isinstance(input, Message):
        return [input]
    messages = list(input)
    for message in messages:
        if not isinstance(message, Message):
            raise TypeError(f"input must be text, a Message or a list of Messages, and it holds {message!r}")
    return messages


def _check_parts(message: Message, model: ChatModel) -> None:
    for part in message.parts:
        if (part.kind == "image" and not model.capabilities.images) or (part.kind == "file" and not model.capabilities.files):
            raise RunError(f"the model {model.name} takes no {part.kind} parts; send it as text, or use a model that takes them")


def _check_same_policy(state: RunState, plan: LoopPlan, allowed: bool) -> None:
    if allowed or not state.policy_hash or state.policy_hash == plan.fingerprint:
        return
    raise RunError(
        f"run {state.run_id} was started under another policy ({_difference(state.policy, plan.description)}); "
        "resume it with the agent that started it, or pass allow_policy_change=True"
    )


def _difference(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> str:
    """The first places where two descriptions differ."""
    places = []
    for key in dict.fromkeys((*old, *new)):
        before, after, where = old.get(key), new.get(key), f"{path}{key}"
        if before != after:
            if isinstance(before, Mapping) and isinstance(after, Mapping):
                places.append(_difference(before, after, f"{where}."))
            else:
                places.append(f"{where}: {before!r} then, {after!r} now")
    return "; ".join(places[:3]) or "its version differs"


def _decide(state: RunState, call_id: str, decision: Any) -> RunState:
    answer = Decision(decision) if isinstance(decision, bool) else decision
    if not isinstance(answer, Decision):
        raise RunError(f"the decision about {call_id!r} is {decision!r}; give True, False or a Decision, so the call stays closed")
    record = next(one for one in state.calls if one.call_id == call_id)
    for requirement in plan_of(state).policy.requirements:
        shared = getattr(requirement, "remember_in", None)
        if requirement.name in record.questions and shared is not None:
            shared.remember(record.name, answer)
    return apply(state, Decided(call_id, answer.allow, answer.reason, answer.by, answer.remember))


def _blocking(work: Coroutine[Any, Any, RunResult[T]]) -> RunResult[T]:
    """Run to the end in this thread, or in another one when this thread's event loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    outcome: list[Any] = []

    def target() -> None:
        try:
            outcome.append((True, asyncio.run(work)))
        except BaseException as fault:
            outcome.append((False, fault))

    thread = threading.Thread(target=target, name="maymust run_sync")
    thread.start()
    thread.join()
    good, value = outcome[0]
    if not good:
        raise value
    return cast("RunResult[T]", value)

"""`Agent`: a model, tools and a policy. Immutable configuration; the state of a run belongs to the run."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, Generic, Self

from typing_extensions import TypeVar

from maymust.agent.beginning import first_state
from maymust.agent.blocking import blocking
from maymust.agent.budget import Budget
from maymust.agent.child import ChildTool
from maymust.agent.compaction import Compaction
from maymust.agent.final_answer import FinalAnswer
from maymust.agent.fragments import check_policy
from maymust.agent.inputs import Input
from maymust.agent.journal import Answer, Journal, Store
from maymust.agent.loop_guard import LoopGuard
from maymust.agent.middleware import Middleware, as_middleware
from maymust.agent.plan import LoopPlan, Narrow, OnStall, PromptLayout, check_settings, policy_of, supervised
from maymust.agent.result import RunResult
from maymust.agent.run import Run
from maymust.agent.session import Session
from maymust.agent.settings import listed, of_kind
from maymust.agent.state import RunState
from maymust.agent.stored import begin, resume, store_of
from maymust.agent.templates import DEFAULT, Templates
from maymust.agent.tool_choice import ToolChoice, ToolMode, parse_choice
from maymust.core.policy import Policy
from maymust.errors import PolicyError
from maymust.models.by_name import model_by_name
from maymust.models.chat_model import ChatModel
from maymust.tools.function_tool import ApprovalMode, Tool, as_tool

T = TypeVar("T", default=str)
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
    supervise              True also holds back calls after which the obligations could no longer be met within the budget's turns
    prompt_layout          "stable" keeps the prompt's prefix, "classic" renders the system prompt anew each step
    templates              the words of the prompt, as plain functions
    compaction             how a long conversation is made shorter for the model: `ShortenOutputs()`, `Summarise()`, or your own
    narrow                 "status" tells the model in words what rules leave of arguments, "schema" also narrows the tools' schemas,
                           which changes the tool list; "schema" is the default for models that a grammar constrains: only that changes
    show_errors            False keeps the text of tools' exceptions (other than `ToolError`) from the model
    store                  keeps the runs, so that they outlive the process: `SqliteStore("runs.db")`

    A copy, a deep one too, is another agent with the very same model, tools, policy and store: they may hold connections.
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
        output_type: type[T] | UnionType | None = None,
        final_answer_as_tool: bool | None = None,
        budget: Budget | None = None,
        loop_guard: LoopGuard | None = _GUARD,
        on_stall: OnStall = "relax",
        supervise: bool = False,
        prompt_layout: PromptLayout = "stable",
        templates: Templates = DEFAULT,
        compaction: Compaction | None = None,
        narrow: Narrow | None = None,
        show_errors: bool = True,
        store: Store | None = None,
    ) -> None:
        check_settings(on_stall, prompt_layout, narrow, compaction, store)
        self.model: ChatModel = model_by_name(model) if isinstance(model, str) else model
        if not isinstance(self.model, ChatModel):
            raise PolicyError(f"model={model!r}: give 'local', 'openai:NAME', 'anthropic:NAME' or a ChatModel")
        self.store = store
        self.name: str | None = of_kind("name", name, str, "a text")
        self.description: str | None = of_kind("description", description, str, "a text")
        self.instructions: str = of_kind("instructions", instructions, str, "a text") or ""
        own, more = tuple(map(as_tool, listed("tools", tools))), tuple(map(as_tool, listed("loadable", loadable)))
        bound = policy_of(policy, requirements, final_answer_as_tool, own, more)
        check_policy(bound, {tool.name: tool for tool in (*own, *more)})
        final: FinalAnswer[T] = FinalAnswer(output_type)
        self.budget: Budget = of_kind("budget", budget, Budget, "a Budget") or Budget()
        self.plan: LoopPlan = LoopPlan(
            policy=supervised(bound, self.budget.turns) if of_kind("supervise", supervise, bool, "True or False") else bound,
            tools=own,
            loadable=more,
            final=final,
            agent=name,
            guard=of_kind("loop_guard", loop_guard, LoopGuard, "a LoopGuard, or None for no guard"),
            on_stall=on_stall,
            layout=prompt_layout,
            told=self.model.capabilities,
            templates=of_kind("templates", templates, Templates, "Templates(...)"),
            compaction=compaction,
            narrow=narrow or ("schema" if self.model.capabilities.subset == "grammar" else "status"),
        )
        self.middleware: tuple[Middleware, ...] = as_middleware(middleware)
        self.show_errors = of_kind("show_errors", show_errors, bool, "True or False")
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

        input      text, a `Message`, or a list of them, with image and file `Part`s where the model takes them
        previous   a result or state whose conversation goes on; `carry_history` also counts its steps
        deps       for tools and rules; never stored
        metadata   JSON that rules and tools may read; stored with the state
        tool_choice, budget  replace the agent's

        Raises PolicyError for a bad tool_choice, RuntimeError without an event loop (use `run_sync`).
        """
        layers = (*self.middleware, *as_middleware(middleware))
        state = self.first_state(
            input, previous=previous, carry_history=carry_history, deps=deps, metadata=metadata, budget=budget, tool_choice=tool_choice
        )
        return Run(self._session(state, layers, begin(self.store, state)))

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
        return blocking(self.run(input, **settings))

    async def resume(
        self,
        state: RunState | RunResult[Any] | str,
        decisions: Mapping[str, bool | Answer] | None = None,
        *,
        budget: Budget | None = None,
        tools: Iterable[Any] | None = None,
        deps: Any = None,
        middleware: Sequence[Any] = (),
        allow_policy_change: bool = False,
    ) -> RunResult[T]:
        """Go on with a run that paused, was stopped or broke off. A state given stays as it is and can be used again.

        state      a state, a result, or with a `store` the id of a run. What is in the store counts more than the state given; a run
                   that has its answer there gives its result
        decisions  call id to True, False or a `Decision`, and `Happened(output)` for a call that was interrupted and took effect;
                   calls without one stay pending
        tools      tools of the run that are neither the agent's own nor loadable

        Raises RunError for a decision about a call that is not pending, a state of another policy (unless `allow_policy_change`),
        a missing tool, a run that has its answer, or one that another process works on.
        """
        return await self.start_resume(
            state, decisions, budget=budget, tools=tools, deps=deps, middleware=middleware, allow_policy_change=allow_policy_change
        )

    def start_resume(
        self,
        state: RunState | RunResult[Any] | str,
        decisions: Mapping[str, bool | Answer] | None = None,
        *,
        budget: Budget | None = None,
        tools: Iterable[Any] | None = None,
        deps: Any = None,
        middleware: Sequence[Any] = (),
        allow_policy_change: bool = False,
    ) -> Run[T]:
        """`resume` as a `Run`, to listen to its events."""
        layers = (*self.middleware, *as_middleware(middleware))
        settings: dict[str, Any] = {"budget": budget, "tools": tools or (), "deps": deps, "allow_policy_change": allow_policy_change}
        resumed, journal = resume(self.store, self.plan, self.model, state, decisions or {}, **settings)
        return Run(self._session(resumed, layers, journal, recovers=True))

    def decide(self, run_id: str, decisions: Mapping[str, bool | Answer], *, by: str | None = None) -> None:
        """Note decisions about calls of a stored run, also while it runs; `resume` goes on with them. The first one about a call counts.

        Raises RunError for a call that does not wait, and for a decision that comes too late or contradicts the first; none is noted then.
        """
        store_of(self.store).decide(run_id, decisions, by=by)

    def cancel(self, run_id: str, *, by: str | None = None, reason: str | None = None) -> None:
        """End a stored run for good, wherever it runs. Raises RunError when it has ended already."""
        store_of(self.store).cancel(run_id, by=by, reason=reason)

    def as_tool(
        self,
        name: str | None = None,
        description: str | None = None,
        *,
        approval_mode: ApprovalMode | None = None,
        timeout: float | None = None,
    ) -> Tool:
        """This agent as a tool of another one: it takes a `task` in words, and gives its answer.

        It has its own policy and history; to the parent's rules it is one tool. Its questions pause the parent, under the ids
        `parent/child`; its turns, tokens and time are the parent's too. Without an answer the step has failed, and says why.
        `name` and `description` default to the agent's. Raises PolicyError when there are none.
        """
        return ChildTool(self, name, description, approval_mode=approval_mode, timeout=timeout)

    def resume_sync(
        self, state: RunState | RunResult[Any] | str, decisions: Mapping[str, bool | Answer] | None = None, **settings: Any
    ) -> RunResult[T]:
        """`resume` for code that is not async."""
        return blocking(self.resume(state, decisions, **settings))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy.copy(self)

    def _session(self, state: RunState, layers: tuple[Any, ...], journal: Journal | None, *, recovers: bool = False) -> Session:
        return Session(
            plan=self.plan,
            model=self.model,
            state=state,
            middleware=layers,
            show_errors=self.show_errors,
            journal=journal,
            recovers=recovers,
        )

    def first_state(
        self,
        input: Input,
        *,
        previous: RunResult[Any] | RunState | None = None,
        carry_history: bool = False,
        deps: Any = None,
        metadata: Mapping[str, Any] | None = None,
        budget: Budget | None = None,
        tool_choice: ToolMode | None = None,
        run_id: str | None = None,
        caller: RunState | None = None,
    ) -> RunState:
        """The state a run starts from, for drivers. Takes and raises what `start` does; `run_id` is made up when left out.

        `caller` is the run of the agent that calls this one as a tool: its words are not the user's.
        """
        return first_state(
            self,
            input,
            previous=previous,
            carry_history=carry_history,
            metadata=metadata,
            budget=budget,
            tool_choice=tool_choice,
            run_id=run_id,
            caller=caller,
            deps=deps,
        )

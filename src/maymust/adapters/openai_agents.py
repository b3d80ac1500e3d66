"""A policy over runs of the OpenAI Agents SDK: `PolicyRunner(policy).run(agent, ...)` in the place of `Runner.run(agent, ...)`."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from maymust.errors import RunError, missing

try:
    from agents import FunctionTool, Model, RunConfig, Runner, RunState, ToolInputGuardrail, ToolOutputGuardrail
    from agents.agent import ToolsToFinalOutputResult
    from agents.tool import default_tool_error_function, set_function_tool_failure_error_function
    from agents.tool_guardrails import ToolGuardrailFunctionOutput as Word
except ImportError as _fault:
    raise missing("this adapter needs the OpenAI Agents SDK", "openai-agents", _fault) from _fault

from maymust.adapters.limits import as_policy, check_rules, refuse
from maymust.adapters.openai_agents_model import GatedModel, GatedProvider, as_object
from maymust.adapters.turnstile import Turnstile
from maymust.core.policy import Policy
from maymust.core.step import Outcome

__all__ = ["PolicyRunner"]

FRAMEWORK = "The OpenAI Agents SDK"


class PolicyRunner:
    """Runs agents under a policy. Each run gets a gate of its own, and works on a copy of the agent.

    policy   its tools are the agent's function tools, by name
    strict   False: what the SDK cannot enforce is a warning instead of an UnsupportedRuleError

    A requirement that asks without a handler interrupts the run like `needs_approval=True`. Go on with `run(agent, state)`, in the
    same process.
    """

    def __init__(self, policy: Policy, *, strict: bool = True) -> None:
        self.policy: Policy = as_policy(policy)
        self._strict = strict
        check_rules(FRAMEWORK, policy, {}, strict=strict)

    async def run(self, agent: Any, input: Any, **options: Any) -> Any:
        """`Runner.run`."""
        mine, options = self._bind(agent, input, options)
        return await Runner.run(mine, input, **options)

    def run_sync(self, agent: Any, input: Any, **options: Any) -> Any:
        """`Runner.run_sync`."""
        mine, options = self._bind(agent, input, options)
        return Runner.run_sync(mine, input, **options)

    def run_streamed(self, agent: Any, input: Any, **options: Any) -> Any:
        """`Runner.run_streamed`."""
        mine, options = self._bind(agent, input, options)
        return Runner.run_streamed(mine, input, **options)

    def _bind(self, agent: Any, input: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The agent of one run, and its options."""
        if isinstance(input, RunState):
            mine = getattr(input, "_current_agent", None)
            run = vars(mine).get("_maymust") if mine is not None else None
            if run is None:
                raise RunError("this state belongs to no run of a PolicyRunner in this process, so its steps are not known here")
        else:
            self._check(agent)
            run = Turnstile(self.policy)
            mine = _governed(agent, run)
        given = options.get("run_config") or RunConfig()
        config = RunConfig(**given) if isinstance(given, dict) else given
        model = GatedModel(config.model, run) if isinstance(config.model, Model) else config.model
        provider = GatedProvider(config.model_provider, run)
        # A name that is no tool is answered, as everywhere; the SDK would end the run.
        config = replace(config, model=model, model_provider=provider, tool_not_found_behavior="return_error_to_model")
        return mine, {**options, "run_config": config}

    def _check(self, agent: Any) -> None:
        problems = [
            (tool.name, "only function tools can be gated")
            for tool in agent.tools
            if not isinstance(tool, FunctionTool) and getattr(tool, "name", None) in self.policy.tools
        ]
        if agent.handoffs:
            problems.append(
                ("handoffs", "the agents they lead to bring tools of their own; put those into this agent, or use agent.as_tool")
            )
        if agent.mcp_servers:
            problems.append(("mcp_servers", "their tools are made inside the run; wrap them in function tools"))
        refuse(FRAMEWORK, problems, strict=self._strict)


def _governed(agent: Any, run: Turnstile) -> Any:
    model = GatedModel(agent.model, run) if isinstance(agent.model, Model) else agent.model
    tools = [_gated(tool, run) if isinstance(tool, FunctionTool) else tool for tool in agent.tools]
    mine = agent.clone(model=model, tools=tools, tool_use_behavior=_until(agent.tool_use_behavior, run))
    vars(mine)["_maymust"] = run
    return mine


def _gated(tool: Any, run: Turnstile) -> Any:
    """A copy of the tool with guardrails that let its calls through and report how they went."""
    mine, failed = copy.copy(tool), set[str]()

    def noting(formatter: Callable[[Any, Exception], Any] | None) -> Any:
        def note(context: Any, error: Exception) -> Any:
            failed.add(context.tool_call_id)
            return None if formatter is None else formatter(context, error)

        return note

    formatter = default_tool_error_function if tool._use_default_failure_error_function else tool._failure_error_function
    set_function_tool_failure_error_function(mine, noting(formatter))
    if tool.timeout_seconds is not None:
        timed = tool.timeout_error_function or (
            lambda context, error: f"Tool '{tool.name}' timed out after {tool.timeout_seconds} seconds."
        )
        mine.timeout_error_function = noting(timed)

    async def let_through(data: Any) -> Any:
        context = data.context
        word = await run.aenter(context.tool_call_id, as_object(context.tool_arguments))
        if word is None or not word.allowed:
            return Word.reject_content((word.reason or "") if word else "not yet: it depends on a call that waits for a person")
        if not word.ask:
            return Word.allow()
        no, person = await run.aask(context.tool_call_id)
        if person is not None:
            if not context.is_tool_approved(tool.name, context.tool_call_id):
                run.leave(context.tool_call_id, Outcome.REFUSED)
                return Word.reject_content("not yet: a person has to agree first; call it again")
            no = run.settle(person, True)
        if no is not None:
            run.leave(context.tool_call_id, Outcome.DENIED)
            return Word.reject_content(no)
        return Word.allow()

    async def report(data: Any) -> Any:
        how = Outcome.FAILED if data.context.tool_call_id in failed else Outcome.OK
        run.leave(data.context.tool_call_id, how, data.output)
        return Word.allow()

    users = [_watched(guardrail, run) for guardrail in tool.tool_input_guardrails or ()]
    mine.tool_input_guardrails = [ToolInputGuardrail(let_through, name="policy"), *users]
    mine.tool_output_guardrails = [ToolOutputGuardrail(report, name="policy"), *(tool.tool_output_guardrails or ())]
    if _may_pause(run.policy, tool.name):
        mine.needs_approval = _asking(tool.needs_approval, run)
        # The SDK's own invoker would ask about every call with a default in its arguments before the rules are.
        mine.on_invoke_tool = _plain(mine.on_invoke_tool)
    return mine


def _watched(guardrail: Any, run: Turnstile) -> Any:
    """A user's guardrail whose no is reported."""

    async def watch(data: Any) -> Any:
        word = await guardrail.run(data)
        if word.behavior["type"] != "allow":
            run.leave(data.context.tool_call_id, Outcome.REFUSED)
        return word

    return ToolInputGuardrail(watch, name=guardrail.get_name())


def _may_pause(policy: Policy, tool: str) -> bool:
    """True when somebody without a handler may be asked about the tool."""
    asking = (one for one in policy.requirements if hasattr(one, "asks_about") and getattr(one, "handler", None) is None)
    return any(one.asks_about(tool) for one in asking)


def _asking(own: Any, run: Turnstile) -> Callable[..., Any]:
    async def needs_approval(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        asked = own(context, arguments, call_id) if callable(own) else own
        needed = bool(await asked if inspect.isawaitable(asked) else asked)
        word = run.decided(call_id)
        if word is not None and word.allowed and word.ask:
            needed = (await run.aask(call_id))[1] is not None or needed
        if needed:
            run.park(call_id)
        return needed

    return needs_approval


def _plain(invoker: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    async def invoke(context: Any, arguments: str) -> Any:
        return await invoker(context, arguments)

    return invoke


def _until(behavior: Any, run: Turnstile) -> Any:
    """The agent's `tool_use_behavior`, which may end a run only where the rules let it end."""
    if behavior == "run_llm_again":
        return behavior

    async def decide(context: Any, results: list[Any]) -> Any:
        if behavior == "stop_on_first_tool":
            word = ToolsToFinalOutputResult(is_final_output=True, final_output=results[0].output)
        elif isinstance(behavior, dict):
            first = next((one for one in results if one.tool.name in behavior["stop_at_tool_names"]), None)
            word = ToolsToFinalOutputResult(is_final_output=first is not None, final_output=first.output if first else None)
        else:
            word = behavior(context, results)
            word = await word if inspect.isawaitable(word) else word
        return word if run.may_stop() else ToolsToFinalOutputResult(is_final_output=False)

    return decide

"""A policy in a pydantic-ai 2.x agent: `Agent(..., capabilities=[PolicyCapability(policy)])`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from maymust.errors import RunError, missing

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed, UserError
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
    from pydantic_ai.settings import ToolOrOutput
except ImportError as _fault:
    raise missing("this adapter needs pydantic-ai", "pydantic-ai", _fault) from _fault

from maymust.adapters.limits import as_policy, check_rules, choice, shown
from maymust.adapters.turnstile import Turnstile, is_nudge, is_refusal
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER

__all__ = ["PolicyCapability"]

FRAMEWORK = "pydantic-ai"
_OUTCOMES = {"success": Outcome.OK, "denied": Outcome.DENIED, "interrupted": Outcome.REFUSED}


class PolicyCapability(AbstractCapability[Any]):
    """Holds every run of an agent to a policy. One object serves any number of runs: each gets a copy of its own.

    policy   its tools are the agent's function tools, by name. Output tools count as `final_answer`
    strict   False: what pydantic-ai cannot enforce is a warning instead of an UnsupportedRuleError

    A requirement that asks without a handler defers the call (`ApprovalRequired`): give the agent `DeferredToolRequests` as an output
    type, and go on with `deferred_tool_results`.
    """

    def __init__(self, policy: Policy, *, strict: bool = True) -> None:
        self.policy: Policy = as_policy(policy)
        check_rules(FRAMEWORK, policy, {}, strict=strict)
        self._run: Turnstile | None = None

    async def for_run(self, ctx: Any) -> PolicyCapability:
        """The capability of one run; of a run that goes on from deferred calls, with the steps before the pause."""
        mine = copy.copy(self)
        mine._run = _resumed(self.policy, ctx.messages) or Turnstile(self.policy)
        return mine

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Put the permit into the request: hidden tools are left out, the rest is chosen among."""
        parameters = request_context.model_request_parameters
        permit = self._turnstile.permit(tool.name for tool in parameters.function_tools)
        tools = [tool for tool in parameters.function_tools if tool.name not in permit.hidden]
        outputs = [tool.name for tool in parameters.output_tools]
        settings = {**(request_context.model_settings or {}), **_choice(permit, outputs)}
        return replace(request_context, model_request_parameters=replace(parameters, function_tools=tools), model_settings=settings or None)

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: ModelResponse) -> ModelResponse:
        """Take in the calls, the answer last; send a text back that comes where the run may not end."""
        outputs = {tool.name for tool in request_context.model_request_parameters.output_tools}
        calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
        self._turnstile.begin(_call(part, FINAL_ANSWER if part.tool_name in outputs else part.tool_name) for part in calls)
        answers = [part for part in calls if part.tool_name in outputs]
        if calls:
            return replace(response, parts=[part for part in response.parts if part not in answers] + answers) if answers else response
        text = any(isinstance(part, TextPart) and part.content for part in response.parts)
        objection = self._turnstile.objection(empty=not text)
        if objection is not None and text:
            try:
                ctx.enqueue(objection)
            except UserError as closed:
                raise RunError(f"the run may not end here, but run_stream takes the first text as the answer: {objection}") from closed
        return response

    async def wrap_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        """A call whose arguments are invalid never runs: it failed."""
        try:
            return await handler(args)
        except (ApprovalRequired, CallDeferred):
            raise
        except Exception:
            self._turnstile.doom(call.tool_call_id)
            raise

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        """Let a call through, ask about it, or answer it with the reason why not."""
        run, name = self._turnstile, call.tool_call_id
        if not run.begun:
            run.begin(_pending(ctx.messages))
        word = await run.aenter(name, args)
        if word is None or not word.allowed:
            raise ToolFailed(word.reason or "" if word is not None else "not yet: it depends on a call that waits for a person")
        try:
            if word.ask and not ctx.tool_call_approved:
                no, person = await run.aask(name)
                if person is not None:
                    raise ApprovalRequired(metadata={"requirements": list(person.requirements), "reasons": list(person.reasons)})
                if no is not None:
                    run.leave(name, Outcome.DENIED)
                    raise ToolFailed(no)
            result = await handler(args)
        except (ApprovalRequired, CallDeferred):
            run.park(name)
            raise
        except BaseException:
            run.leave(name, Outcome.FAILED)
            raise
        run.leave(name, Outcome.OK, result)
        return result

    async def before_output_process(self, ctx: Any, *, output_context: Any, output: Any) -> Any:
        """Refuse a structured answer where the run may not end."""
        if ctx.partial_output or output_context.tool_call is None:
            return output
        word = await self._turnstile.aenter(output_context.tool_call.tool_call_id)
        if word is None or not word.allowed:
            raise ModelRetry((word.reason or "") if word is not None else "not yet: another call waits for a person")
        return output

    @property
    def _turnstile(self) -> Turnstile:
        if self._run is None:
            raise RunError("this capability was not put into a run; pass it in Agent(capabilities=[...])")
        return self._run


def _choice(permit: Permit, outputs: Sequence[str]) -> dict[str, Any]:
    """The permit as pydantic-ai's `tool_choice`; nothing where everything is open."""
    wanted, names = choice(permit), [name for name in shown(permit) if name not in permit.hidden]
    if wanted == "none":
        return {"tool_choice": "none"}
    if not permit.may_stop:
        return {"tool_choice": names if wanted == "required" else [wanted]}
    if permit.forced is not None:
        return {"tool_choice": [permit.forced, *outputs]}
    return {"tool_choice": ToolOrOutput(names)} if permit.denied else {}


def _call(part: ToolCallPart, name: str | None = None) -> dict[str, Any]:
    try:
        arguments = part.args_as_dict()
    except ValueError:
        arguments = None
    return {"name": name or part.tool_name, "arguments": arguments, "call_id": part.tool_call_id}


def _returns(messages: Sequence[Any]) -> dict[str, ToolReturnPart]:
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return {part.tool_call_id: part for part in parts if isinstance(part, ToolReturnPart)}


def _pending(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """The calls of the last reply that have no result yet."""
    done = _returns(messages)
    last = next((message for message in reversed(messages) if isinstance(message, ModelResponse)), None)
    parts = last.parts if last is not None else ()
    return [_call(part) for part in parts if isinstance(part, ToolCallPart) and part.tool_call_id not in done]


def _resumed(policy: Policy, messages: Sequence[Any]) -> Turnstile | None:
    """The run up to its deferred calls, read from its messages; None when nothing was deferred."""
    if not _pending(messages):
        return None
    run, done = Turnstile(policy, patient=False), _returns(messages)
    start = max((i for i, message in enumerate(messages) if isinstance(message, ModelRequest) and _is_prompt(message)), default=0)
    responses = [message for message in messages[start:] if isinstance(message, ModelResponse)]
    for place, response in enumerate(responses):
        if place == len(responses) - 1:
            run.permit()
        for part in response.parts:
            result = done.get(part.tool_call_id) if isinstance(part, ToolCallPart) else None
            if result is not None:
                refused = result.outcome == "failed" and is_refusal(str(result.content))
                outcome = Outcome.REFUSED if refused else _OUTCOMES.get(result.outcome, Outcome.FAILED)
                run.record(_call(part), outcome, result.content if outcome is Outcome.OK else None)
    return run


def _is_prompt(message: ModelRequest) -> bool:
    return any(isinstance(part, UserPromptPart) and not is_nudge(str(part.content)) for part in message.parts)

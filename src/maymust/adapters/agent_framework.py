"""A policy in a Microsoft Agent Framework agent: `Agent(..., middleware=[PolicyMiddleware(policy)])`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from maymust.errors import RunError, missing

try:
    from agent_framework import (
        AgentMiddleware,
        ChatMiddleware,
        ChatResponse,
        Content,
        FunctionMiddleware,
        FunctionTool,
        Message,
        MiddlewareFailure,
        ResponseStream,
    )
except ImportError as _fault:
    raise missing("this adapter needs Microsoft Agent Framework", "agent-framework", _fault) from _fault

from maymust.adapters.limits import as_policy, check_rules, choice, shown
from maymust.adapters.turnstile import Turnstile
from maymust.core.policy import Policy
from maymust.core.step import Outcome

__all__ = ["PolicyMiddleware"]

FRAMEWORK = "Microsoft Agent Framework"
STATE = "maymust"
"""The key under which a session keeps a run that waits for an approval."""


class PolicyMiddleware(AgentMiddleware):
    """Holds every run of an agent to a policy. One object serves any number of runs: each gets a gate and middleware of its own.

    policy   its tools are the agent's function tools, by name
    strict   False: what the framework cannot enforce is a warning instead of an UnsupportedRuleError

    A requirement that asks without a handler answers the run with an approval request, as a tool with `approval_mode="always_require"`
    does. Go on in the same session; it keeps the run's steps.
    """

    def __init__(self, policy: Policy, *, strict: bool = True) -> None:
        self.policy: Policy = as_policy(policy)
        check_rules(FRAMEWORK, policy, {}, strict=strict)

    async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
        """Begin a run, or go on with one that waited for an approval."""
        run = self._waiting(context) or Turnstile(self.policy)
        # Innermost, so that nobody changes the request or the arguments after the rules were asked.
        mine = [*context.client_kwargs.get("middleware", ()), _Chat(run), _Function(run)]
        context.client_kwargs = {**context.client_kwargs, "middleware": mine}

        def keep(response: Any) -> Any:
            if context.session is not None and response.user_input_requests:
                context.session.state[STATE] = run.to_dict() | {"present": list(run.present or ()), "batch": run.batch}
            return response

        await call_next()
        if context.stream:
            context.stream_result_transforms = [*context.stream_result_transforms, keep]
        elif context.result is not None:
            keep(context.result)

    def _waiting(self, context: Any) -> Turnstile | None:
        parts = [part for message in context.messages for part in message.contents]
        if not any(part.type == "function_approval_response" for part in parts):
            return None
        kept = context.session.state.pop(STATE, None) if context.session is not None else None
        if kept is None:
            raise RunError("an approval can be given only in the session that kept the run's steps; pass session= to both runs")
        run = Turnstile.from_dict(self.policy, kept, patient=False)
        run.permit(kept["present"])
        run.begin(kept["batch"])
        return run


class _Chat(ChatMiddleware):
    """Model calls of one run."""

    def __init__(self, run: Turnstile) -> None:
        self._run = run

    async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
        self._narrow(context)
        await call_next()
        if context.stream:
            context.result = ResponseStream(self._stream(context.result, context, call_next), finalizer=ChatResponse.from_updates)
            return
        while (objection := self._objection(context.result.messages)) is not None:
            self._ask_again(context, context.result.messages, objection)
            await call_next()

    async def _stream(self, stream: Any, context: Any, call_next: Callable[[], Awaitable[None]]) -> AsyncIterator[Any]:
        """The updates; where the run may not end they are held back until it is known that the reply is no answer."""
        while True:
            held, open_end = [], self._run.current is not None and self._run.current.may_stop
            async for update in stream:
                if open_end:
                    yield update
                else:
                    held.append(update)
            messages = (await stream.get_final_response()).messages
            objection = self._objection(messages)
            if objection is None:
                for update in held:
                    yield update
                return
            self._ask_again(context, messages, objection)
            await call_next()
            stream = context.result

    def _ask_again(self, context: Any, messages: Sequence[Any], objection: str) -> None:
        context.messages = [*context.messages, *messages, Message(role="user", contents=[objection])]
        self._narrow(context)

    def _narrow(self, context: Any) -> None:
        """Replace the options: only what may be called, and the choice. The agent's own are left as they are."""
        options = dict(context.options or {})
        tools = options.get("tools") or []
        permit = self._run.permit(tool.name for tool in tools if isinstance(tool, FunctionTool))
        wanted, names = choice(permit), shown(permit)
        if wanted == "none":
            options["tool_choice"] = "none"
        else:
            options["tools"] = [tool for tool in tools if not isinstance(tool, FunctionTool) or tool.name in names]
            named = {"mode": "required", "required_function_name": wanted}
            options["tool_choice"] = {"auto": options.get("tool_choice"), "required": {"mode": "required"}}.get(wanted, named)
            if options["tool_choice"] is None:
                del options["tool_choice"]
        context.options = options

    def _objection(self, messages: Sequence[Any]) -> str | None:
        parts = [part for message in messages for part in message.contents]
        calls = [part for part in parts if part.type == "function_call"]
        self._run.begin({"name": part.name, "arguments": part.parse_arguments(), "call_id": part.call_id} for part in calls)
        if calls:
            return None
        return self._run.objection(empty=not any(part.type == "text" and part.text for part in parts))


class _Function(FunctionMiddleware):
    """Tool calls of one run."""

    def __init__(self, run: Turnstile) -> None:
        self._run = run

    async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
        run, name = self._run, context.metadata["call_id"]
        arguments = context.arguments if isinstance(context.arguments, dict) else context.arguments.model_dump()
        try:
            word = await run.aenter(name, arguments)
            if word is None or not word.allowed:
                context.result = (word.reason or "") if word is not None else "not yet: it depends on a call that waits for a person"
                return
            no, person = await run.aask(name) if word.ask else (None, None)
            if person is not None and context.metadata.get("approval_response") is None:
                run.park(name)
                occurrence = context.metadata.get("function_call_occurrence_id")
                call = Content.from_function_call(call_id=name, name=context.function.name, arguments=arguments, id=occurrence)
                context.result = Content.from_function_approval_request(id=occurrence or name, function_call=call)
                return
            if person is not None:
                no = run.settle(person, True)
        except Exception as problem:
            # An ordinary exception would become a result, and the loop would go on without the rules.
            run.leave(name, Outcome.REFUSED)
            raise MiddlewareFailure(str(problem)) from problem
        if no is not None:
            run.leave(name, Outcome.DENIED)
            context.result = no
            return
        try:
            await call_next()
        except BaseException:
            run.leave(name, Outcome.FAILED)
            raise
        run.leave(name, Outcome.OK, _output(context.result))


def _output(result: Any) -> Any:
    """A tool's text results as one text; anything else as it is."""
    if isinstance(result, list) and all(getattr(part, "type", None) == "text" for part in result):
        return "".join(part.text for part in result)
    return result

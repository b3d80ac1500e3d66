"""A policy in Google's Agent Development Kit: `App(..., plugins=[PolicyPlugin(policy)])`, first in the list."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from maymust.errors import RunError, missing

try:
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types
except ImportError as _fault:
    raise missing("this adapter needs Google ADK", "google-adk", _fault) from _fault

from maymust.adapters.limits import as_policy, check_rules, choice, shown
from maymust.adapters.turnstile import Turnstile
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER

__all__ = ["PolicyPlugin"]

FRAMEWORK = "Google ADK"
NOTE = "maymust_note"
"""A call that stands beside a text which may not end the run; its result says why, and the flow goes on."""
ANSWER = "set_model_response"
"""ADK's own tool for structured answers."""
CONFIRMATION = "adk_request_confirmation"
_ID = "adk-"
"""ADK takes ids with this prefix out of what it sends."""
_RUNS = 1024


class PolicyPlugin(BasePlugin):
    """Holds every invocation of a runner to a policy. One object serves any number of invocations: each has a gate of its own.

    policy   its tools are those of the runner's agents, by name. A structured answer (`output_schema`) counts as `final_answer`
    strict   False: what ADK cannot enforce is a warning instead of an UnsupportedRuleError

    A requirement that asks without a handler uses ADK's tool confirmation. The invocation that brings the confirmation goes on with the
    same gate, in this process. ADK reports an error of a plugin as `RuntimeError`, with ours as its cause.
    """

    def __init__(self, policy: Policy, *, strict: bool = True) -> None:
        super().__init__(name="maymust")
        self.policy: Policy = as_policy(policy)
        check_rules(FRAMEWORK, policy, {}, strict=strict)
        self._runs: OrderedDict[str, Turnstile] = OrderedDict()
        self._waiting: OrderedDict[str, Turnstile] = OrderedDict()

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Begin a run, or go on with the one that waits for the confirmation this invocation brings."""
        run = self._waiting.pop(invocation_context.invocation_id, None)
        if run is None and _is_confirmation(invocation_context.session.events):
            raise RunError("no run of this process waits for this confirmation, so its steps are not known here")
        run = run or Turnstile(self.policy)
        _keep(self._runs, invocation_context.invocation_id, run)

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """Forget the run, unless it waits for a person."""
        run = self._runs.pop(invocation_context.invocation_id, None)
        if run is not None and run.is_parked:
            _keep(self._waiting, invocation_context.invocation_id, run)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Put the permit into the request: declarations, function-calling config, and a tool for notes that is not declared."""
        run = self._run(callback_context)
        permit = run.permit(name for name in llm_request.tools_dict if name not in (ANSWER, NOTE))
        llm_request.tools_dict = {**llm_request.tools_dict, NOTE: BaseTool(name=NOTE, description="")}
        config = (llm_request.config or types.GenerateContentConfig()).model_copy()
        config.tools = [tool for tool in (_narrowed(tool, permit) for tool in config.tools or ()) if tool is not None] or None
        if config.tools:
            config.tool_config = _tool_config(config.tool_config, permit, ANSWER in llm_request.tools_dict)
        llm_request.config = config

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> Any:
        """Take in the calls; a text where the run may not end gets a call for a note beside it, so that the flow goes on."""
        if llm_response.partial or llm_response.error_code:
            return None
        parts = list(llm_response.content.parts or ()) if llm_response.content else []
        calls = [part.function_call for part in parts if part.function_call]
        for call in calls:
            call.id = call.id or f"{_ID}{uuid.uuid4()}"
        run = self._run(callback_context)
        run.begin(
            {"name": FINAL_ANSWER if one.name == ANSWER else one.name, "arguments": one.args or {}, "call_id": one.id} for one in calls
        )
        if calls:
            return None
        text = any(part.text and not part.thought for part in parts)
        objection = run.objection(empty=not text)
        if objection is None:
            return None
        note = types.FunctionCall(id=f"{_ID}{uuid.uuid4()}", name=NOTE, args={"note": objection})
        content = types.Content(role="model", parts=[*parts, types.Part(function_call=note)])
        return llm_response.model_copy(update={"content": content})

    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> dict[str, Any] | None:
        """Let a call through, ask about it, or answer it with the reason why not."""
        if tool.name == NOTE:
            return {"error": tool_args.get("note", "")}
        run, name = self._run(tool_context), tool_context.function_call_id
        word = await run.aenter(name, tool_args)
        if word is None or not word.allowed:
            return {"error": word.reason if word is not None else "not yet: it depends on a call that waits for a person"}
        if not word.ask:
            return None
        no, person = await run.aask(name)
        if person is not None:
            if tool_context.tool_confirmation is None:
                tool_context.request_confirmation(hint="; ".join(person.reasons) or f"May {tool.name} be called?")
                tool_context.actions.skip_summarization = True
                run.park(name)
                return {"error": "This tool call waits for a person's yes."}
            no = run.settle(person, bool(tool_context.tool_confirmation.confirmed))
        if no is None:
            return None
        run.leave(name, Outcome.DENIED)
        return {"error": no}

    async def after_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any) -> None:
        """Report how a call came back."""
        if tool.name == NOTE:
            return
        run, name = self._run(tool_context), tool_context.function_call_id
        confirmation = tool_context.tool_confirmation
        if name in (tool_context.actions.requested_tool_confirmations or {}):
            run.park(name)
        elif confirmation is not None and not confirmation.confirmed:
            run.leave(name, Outcome.DENIED)
        else:
            # ADK wraps what is no dict.
            run.leave(name, Outcome.OK, result["result"] if isinstance(result, dict) and result.keys() == {"result"} else result)

    async def on_tool_error_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: Exception) -> None:
        """Report a call that failed; whether it ends the run is not ours to say."""
        self._run(tool_context).leave(tool_context.function_call_id, Outcome.FAILED)

    def _run(self, context: Any) -> Turnstile:
        run = self._runs.get(context.invocation_id)
        if run is None:
            raise RunError("the policy has not seen this invocation begin; a PolicyPlugin belongs into the app's plugins")
        return run


def _keep(runs: OrderedDict[str, Turnstile], key: str, run: Turnstile) -> None:
    runs[key] = run
    while len(runs) > _RUNS:
        runs.popitem(last=False)


def _is_confirmation(events: Sequence[Any]) -> bool:
    """True when the last thing a user said is an answer to a request for confirmation."""
    last = next((event for event in reversed(events) if event.author == "user"), None)
    return last is not None and any(one.name == CONFIRMATION for one in last.get_function_responses())


def _narrowed(tool: Any, permit: Permit) -> Any:
    """A tool of the request with only the declarations that may be called; other kinds as they are. None when nothing is left."""
    declarations = getattr(tool, "function_declarations", None)
    if not declarations:
        return tool
    names = {*shown(permit), *([ANSWER] if permit.may_stop else [])}
    known = {*permit.tools, ANSWER}
    kept = [one for one in declarations if one.name in names or one.name not in known]
    return tool.model_copy(update={"function_declarations": kept}) if kept else None


def _tool_config(given: Any, permit: Permit, structured: bool) -> Any:
    """The permit as Gemini's function-calling config."""
    wanted = choice(permit)
    if wanted == "auto":
        return given
    mode, names = types.FunctionCallingConfigMode, [*shown(permit)] if wanted == "required" else [wanted]
    if structured and permit.may_stop:
        names = [ANSWER] if wanted == "none" else [*names, ANSWER]
    elif wanted == "none":
        return types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode=mode.NONE))
    return types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode=mode.ANY, allowed_function_names=names))

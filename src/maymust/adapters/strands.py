"""A policy in a Strands agent: `Agent(..., plugins=[PolicyPlugin(policy)])`, last in the list."""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

from maymust.errors import RunError, missing

try:
    from strands.hooks import AfterInvocationEvent, AfterToolCallEvent, BeforeInvocationEvent
    from strands.interrupt import InterruptException
    from strands.middleware.stages import ExecuteToolStage, InvokeModelStage
    from strands.plugins import Plugin
    from strands.tools.structured_output.structured_output_tool import StructuredOutputTool
    from strands.types.events import ModelStopReason, ToolResultEvent
except ImportError as _fault:
    raise missing("this adapter needs Strands", "strands", _fault) from _fault

from maymust.adapters.limits import as_policy, check_rules, choice, shown
from maymust.adapters.turnstile import Turnstile
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER

__all__ = ["PolicyPlugin"]

FRAMEWORK = "Strands"
STATE = "maymust"
"""The key under which an agent's state keeps a run that waits for a person."""
QUESTION = "maymust"
"""The name of the interrupt that a question raises."""


class PolicyPlugin(Plugin):
    """Holds every invocation of an agent to a policy. One object serves any number of agents: each invocation has a gate of its own.

    policy   its tools are the agent's, by name. Structured output counts as `final_answer`
    strict   False: what Strands cannot enforce is a warning instead of an UnsupportedRuleError

    A requirement that asks without a handler interrupts the agent; answer it with an `interruptResponse` of True, False or
    `{"allow": ..., "reason": ...}`. The agent's state keeps the steps of an interrupted run, so a session goes on with them.
    """

    name = "maymust"

    def __init__(self, policy: Policy, *, strict: bool = True) -> None:
        super().__init__()
        self.policy: Policy = as_policy(policy)
        check_rules(FRAMEWORK, policy, {}, strict=strict)
        self._runs: weakref.WeakKeyDictionary[Any, Turnstile] = weakref.WeakKeyDictionary()

    def init_agent(self, agent: Any) -> None:
        """Take the agent's stages."""
        agent.add_middleware(InvokeModelStage, self._model)
        agent.add_middleware(ExecuteToolStage, self._tool)
        agent.add_hook(self._begin, BeforeInvocationEvent)
        agent.add_hook(self._report, AfterToolCallEvent)
        agent.add_hook(self._keep, AfterInvocationEvent)

    def _begin(self, event: Any) -> None:
        """Begin a run, unless this invocation answers an interrupt of the last one."""
        if not event.agent._interrupt_state.activated:
            self._runs[event.agent] = Turnstile(self.policy)
        elif event.agent not in self._runs:
            kept = event.agent.state.get(STATE)
            if kept is None:
                raise RunError("the agent was interrupted in a run whose steps are not known here")
            run = self._runs[event.agent] = Turnstile.from_dict(self.policy, kept, patient=False)
            run.permit(kept["present"])
            run.begin(kept["batch"])

    def _keep(self, event: Any) -> None:
        run = self._runs.get(event.agent)
        if run is not None and run.is_parked:
            event.agent.state.set(STATE, run.to_dict() | {"present": list(run.present or ()), "batch": run.pending})
        elif event.agent.state.get(STATE) is not None:
            event.agent.state.delete(STATE)

    def _report(self, event: Any) -> None:
        """A call that somebody else cancelled never gets to the stage; nobody is to wait for it."""
        run = self._runs.get(event.agent)
        if run is not None and event.cancel_message is not None:
            run.doom(event.tool_use["toolUseId"], Outcome.DENIED)

    async def _model(self, context: Any, next_fn: Callable[[Any], Any]) -> AsyncIterator[Any]:
        """Call the model under the permit, again for a text where the run may not end."""
        run = self._runs[context.agent]
        registry = context.agent.tool_registry
        tools = {**registry.registry, **registry.dynamic_tools}
        answers = {name for name, tool in tools.items() if isinstance(tool, StructuredOutputTool)}
        asked = context
        while True:
            permit = run.permit(spec["name"] for spec in context.tool_specs if spec["name"] not in answers)
            held: list[Any] | None = None if permit.may_stop else []
            stop = None
            async for event in next_fn(_narrowed(asked, permit, answers)):
                if isinstance(event, ModelStopReason):
                    stop = event
                elif held is None:
                    yield event
                else:
                    held.append(event)
            objection = None if stop is None else _objection(run, stop.message, answers)
            if stop is None or objection is None:
                for event in held or ():
                    yield event
                if stop is not None:
                    yield stop
                return
            nudge = {"role": "user", "content": [{"text": objection}]}
            said = [stop.message] if stop.message["content"] else []
            asked = asked.replace(messages=[*asked.messages, *said, nudge])

    async def _tool(self, context: Any, next_fn: Callable[[Any], Any]) -> AsyncIterator[Any]:
        """Let a call through, ask about it, or answer it with the reason why not."""
        run, name = self._runs.get(context.agent), context.tool_use["toolUseId"]
        if run is None or not run.knows(name):
            if hasattr(context, "_background_interrupt"):
                raise RunError("a background task runs outside of the turn that asked for it, so it cannot be gated")
            # Your own code calls the tool (`agent.tool.search()`): no model asked for it.
            async for event in next_fn(context):
                yield event
            return
        word = await run.aenter(name, None if isinstance(context.tool, StructuredOutputTool) else context.tool_use["input"])
        if word is None or not word.allowed:
            text = (word.reason or "") if word is not None else "not yet: it depends on a call that waits for a person"
            yield _result(name, text)
            return
        try:
            no, person = await run.aask(name) if word.ask else (None, None)
            if person is not None:
                reason = {"tool": person.tool, "arguments": person.arguments, "reasons": list(person.reasons)}
                no = run.settle(person, context.interrupt(QUESTION, reason=reason).response)
            if no is not None:
                run.leave(name, Outcome.DENIED)
                yield _result(name, no)
                return
            async for event in next_fn(context):
                if isinstance(event, ToolResultEvent):
                    failed = event.tool_result["status"] == "error"
                    run.leave(name, Outcome.FAILED if failed else Outcome.OK, _output(event.tool_result))
                yield event
        except InterruptException:
            run.park(name)
            raise
        except BaseException:
            run.leave(name, Outcome.FAILED)
            raise


def _narrowed(context: Any, permit: Permit, answers: set[str]) -> Any:
    """The context under the permit. Strands has no way to forbid calls altogether; they are refused when they come."""
    names, wanted = {*shown(permit), *(answers if permit.may_stop else ())}, choice(permit)
    if context.tool_choice and permit.may_stop:
        return context.replace(tool_specs=[spec for spec in context.tool_specs if spec["name"] in names])
    specs = [spec for spec in context.tool_specs if spec["name"] in names]
    if wanted == "none":
        return context
    picked = {"auto": context.tool_choice, "required": {"any": {}}}.get(wanted, {"tool": {"name": wanted}})
    return context.replace(tool_specs=specs, tool_choice=picked)


def _objection(run: Turnstile, message: Any, answers: set[str]) -> str | None:
    uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
    run.begin(
        {"name": FINAL_ANSWER if use["name"] in answers else use["name"], "arguments": use["input"], "call_id": use["toolUseId"]}
        for use in uses
    )
    if uses:
        return None
    return run.objection(empty=not any(block.get("text") for block in message["content"]))


def _output(result: Any) -> Any:
    blocks = result["content"]
    if len(blocks) == 1:
        return blocks[0].get("json", blocks[0].get("text"))
    return [block.get("json", block.get("text")) for block in blocks]


def _result(name: str, text: str) -> ToolResultEvent:
    return ToolResultEvent({"toolUseId": name, "status": "error", "content": [{"text": text}]})

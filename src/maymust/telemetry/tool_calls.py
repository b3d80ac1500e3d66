"""`execute_tool` spans: one for each tool that ran. What did not run is an event of the run."""

from __future__ import annotations

from maymust.agent import events
from maymust.core.permit import Permit
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.telemetry import content, names
from maymust.telemetry.decisions import Value
from maymust.telemetry.scope import OpenSpan, Scope, of_call, of_output

_EVENTS = {Outcome.DENIED: names.CALL_DENIED, Outcome.FAILED: names.CALL_FAILED, Outcome.OK: names.CALL_ANSWERED}


class ToolCalls:
    """The calls of one run."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._open: dict[str, tuple[OpenSpan, events.CallStarted]] = {}

    def started(self, event: events.CallStarted) -> None:
        """A body is about to run. A listener may still answer or refuse it; the span is not told then."""
        scope = self._scope
        earlier = self._open.pop(event.call_id, None)
        if earlier is not None:
            # Middleware tries it again.
            earlier[0].set({names.OUTCOME: Outcome.FAILED.value})
            scope.end(earlier[0], Outcome.FAILED.value)
        attributes: dict[str, Value] = {**of_call(event.tool, event.call_id), names.SPAN_KIND: "TOOL", names.OI_TOOL_NAME: event.tool}
        attributes[names.TOOL_TYPE] = "function"
        state = scope.state()
        tool = next((one for one in state.tools if one.name == event.tool), None) if state is not None else None
        if tool is not None and tool.description:
            attributes[names.TOOL_DESCRIPTION] = tool.description
        if scope.node is not None:
            attributes[names.NODE_ID] = scope.node
        if scope.outlet.content:
            shown = content.text_of(dict(event.arguments))
            attributes |= {names.TOOL_ARGUMENTS: shown, names.OI_INPUT: shown, names.OI_INPUT_TYPE: "application/json"}
        self._open[event.call_id] = scope.begin("execute_tool", event.tool, attributes, measured={names.TOOL_NAME: event.tool}), event

    def refused(self, event: events.CallRefused, permit: Permit | None) -> None:
        """A call was not let through."""
        attributes = of_call(event.tool, event.call_id)
        known = permit is not None and event.tool in permit.tools
        if permit is not None and known and permit.reasons.get(event.tool):
            attributes[names.REASONS] = tuple(permit.reasons[event.tool])
        if self._scope.outlet.content:
            attributes[names.TEXT] = event.reason
        self._scope.event(names.CALL_REFUSED, attributes)
        # A name that the model has made up is no value to count by.
        self._scope.outlet.instruments.refused({names.TOOL_NAME: event.tool if known else "_OTHER"})

    def finished(self, event: events.CallFinished) -> None:
        """A call has its result."""
        call, cause = self._open.pop(event.call_id, (None, None))
        if call is None or cause is None:
            self._told_only(event)
        elif event.outcome is Outcome.REFUSED or cause.output is not None:
            call.leave()
            self._told_only(event)
        else:
            call.set({names.OUTCOME: event.outcome.value})
            if self._scope.outlet.content:
                call.set({names.TOOL_RESULT: event.text, **of_output(event.text)})
            failed = event.outcome is not Outcome.OK
            error = event.text if failed and self._scope.outlet.content else None
            self._scope.end(call, event.outcome.value if failed else None, error)

    def _told_only(self, event: events.CallFinished) -> None:
        """No tool was run for it. Refused calls have been told already, and the final answer is the run's output."""
        if event.outcome is Outcome.REFUSED or (event.tool == FINAL_ANSWER and event.outcome is Outcome.OK):
            return
        attributes = of_call(event.tool, event.call_id)
        if self._scope.outlet.content:
            attributes[names.TEXT] = event.text
        self._scope.event(_EVENTS[event.outcome], attributes)

    def close(self, outcome: str, fault: str | None) -> None:
        """The run is over, or pauses, while tools were at work."""
        for call, _ in self._open.values():
            call.set({names.OUTCOME: outcome})
            self._scope.end(call, fault)
        self._open.clear()

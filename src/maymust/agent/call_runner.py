"""One call from its admission to its result: middleware, gate and schema, person, body (design 3.8)."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from typing import Any

from maymust.agent import events
from maymust.agent.actions import CallPending, Decided, ToolFinished, ToolStarted
from maymust.agent.admission import call_permit
from maymust.agent.approval import answer_given, ask_handler, denial_text, questions_about, reasons_to_ask, same
from maymust.agent.body import BodyTimeout, run_body
from maymust.agent.call_arguments import outside_of, read_arguments
from maymust.agent.call_outcome import CallFailed, Done, Paused, answer_given_instead, render_given, shorten
from maymust.agent.call_record import Approval, CallRecord, PendingCall, find_call
from maymust.agent.middleware import Onion
from maymust.agent.question_order import QuestionOrder
from maymust.agent.secrets import Veil, raise_veiled, veil_of
from maymust.agent.session import Session
from maymust.core.permit import Permit
from maymust.core.refusal import refusal
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import PermitError, RunError, ToolError, text_of
from maymust.tools.arguments import ArgumentsInvalid, Parsed
from maymust.tools.context import FunctionInvocationContext
from maymust.tools.function_tool import Tool
from maymust.tools.output import OutputInvalid, encodable, own_json, render_output, storable

log: logging.Logger = logging.getLogger(__name__)


class CallRunner:
    """Takes one call through its stations and reports its events to the session."""

    def __init__(self, session: Session, record: CallRecord, gate: QuestionOrder) -> None:
        self._session, self._record, self._gate = session, record, gate
        arguments, self._fault = read_arguments(record.raw_arguments)
        state = session.state
        present = state.present
        tool: Tool | None = session.plan.final.tool if record.name == FINAL_ANSWER else present.by_name.get(record.name)
        self._tool = tool
        self._veil = veil_of(record.name, present)
        self._context = FunctionInvocationContext(
            name=record.name,
            function=tool,
            call_id=record.call_id,
            arguments=arguments,
            raw_arguments=record.raw_arguments,
            idempotency_key=f"{state.run_id}/{len(state.turns)}/{record.call_id}",
            run=session,
        )
        self._first_arguments = arguments
        self._done: Done | None = None
        self._shown: Any = None

    async def run(self) -> None:
        """Bring the call to its result, or leave it pending. Raises what stops the run."""
        try:
            if self._session.middleware:
                await self._through()
            else:
                await self._straight()
        except Paused:
            return
        finally:
            self._gate.passed(self._record.call_id)

    async def _straight(self) -> None:
        """Without middleware there is nobody to raise a failure to."""
        try:
            done = await self._outcome()
        except Exception as fault:
            self._finish(self._so_far())
            raise_veiled(fault, self._veil)
        self._context._result = done.text
        self._finish(done)

    async def _through(self) -> None:
        """From the outermost middleware to the core and back."""
        onion = Onion(self._session.middleware, self._context, self._core)
        try:
            await onion.enter()
        except ToolError as fault:
            if self._done is None:
                # For a call that is not admitted this changes the text only, like an answer.
                outcome = Outcome.FAILED if self._record.refusal is None else Outcome.REFUSED
                self._done = Done(outcome, shorten(text_of(fault)), arguments=self._first_arguments)
            elif fault is not self._done.fault:
                # What ran has run: the step keeps its outcome, and the model reads what the middleware has to say.
                self._context.result = text_of(fault)
        except Exception as fault:
            if self._done is None or self._done.fault is not fault:
                self._finish(self._so_far())
                raise_veiled(fault, self._veil)
        try:
            done = self._with_middleware(onion)
        except RunError:
            self._finish(self._so_far())
            raise
        self._finish(done)

    def _so_far(self) -> Done:
        """The outcome of a call that an error of the run stops here: what has run has run."""
        return self._done or Done(Outcome.REFUSED, "the call was stopped by an error of the run", arguments=self._first_arguments)

    def _with_middleware(self, onion: Onion) -> Done:
        """The outcome, with what middleware put in the result."""
        context, done = self._context, self._done
        if done is not None:
            if context.result is not self._shown:
                return replace(done, text=render_given(context.result, f"middleware around {self._record.name}")[1])
            return done
        verdict = context._verdict
        if verdict == "answered" and self._record.refusal is None:
            return self._answered(context.result)
        if verdict is not None:
            return Done(
                Outcome.REFUSED, render_given(context.result, f"middleware around {self._record.name}")[1], arguments=context.arguments
            )
        text = self._record.refusal or f"the middleware {onion.stopped_at!r} neither passed the call on nor answered it, so it was not run"
        return Done(Outcome.REFUSED, text, arguments=context.arguments)

    def _answered(self, value: Any) -> Done:
        if self._record.name == FINAL_ANSWER:
            return answer_given_instead(self._session.plan.final, value, self._context.arguments)
        output, text = render_given(value, f"middleware around {self._record.name}")
        outcome = Outcome.OK if self._arguments_are_inside() else Outcome.REFUSED
        return Done(outcome, text, output if outcome is Outcome.OK else None, self._context.arguments)

    def _arguments_are_inside(self) -> bool:
        """Whether a rule about arguments would let the call run: an answer must not count where the call would be refused."""
        if self._tool is None or not isinstance(self._context.arguments, dict):
            return True
        try:
            parsed = self._tool.parse(self._context.arguments)
            permit = call_permit(self._session.state, self._record.call_id)
        except (ArgumentsInvalid, PermitError):
            return True
        return outside_of(permit, self._record.name, parsed.json) is None

    async def _core(self) -> None:
        """Gate, schema, person, body. A failed outcome raises, so that middleware sees it as the exception out of `call_next()`."""
        self._done = None
        done = await self._outcome()
        self._done = done
        self._context._result = self._shown = done.text
        if done.fault is not None:
            raise done.fault

    async def _outcome(self) -> Done:
        record, context = self._record, self._context
        if record.refusal is not None or self._tool is None:
            return Done(Outcome.REFUSED, record.refusal or f"there is no tool called {record.name!r}", arguments=context.arguments)
        if context.arguments is None or not isinstance(context.arguments, dict):
            text = self._fault or "the arguments must be one JSON object"
            return Done(Outcome.FAILED, text, fault=CallFailed(text))
        try:
            parsed = self._tool.parse(context.arguments)
        except ArgumentsInvalid as fault:
            return Done(Outcome.FAILED, str(fault), arguments=dict(context.arguments), fault=fault)
        denied = self._denied_before(parsed)
        if denied is not None:
            return denied
        try:
            permit = call_permit(self._session.state, record.call_id)
        except PermitError as fault:
            return Done(Outcome.REFUSED, f"not now: {fault}", arguments=parsed.json)
        if record.name not in permit.allowed:
            return Done(Outcome.REFUSED, refusal(permit, record.name, permit.allowed), arguments=parsed.json)
        outside = outside_of(permit, record.name, parsed.json)
        if outside is not None:
            return Done(Outcome.REFUSED, f"not with these arguments: {outside}", arguments=parsed.json)
        if record.name == FINAL_ANSWER:
            _, output = self._session.plan.final.parse(context.arguments)
            return Done(Outcome.OK, "The answer is accepted.", output, parsed.json)
        if record.name in permit.asks:
            refused = await self._ask(permit, parsed)
            if refused is not None:
                return refused
        return await self._body(self._tool, parsed)

    def _denied_before(self, parsed: Parsed) -> Done | None:
        """The outcome of a call that a person has said no to; what the no may have closed by now does not matter."""
        for answer in find_call(self._session.state.calls, self._record.call_id).approvals:
            if not answer.allow and same(answer.arguments, parsed.json):
                return Done(Outcome.DENIED, denial_text(answer), arguments=parsed.json)
        return None

    async def _ask(self, permit: Permit, parsed: Parsed) -> Done | None:
        """Put the questions about this call; a denied outcome for a no, None when it may run. Raises Paused."""
        record = self._record
        order = [requirement.name for requirement in self._session.plan.policy.requirements]
        names = questions_about(permit, record.name, parsed.json, order)
        if not names:
            return None
        await self._gate.turn_of(record.call_id)
        state = self._session.state
        current = find_call(state.calls, record.call_id)
        policy = {requirement.name: requirement for requirement in state.plan.policy.requirements} if state.plan else {}
        waiting: list[str] = []
        for name in names:
            answer = answer_given(current.approvals, name, parsed.json)
            if answer is None:
                handler = getattr(policy.get(name), "handler", None)
                if handler is None:
                    waiting.append(name)
                    continue
                answer = await self._put(self._pending(parsed, (name,), permit), handler, policy[name], parsed)
            if not answer.allow:
                return Done(Outcome.DENIED, denial_text(answer), arguments=parsed.json)
        if waiting:
            call = self._pending(parsed, tuple(waiting), permit)
            self._emit(events.QuestionAsked, call=call)
            self._session.apply(CallPending(record.call_id, parsed.json, call.requirements, call.reasons))
            raise Paused
        return None

    async def _put(self, call: PendingCall, handler: Any, requirement: Any, parsed: Parsed) -> Approval:
        name = requirement.name
        self._emit(events.QuestionAsked, call=call)
        decision = await ask_handler(handler, replace(call, arguments=own_json(parsed.json)), name)
        shared = getattr(requirement, "remember_in", None)
        if shared is not None:
            shared.put(self._record.name, decision)
        self._session.apply(
            Decided(self._record.call_id, decision.allow, decision.reason, decision.by, decision.remember, name, parsed.json)
        )
        self._emit(events.QuestionAnswered, call=call, allow=decision.allow, reason=decision.reason, by=decision.by)
        return Approval(name, decision.allow, parsed.json, decision.reason, decision.by)

    def _pending(self, parsed: Parsed, names: tuple[str, ...], permit: Permit) -> PendingCall:
        arguments, tool = json.loads(json.dumps(parsed.json)), self._record.name
        return PendingCall(self._record.call_id, tool, arguments, names, reasons_to_ask(permit, tool, names))

    async def _body(self, tool: Tool, parsed: Parsed) -> Done:
        session, record = self._session, self._record
        if self._veil is not None:
            self._veil.learn(parsed.values)
        if session.listeners.wants(events.CallStarted):
            started = events.CallStarted(session.state.run_id, record.call_id, record.name, own_json(parsed.json))
            await session.listeners.ask(started)
            if started.refusal is not None:
                return Done(Outcome.REFUSED, started.refusal, arguments=parsed.json)
            if started.output is not None:
                output, text = render_given(started.output, f"listener to {record.name}")
                return Done(Outcome.OK, text, output, parsed.json)
        session.apply(ToolStarted(record.call_id, parsed.json))
        self._gate.passed(record.call_id)
        try:
            output, text = render_output(await run_body(tool, parsed.values, self._context, session.workers))
        except asyncio.CancelledError:
            session.give_up(record.call_id)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # By whoever waits: the run, which has its own words for it, or middleware that has lost patience.
                text = f"{tool.name} was cancelled while it ran; it may still have taken effect"
                self._done = Done(Outcome.FAILED, text, arguments=parsed.json)
                raise
            text = f"{tool.name} was cancelled from within"
            return Done(Outcome.FAILED, text, arguments=parsed.json, fault=CallFailed(text))
        except (BodyTimeout, OutputInvalid, ToolError) as fault:
            session.give_up(record.call_id)
            return Done(Outcome.FAILED, shorten(text_of(fault)) or type(fault).__name__, arguments=parsed.json, fault=fault)
        except Exception as fault:
            log.info("run %s: %s raised %s", session.state.run_id, tool.name, type(fault).__name__, exc_info=self._veil is None)
            text = shorten(f"{type(fault).__name__}: {text_of(fault)}") if session.show_errors else f"{tool.name} failed"
            return Done(Outcome.FAILED, text, arguments=parsed.json, fault=fault)
        return Done(Outcome.OK, text, output, parsed.json)

    def _finish(self, done: Done | None) -> None:
        if done is None:
            raise RunError(f"call {self._record.call_id!r} ended without an outcome")
        done.text = encodable(done.text)
        if self._veil is not None:
            done = self._veiled(done, self._veil)
        session, record = self._session, self._record
        if done.outcome is not Outcome.OK or session.middleware:
            # No schema has let these through, or middleware has put them there.
            done.arguments = storable(done.arguments) if isinstance(done.arguments, dict) else None
        added, removed = session.take_changes(record.call_id)
        session.apply(ToolFinished(record.call_id, done.outcome, done.text, done.output, done.arguments, added, removed, session.seconds))
        if session.listeners.any and not record.text_answer:
            if done.outcome is Outcome.REFUSED:
                self._emit(events.CallRefused, call_id=record.call_id, tool=record.name, reason=done.text)
            said = {"outcome": done.outcome, "text": done.text, "arguments": own_json(done.arguments), "output": own_json(done.output)}
            self._emit(events.CallFinished, call_id=record.call_id, tool=record.name, **said)

    def _veiled(self, done: Done, veil: Veil) -> Done:
        """The outcome with secrets masked."""
        veil.learn(self._first_arguments).learn(self._context.arguments)
        return replace(done, text=veil.text(done.text), output=veil.value(done.output), arguments=veil.arguments(done.arguments))

    def _emit(self, kind: type[Any], **fields: Any) -> None:
        if self._session.listeners.wants(kind):
            self._session.listeners.emit(kind(run_id=self._session.state.run_id, **fields))

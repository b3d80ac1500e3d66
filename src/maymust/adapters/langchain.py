"""A policy in a LangChain 1.x agent: `create_agent(..., middleware=[..., PolicyMiddleware(policy)])`, last in the list."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, NotRequired

from maymust.errors import missing

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ExtendedModelResponse, ModelRequest, ModelResponse, hook_config
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langgraph.errors import GraphBubbleUp, GraphInterrupt
    from langgraph.types import Command, interrupt
except ImportError as _fault:
    raise missing("this adapter needs LangChain", "langchain", _fault) from _fault

from maymust.adapters.langchain_messages import answer_names, batch, narrowed, report, take_over
from maymust.adapters.limits import as_policy, check_rules
from maymust.adapters.turnstile import Turnstile
from maymust.agent.call_record import PendingCall
from maymust.core.policy import Policy
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER

__all__ = ["PolicyMiddleware"]

FRAMEWORK = "LangChain"
NOT_YET = "not now: a call in the same turn did not succeed, or something is still owed"
_RUNS = 1024
"""So many runs keep their turn in memory; an older one is taken up again from its state."""


class PolicyState(AgentState[Any]):
    """The agent's state, with what the policy has to know of a run."""

    maymust: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]  # type: ignore[valid-type]


class PolicyMiddleware(AgentMiddleware[PolicyState, Any, Any]):
    """Holds every run of an agent to a policy. One object serves any number of runs; what belongs to a run is in its state.

    policy   its tools are the agent's, by name. Structured output counts as `final_answer`
    strict   False: what LangChain cannot enforce is a warning instead of an UnsupportedRuleError

    Put it last in `middleware`: what stands after it could change the request again. A requirement that asks without a handler pauses
    the graph with `interrupt`, which takes a checkpointer; go on with `Command(resume=True)`, `False` or `{"allow": ..., "reason": ...}`.
    """

    state_schema = PolicyState

    def __init__(self, policy: Policy, *, strict: bool = True) -> None:
        super().__init__()
        self.policy: Policy = as_policy(policy)
        self.tools: list[Any] = []
        check_rules(FRAMEWORK, policy, {}, strict=strict)
        self._runs: OrderedDict[str, Turnstile] = OrderedDict()
        self._lock = threading.RLock()

    def before_agent(self, state: PolicyState, runtime: Any) -> dict[str, Any]:
        """Begin a run: its history is empty, whatever the conversation holds."""
        return {"maymust": {"run": uuid.uuid4().hex, "turn": 0}}

    async def abefore_agent(self, state: PolicyState, runtime: Any) -> dict[str, Any]:
        """`before_agent`."""
        return self.before_agent(state, runtime)

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: PolicyState, runtime: Any) -> dict[str, Any] | None:
        """End the run when a structured answer came beside other calls, and they all succeeded."""
        book = state["maymust"]
        if "answer" not in book:
            return None
        answer, call = book["answer"], {"id": book["answer_id"], "name": book["answer_name"]}
        rest = {key: value for key, value in book.items() if not key.startswith("answer")}
        calls, run = [one for one in batch(state["messages"]) if one[1] is not None], self._find(book)
        if not run.begun:
            take_over(run, calls)
        if all(how is Outcome.OK for _, how, _ in calls) and run.may_stop():
            said = ToolMessage(f"Returning structured response: {answer}", tool_call_id=call["id"], name=call["name"])
            return {"messages": [said], "structured_response": answer, "jump_to": "end", "maymust": rest}
        return {"messages": [_refused(call, NOT_YET)], "maymust": rest}

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: PolicyState, runtime: Any) -> dict[str, Any] | None:
        """`before_model`."""
        update: dict[str, Any] | None = self.before_model(state, runtime)
        return update

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]) -> Any:
        """Put the permit into the request."""
        run, book = self._turn(request)
        return _reply(run, book, request, handler(narrowed(request, run)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        """`wrap_model_call`."""
        run, book = self._turn(request)
        return _reply(run, book, request, await handler(narrowed(request, run)))

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: PolicyState, runtime: Any) -> dict[str, Any] | None:
        """Send an answer back to the model that comes where the run may not end."""
        last = state["messages"][-1]
        if not isinstance(last, AIMessage) or last.tool_calls:
            return None
        book, run = state["maymust"], self._find(state["maymust"])
        objection = run.objection(empty=not last.text)
        if objection is None:
            return None
        nudge = HumanMessage(objection, additional_kwargs={"maymust": "nudge"})
        return {"messages": [nudge], "jump_to": "model", "maymust": {**book, "bad_replies": run.bad_replies}}

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: PolicyState, runtime: Any) -> dict[str, Any] | None:
        """`after_model`."""
        update: dict[str, Any] | None = self.after_model(state, runtime)
        return update

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Let a call through, ask about it, or answer it with the reason why not."""
        run, call = self._enter(request)
        word = run.enter(call["id"], call["args"])
        if word is None or not word.allowed:
            return _refused(call, None if word is None else word.reason)
        try:
            no = _person(run, call, *run.ask(call["id"])) if word.ask else None
            return no or report(run, call, handler(request))
        except GraphBubbleUp:
            run.park(call["id"])
            raise
        except BaseException:
            run.leave(call["id"], Outcome.FAILED)
            raise

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_tool_call`."""
        run, call = self._enter(request)
        word = await run.aenter(call["id"], call["args"])
        if word is None or not word.allowed:
            return _refused(call, None if word is None else word.reason)
        try:
            no = _person(run, call, *await run.aask(call["id"])) if word.ask else None
            return no or report(run, call, await handler(request))
        except GraphBubbleUp:
            run.park(call["id"])
            raise
        except BaseException:
            run.leave(call["id"], Outcome.FAILED)
            raise

    def _enter(self, request: Any) -> tuple[Turnstile, dict[str, Any]]:
        book = request.state["maymust"]
        with self._lock:
            run = self._find(book)
            if not run.begun:
                calls = batch(request.state["messages"])
                run.begin(call for call, how, _ in calls if how is None and call["name"] != book.get("answer_name"))
                take_over(run, [one for one in calls if one[1] is not None])
        return run, request.tool_call

    def _turn(self, request: ModelRequest[Any]) -> tuple[Turnstile, dict[str, Any]]:
        """The run with the permit of a new turn, and what the state has to keep."""
        book: dict[str, Any] = request.state["maymust"]
        with self._lock:
            run = self._runs.pop(book["run"], None)
        if run is None or run.number != book["turn"]:
            run = Turnstile.from_dict(self.policy, book, patient=True)
            if book["turn"]:
                take_over(run, batch(request.messages))
        else:
            for call, how, output in batch(request.messages) if book["turn"] else ():
                # Somebody else's middleware may have answered in the tool's place.
                run.leave(call["call_id"], how or Outcome.REFUSED, output)
            run.bad_replies = book.get("bad_replies", run.bad_replies)
        run.permit([tool.name for tool in request.tools if not isinstance(tool, dict)])
        run.number = book["turn"] + 1
        self._keep(book["run"], run)
        return run, {"run": book["run"], "turn": run.number, "present": list(run.present or ()), **run.to_dict()}

    def _find(self, book: Mapping[str, Any]) -> Turnstile:
        """The run in the middle of a turn; taken up from the state where this process does not know it."""
        with self._lock:
            run = self._runs.get(book["run"])
            if run is None or run.number != book["turn"]:
                # What siblings did elsewhere is not known here, so nobody waits for them.
                run = Turnstile.from_dict(self.policy, book, patient=False)
                run.permit(book.get("present"))
                run.number = book["turn"]
                self._keep(book["run"], run)
            return run

    def _keep(self, name: str, run: Turnstile) -> None:
        with self._lock:
            self._runs[name] = run
            while len(self._runs) > _RUNS:
                self._runs.popitem(last=False)


def _reply(run: Turnstile, book: dict[str, Any], request: ModelRequest[Any], response: Any) -> Any:
    """Judge a structured answer, which LangChain takes before its siblings have run."""
    message = next((one for one in response.result if isinstance(one, AIMessage)), None)
    names = answer_names(request.response_format)
    answers = [call for call in (message.tool_calls if message is not None else ()) if call["name"] in names]
    if message is not None and answers:
        if len(answers) < len(message.tool_calls):
            kept = [message, *(_refused(call, "not now: one answer is enough") for call in answers[1:])]
            if response.structured_response is None:
                kept = [message, *(_refused(call, "not now: the answer is not accepted") for call in answers)]
            else:
                book |= {"answer": response.structured_response, "answer_id": answers[0]["id"], "answer_name": answers[0]["name"]}
            response = ModelResponse(result=kept)
        else:
            run.begin({"name": FINAL_ANSWER, "arguments": call["args"], "call_id": call["id"]} for call in answers)
            words = [run.enter(call["id"]) for call in answers]
            if words[0] is not None and not words[0].allowed:
                reason = words[0].reason
                response = ModelResponse(result=[message, *(_refused(call, reason) for call in answers)])
            elif response.structured_response is None:
                run.leave(answers[0]["id"], Outcome.FAILED)
    return ExtendedModelResponse(model_response=response, command=Command(update={"maymust": book}))


def _refused(call: Mapping[str, Any], reason: str | None, outcome: Outcome = Outcome.REFUSED) -> ToolMessage:
    """The result of a call that did not run; the artifact is not sent to the model. Without a reason the task is run again later."""
    if reason is None:
        raise GraphInterrupt(())
    return ToolMessage(reason, tool_call_id=call["id"], name=call["name"], status="error", artifact={"maymust": outcome.value})


def _person(run: Turnstile, call: Mapping[str, Any], no: str | None, pending: PendingCall | None) -> ToolMessage | None:
    """Pause for a person where no handler has answered. None after a yes."""
    if pending is not None:
        asked = {"tool": pending.tool, "arguments": pending.arguments, "call_id": pending.call_id, "reasons": list(pending.reasons)}
        no = run.settle(pending, interrupt(asked))
    if no is None:
        return None
    run.leave(call["id"], Outcome.DENIED)
    return _refused(call, no, Outcome.DENIED)

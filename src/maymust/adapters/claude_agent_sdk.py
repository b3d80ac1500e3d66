"""A policy in the Claude Agent SDK: `ClaudeAgentOptions(hooks=policy_hooks(policy))`. Hooks are all that this SDK has to offer."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from maymust.errors import PermitError, RunError, missing

try:
    from claude_agent_sdk import HookMatcher
except ImportError as _fault:
    raise missing("this adapter needs the Claude Agent SDK", "claude-agent-sdk", _fault) from _fault

from maymust.adapters.limits import as_policy, check_rules, refuse
from maymust.adapters.turnstile import Turnstile
from maymust.core.policy import Policy
from maymust.core.step import Outcome

__all__ = ["policy_hooks"]

FRAMEWORK = "The Claude Agent SDK"
MISSING = {"hide": "its hooks cannot change what is sent to the model"}
_RUNS = 1024
_A_DAY = 24 * 3600.0
"""How long a hook may take: a person may be asked in it."""


def policy_hooks(policy: Policy, *, strict: bool = True) -> dict[str, list[Any]]:
    """Return hooks that hold every run of a client to the policy; a run is what comes of one prompt.

    policy   its tools by name; `search` also stands for `mcp__<server>__search`
    strict   False: what the SDK cannot enforce is a warning instead of an UnsupportedRuleError

    A requirement that asks without a handler answers `ask`, which goes to the `can_use_tool` of your options.
    """
    check_rules(FRAMEWORK, as_policy(policy), MISSING, strict=strict)
    hooks = _Hooks(policy, strict)
    callbacks = {
        "UserPromptSubmit": hooks.begin,
        "PreToolUse": hooks.before,
        "PostToolUse": hooks.after,
        "PostToolUseFailure": hooks.failed,
        "PostToolBatch": hooks.end_of_turn,
        "Stop": hooks.stop,
    }
    return {event: [HookMatcher(hooks=[callback], timeout=_A_DAY)] for event, callback in callbacks.items()}


class _Session:
    """One run of one agent: the main one, or a sub-agent."""

    def __init__(self, policy: Policy) -> None:
        self.run = Turnstile(policy)
        self.in_turn = False

    def turn(self) -> Turnstile:
        if not self.in_turn:
            self.run.permit()
            self.in_turn = self.run.begun = True
        return self.run


class _Hooks:
    """What is called, and when. An error of the policy ends the run: a hook that raises would let the call through."""

    def __init__(self, policy: Policy, strict: bool) -> None:
        self._policy = policy
        self._strict = strict
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()

    async def begin(self, data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        self._sessions.pop((data["session_id"], ""), None)
        return {}

    async def before(self, data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        session, name = self._session(data), self._name(data["tool_name"])
        if name not in self._policy.tools:
            return {}  # no rules speak of it
        call_id = data["tool_use_id"]
        try:
            run = session.turn()
            self._check_hidden(run)
            run.add({"name": name, "arguments": data["tool_input"], "call_id": call_id})
            word = await run.aenter(call_id)
            if word is None or not word.allowed:
                return _decision(
                    "deny", (word.reason or "") if word is not None else "not yet: it depends on a call that waits for a person"
                )
            no, person = await run.aask(call_id) if word.ask else (None, None)
        except Exception as problem:
            return _decision("deny", str(problem)) | {"continue_": False, "stopReason": str(problem)}
        if no is not None:
            run.leave(call_id, Outcome.DENIED)
            return _decision("deny", no)
        if person is not None:
            run.park(call_id)
            return _decision("ask", "; ".join(person.reasons) or f"May {name} be called?")
        return {}

    async def after(self, data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        self._session(data).run.leave(data["tool_use_id"], Outcome.OK, _output(data["tool_response"]))
        return {}

    async def failed(self, data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        self._session(data).run.leave(data["tool_use_id"], Outcome.FAILED)
        return {}

    async def end_of_turn(self, data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        self._session(data).in_turn = False
        return {}

    async def stop(self, data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        session = self._session(data)
        session.in_turn = False
        try:
            objection = session.turn().objection()
        except (PermitError, RunError) as problem:
            return {"continue_": False, "stopReason": str(problem)}
        session.in_turn = False
        return {} if objection is None else {"decision": "block", "reason": objection}

    def _session(self, data: Any) -> _Session:
        key = (data["session_id"], data.get("agent_id") or "")
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = _Session(self._policy)
            while len(self._sessions) > _RUNS:
                self._sessions.popitem(last=False)
        return session

    def _name(self, name: str) -> str:
        short = name.rsplit("__", 1)[-1] if name.startswith("mcp__") else name
        return short if name not in self._policy.tools and short in self._policy.tools else name

    def _check_hidden(self, run: Turnstile) -> None:
        """Rules of custom requirements are known only now."""
        if run.current is not None and run.current.hidden and self._strict:
            refuse(
                FRAMEWORK, [(name, f"hiding a tool ({MISSING['hide']})") for name in run.current.hidden], strict=True, features=("hide",)
            )


def _decision(word: str, reason: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": word, "permissionDecisionReason": reason}}


def _output(response: Any) -> Any:
    """An MCP tool's text blocks as one text; anything else as it is."""
    if isinstance(response, list) and response and all(isinstance(part, dict) and part.get("type") == "text" for part in response):
        return "".join(part["text"] for part in response)
    return response

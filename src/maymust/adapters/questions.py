"""Asking about a call in another framework's run: handlers first, then whoever the framework pauses for."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from maymust.agent.approval import as_decision, denial_text, questions_about, reasons_to_ask
from maymust.agent.call_record import Approval, PendingCall
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.requirements.permission import Decision

Memories = dict[str, dict[str, Any]]
"""Per requirement its memory in a run."""


class Questions:
    """The questions of one run. A handler is asked once about a call, however often the framework runs the call's task."""

    def __init__(self, policy: Policy) -> None:
        self._sources = {one.name: one for one in policy.requirements}
        self._answers: dict[tuple[str, str], Decision] = {}

    async def ask(self, call: Mapping[str, Any], permit: Permit, memories: Memories) -> tuple[str | None, PendingCall | None]:
        """Put a call's questions to their handlers, in policy order.

        Gives (text for the model, None) after a no, and (None, call) where somebody without a handler is still to be asked.
        """
        pending = self._pending(call, permit)
        left = []
        for name in pending.requirements:
            handler = getattr(self._sources.get(name), "handler", None)
            if handler is None:
                left.append(name)
                continue
            key = (pending.call_id, json.dumps([name, pending.arguments], sort_keys=True))
            decision = self._answers.get(key)
            if decision is None:
                answer = handler(pending)
                answer = await answer if inspect.isawaitable(answer) else answer
                decision = self._answers[key] = as_decision(answer, tool=pending.tool, requirement=name)
            no = self._kept(pending, (name,), decision, memories)
            if no is not None:
                return no, None
        if not left:
            return None, None
        return None, PendingCall(pending.call_id, pending.tool, pending.arguments, tuple(left), pending.reasons)

    def settle(self, call: PendingCall, answer: Any, memories: Memories) -> str | None:
        """Keep what a person said: True, False, a `Decision` or its fields. After a no, the text for the model."""
        if isinstance(answer, Mapping):
            answer = Decision(**answer)
        return self._kept(call, call.requirements, as_decision(answer, tool=call.tool, requirement=", ".join(call.requirements)), memories)

    def _pending(self, call: Mapping[str, Any], permit: Permit) -> PendingCall:
        arguments = json.loads(json.dumps(call["arguments"] or {}, default=str))
        names = questions_about(permit, call["name"], call["arguments"] or {}, list(self._sources))
        return PendingCall(call["call_id"], call["name"], arguments, names, reasons_to_ask(permit, call["name"], names))

    def _kept(self, call: PendingCall, names: tuple[str, ...], decision: Decision, memories: Memories) -> str | None:
        for name in names:
            source = self._sources.get(name)
            if decision.remember or getattr(source, "remember_choices", False):
                memories.setdefault(name, {}).setdefault("choices", {})[call.tool] = decision.choice()
            shared = getattr(source, "remember_in", None)
            if shared is not None:
                shared.put(call.tool, decision)
        if decision.allow:
            return None
        return denial_text(Approval(", ".join(names), False, call.arguments, decision.reason, decision.by))

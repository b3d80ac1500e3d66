"""A call of the batch in flight, from the model's reply to its one result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from maymust.core.step import Outcome
from maymust.errors import RunError

CallStatus = Literal["waiting", "admitted", "pending", "done"]
INTERRUPTED = "interrupted"
"""Stands for a requirement where a question is asked because the process ended while the call ran."""


@dataclass(frozen=True, slots=True)
class Approval:
    """One requirement's question about a call, answered.

    It holds for `arguments` only; for others the person is asked again.
    """

    requirement: str
    allow: bool
    arguments: Mapping[str, Any]
    reason: str | None = None
    by: str | None = None


@dataclass
class CallRecord:
    """One call of the current batch. A value: `changed` makes another one. (Not frozen, for that costs in every step.)

    status       waiting (its admission depends on a sibling), admitted (decided: to be run, or refused with `refusal`),
                 pending (a person is asked), done (it has its result)
    refusal      why it is not admitted, in words for the model; None when it may run
    started      its body was started
    arguments    the arguments that were judged, as JSON; None while there are none
    questions    names of the requirements whose question waits for a person, and `reasons` why they ask
    text_answer  not a call of the model's, but a text that stands for the final answer; it leaves no step
    untrusted    its result is from outside
    shown        the raw arguments with their secrets masked; None when there are none
    sealed       it was read from JSON, which holds no secrets: it cannot run any more
    interrupted  its process ended while the body ran; it has not been started again since
    """

    call_id: str
    name: str
    raw_arguments: str
    status: CallStatus = "waiting"
    refusal: str | None = None
    started: bool = False
    ran: bool = False
    arguments: dict[str, Any] | None = None
    questions: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    approvals: tuple[Approval, ...] = ()
    outcome: Outcome | None = None
    output: Any = None
    text: str = ""
    text_answer: bool = False
    untrusted: bool = False
    shown: str | None = None
    sealed: bool = False
    interrupted: bool = False

    @property
    def shown_arguments(self) -> str:
        """The raw arguments as they may be shown and stored."""
        return self.raw_arguments if self.shown is None else self.shown

    def changed(self, **changes: Any) -> CallRecord:
        """A record that differs in these fields; `dataclasses.replace` without its cost, which is paid three times a call."""
        new = CallRecord.__new__(CallRecord)
        new.__dict__ = {**self.__dict__, **changes}
        return new

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "call_id": self.call_id,
            "name": self.name,
            "raw_arguments": self.shown_arguments,
            "status": self.status,
            "refusal": self.refusal,
            "started": self.started,
            "ran": self.ran,
            "arguments": self.arguments,
            "questions": list(self.questions),
            "reasons": list(self.reasons),
            "approvals": [
                {"requirement": a.requirement, "allow": a.allow, "arguments": dict(a.arguments), "reason": a.reason, "by": a.by}
                for a in self.approvals
            ],
            "outcome": self.outcome.value if self.outcome else None,
            "output": self.output,
            "text": self.text,
            "text_answer": self.text_answer,
            **({"untrusted": True} if self.untrusted else {}),
            **({"sealed": True} if self.sealed or self.shown is not None else {}),
            **({"interrupted": True} if self.interrupted else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CallRecord:
        """The record whose `to_dict` gave `data`."""
        fields = dict(data)
        fields["questions"], fields["reasons"] = tuple(fields["questions"]), tuple(fields["reasons"])
        fields["approvals"] = tuple(Approval(**approval) for approval in fields["approvals"])
        fields["outcome"] = Outcome(fields["outcome"]) if fields["outcome"] else None
        return cls(**fields)


def find_call(calls: Sequence[CallRecord], call_id: str) -> CallRecord:
    """The call of this id. Raises RunError when there is none."""
    for record in calls:
        if record.call_id == call_id:
            return record
    known = ", ".join(record.call_id for record in calls) or "none"
    raise RunError(f"there is no call {call_id!r} in this turn; its calls are {known}")


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits for a person: a copy to show; changing it changes nothing.

    `requirements` are the names of those that ask; `reasons` what they give as a reason.
    `interrupted`: the process ended while the call ran, and whether it took effect is not known. True runs it again, False leaves it as
    failed, and `Happened(output)` says that it took effect.
    """

    call_id: str
    tool: str
    arguments: dict[str, Any]
    requirements: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    interrupted: bool = False

"""What stands in a trace: the events of a run, and what no event tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maymust.agent.events import RunEvent
from maymust.core.step import Step
from maymust.models.chat_model import ToolDefinition

VERSION = 1
"""The version of the format. Kinds and fields may be added without a new one."""


@dataclass(slots=True)
class TraceStarted(RunEvent):
    """The first line, and the first one after a pause: the run as it is when the trace begins.

    policy       what `Policy.describe()` says; None when the writer knew events only
    policy_hash  the hash of the policy and the tools' schemas
    mode         the mode of the run's `tool_choice`, if it has one
    tools        the tools that are present
    input        what the user said last
    steps        the steps so far, and `carried`, how many of them are an earlier run's
    """

    agent: str | None = None
    policy: Mapping[str, Any] | None = None
    policy_hash: str = ""
    mode: str | None = None
    tools: tuple[ToolDefinition, ...] = ()
    input: str = ""
    steps: tuple[Step, ...] = ()
    carried: int = 0


@dataclass(slots=True)
class ViewTaken(RunEvent):
    """What rules see beside the history, from here on. `deps` are never written."""

    memories: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    now: float | None = None
    before: tuple[Step, ...] = ()
    said: tuple[str, ...] = ()


@dataclass(slots=True)
class ModelAsked(RunEvent):
    """The model is asked. Of the conversation only its length is written: the other records have all of it."""

    number: int
    messages: int = 0
    tools: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    tool_choice: str = "auto"
    guidance: str = ""


@dataclass(slots=True)
class StepsTaken(RunEvent):
    """The steps of the turn that is over, in the model's order. What a `CallFinished` has told of them is left out."""

    steps: tuple[Step, ...] = ()


@dataclass(slots=True)
class ChildRun(RunEvent):
    """A child agent is done with this call. `state` is the JSON data of its run, see `RunState.from_dict`."""

    call_id: str
    state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class UnknownRecord(RunEvent):
    """A record of a kind that a newer maymust has written."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """One line. `at` is the time in seconds since 1970, and `line` its number, from 1."""

    at: float
    event: RunEvent
    line: int = 0

"""How a permit reaches a model: a request and what the model can be told become one of five levels (design 3.11).

    1  a subset choice over a stable tool list        4  no forced choice: narrowed offer, "auto", the reason as a message
    2  a filtered list                                5  no tool API, or no "required": the tools as one output schema
    3  the whole list and a choice

Adapters write an `Encoding` down in the words of their provider; nothing else decides what is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from maymust.models.capabilities import Capabilities
from maymust.models.chat_model import ModelRequest, ToolDefinition

EnforcedBy = Literal["provider", "maymust"]


@dataclass(frozen=True, slots=True)
class Encoding:
    """What to send.

    tools        the tool list; empty at level 5
    choice       "auto", "required", "none" or one tool's name
    subset       the names for the provider's subset mechanism; None when it is not needed
    reason       what to say in a last message, because the choice cannot; empty when it is said already
    output       level 5: the tools whose calls are the output
    text         level 5: whether a text may be the output
    enforced_by  "provider" when the request expresses all of the permit
    """

    level: int
    tools: tuple[ToolDefinition, ...]
    choice: str
    subset: tuple[str, ...] | None = None
    reason: str = ""
    output: tuple[ToolDefinition, ...] = ()
    text: bool = True
    enforced_by: EnforcedBy = "provider"


def must_text(choice: str, allowed: Iterable[str]) -> str:
    """What has to be called, in words, for models that cannot be forced; empty when nothing has to."""
    if choice in ("auto", "none"):
        return ""
    if choice == "required":
        return f"Call one of these tools: {', '.join(allowed)}. A text is not enough."
    return f"You have to call {choice} now."


def can_force(capabilities: Capabilities) -> bool:
    """Whether a forced choice is accepted as things are."""
    return capabilities.forced_choice == "yes" or (capabilities.forced_choice == "not_with_thinking" and not capabilities.thinks)


def encode(request: ModelRequest, capabilities: Capabilities) -> Encoding:
    """The best way to send the request."""
    choice = request.tool_choice if request.tools else "none"
    if choice == "none" or not request.allowed:
        tools = request.tools if capabilities.tools else ()
        return Encoding(3 if capabilities.tools else 5, tools, "none")
    wanted = (choice,) if choice not in ("auto", "required") else request.allowed
    if not capabilities.tools:
        return _output(request, wanted, capabilities)
    if choice != "auto" and not can_force(capabilities):
        return _unforced(request, wanted, capabilities)
    if choice not in ("auto", "required"):
        if capabilities.named_choice:
            return Encoding(3, request.tools, choice)
        choice = "required"
    if choice == "required" and not capabilities.required:
        return _output(request, wanted, capabilities) if capabilities.json_schema else _unforced(request, wanted, capabilities)
    return _chosen(request, wanted, choice, capabilities)


def _chosen(request: ModelRequest, wanted: tuple[str, ...], choice: str, capabilities: Capabilities) -> Encoding:
    """Levels 1 to 3: "auto" or "required" among `wanted`."""
    if len(wanted) == len(request.tools):
        return Encoding(3, request.tools, choice)
    how = _how(request, capabilities)
    if how == "choice":
        return Encoding(3, request.tools, choice, enforced_by="maymust")
    if how == "filter":
        return Encoding(2, _only(request, wanted), choice)
    return Encoding(1, request.tools, choice, wanted)


def _unforced(request: ModelRequest, wanted: tuple[str, ...], capabilities: Capabilities) -> Encoding:
    """Level 4. That something has to be called at all is for the second gate and the ladder to hold."""
    said = must_text(request.tool_choice, wanted)
    reason = "" if said in request.guidance else said
    tools, subset = request.tools, None
    if len(wanted) < len(request.tools):
        how = _how(request, capabilities)
        if how == "filter":
            tools = _only(request, wanted)
        elif how != "choice":
            subset = wanted
    return Encoding(4, tools, "auto", subset, reason, enforced_by="maymust")


def _output(request: ModelRequest, wanted: tuple[str, ...], capabilities: Capabilities) -> Encoding:
    """Level 5."""
    by: EnforcedBy = "provider" if capabilities.json_schema else "maymust"
    free = request.tool_choice == "auto"
    return Encoding(5, (), request.tool_choice, output=_only(request, wanted), text=free, enforced_by=by)


def _how(request: ModelRequest, capabilities: Capabilities) -> str:
    """How a subset is expressed for this request."""
    if capabilities.subset == "tool_changes" and not request.offers:
        return "choice"
    if capabilities.subset == "filter" and capabilities.prefix_bound:
        # A filtered list would change the prefix that the reasoning is bound to.
        return "choice"
    return capabilities.subset


def _only(request: ModelRequest, names: tuple[str, ...]) -> tuple[ToolDefinition, ...]:
    return tuple(tool for tool in request.tools if tool.name in names)

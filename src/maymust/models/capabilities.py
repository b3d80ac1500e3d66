"""What a model can be told about tools. Adapters and `encode` read it; nothing else guesses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

Subset = Literal["allowed_tools", "allowed_function_names", "tool_changes", "grammar", "filter", "choice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """How a permit can reach a model, best way first (design 3.11).

    forced_choice   whether a named or required choice is accepted: "yes", "no", "not_with_thinking"
    named_choice    whether one tool can be named
    required        whether "call something" can be asked for
    subset          how a subset of a stable tool list is expressed: "allowed_tools" and its kin, "tool_changes" (blocks inside the
                    conversation), "grammar" (constrained decoding), "filter" (by leaving tools out of the list), or "choice" (not
                    at all: the list stays whole for the cache's sake, and the second gate holds the rest)
    parallel_switch whether several calls in one reply can be switched off
    strict_schemas  whether arguments can be constrained to the tool's schema
    json_schema     whether the whole output can be constrained to a JSON schema
    prefix_bound    whether reasoning is bound to the exact prompt prefix, so that status messages must stay
    late_system     whether system messages are accepted in mid-conversation
    inline_tools    whether a tool that comes later can be defined inside the conversation, so that the list stays as it was
    thinks          whether it reasons unless told not to
    tools           whether there is a tool API at all
    images, files   whether such input parts are taken
    """

    forced_choice: Literal["yes", "no", "not_with_thinking"] = "yes"
    named_choice: bool = True
    required: bool = True
    subset: Subset = "filter"
    parallel_switch: bool = False
    strict_schemas: bool = False
    json_schema: bool = False
    prefix_bound: bool = False
    late_system: bool = False
    inline_tools: bool = False
    thinks: bool = False
    tools: bool = True
    images: bool = False
    files: bool = False

    def without(self, lost: Iterable[str]) -> Capabilities:
        """These capabilities less those a provider has refused in this run (`ABILITIES`); unknown names are ignored."""
        changes: dict[str, Any] = {}
        for name in lost:
            changes.update(_LESS.get(name, {}))
        if "late_system" in changes and self.subset == "tool_changes":
            # The changes stand in system messages.
            changes["subset"] = "filter"
        if "subset" in changes and self.prefix_bound:
            # A filtered list would change the prefix that the reasoning is bound to.
            changes["subset"] = "choice"
        return replace(self, **changes) if changes else self

    def differing(self, other: Capabilities) -> dict[str, Any]:
        """The fields in which these capabilities differ from `other`, with the values they have here."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in pairs if value != getattr(other, name)}


_LESS: dict[str, dict[str, Any]] = {
    "forced_choice": {"forced_choice": "no"},
    "named_choice": {"named_choice": False},
    "required": {"required": False},
    "subset": {"subset": "filter"},
    "parallel_switch": {"parallel_switch": False},
    "strict_schemas": {"strict_schemas": False},
    "json_schema": {"json_schema": False},
    "late_system": {"late_system": False},
    "inline_tools": {"inline_tools": False},
    "tools": {"tools": False},
}

ABILITIES = tuple(_LESS)
"""What can be lost in a run when a provider refuses it."""

"""What a model can be told about tools. Adapters and `encode` read it; nothing else guesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """How a permit can reach a model, best way first (design 3.11).

    forced_choice   whether a named or required choice is accepted: "yes", "no", "not_with_thinking"
    named_choice    whether one tool can be named
    required        whether "call something" can be asked for
    subset          how a subset of a stable tool list is expressed: "allowed_tools" and its kin, "grammar" (constrained decoding),
                    or "filter" (only by leaving tools out of the list)
    parallel_switch whether several calls in one reply can be switched off
    strict_schemas  whether arguments can be constrained to the tool's schema
    json_schema     whether the whole output can be constrained to a JSON schema
    prefix_bound    whether reasoning is bound to the exact prompt prefix, so that status messages must stay
    late_system     whether system messages are accepted in mid-conversation
    tools           whether there is a tool API at all
    images, files   whether such input parts are taken
    """

    forced_choice: Literal["yes", "no", "not_with_thinking"] = "yes"
    named_choice: bool = True
    required: bool = True
    subset: Literal["allowed_tools", "allowed_function_names", "tool_changes", "grammar", "filter"] = "filter"
    parallel_switch: bool = False
    strict_schemas: bool = False
    json_schema: bool = False
    prefix_bound: bool = False
    late_system: bool = False
    tools: bool = True
    images: bool = False
    files: bool = False

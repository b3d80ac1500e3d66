"""How picky the server is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Manners:
    """What the server takes and what it does.

    forced      a forced tool choice is accepted
    subsets     `allowed_tools` (OpenAI) is known
    changes     `tool_addition` and `tool_removal` blocks (Anthropic), `additional_tools` items (OpenAI) are known
    parallel    `parallel_tool_calls` is known
    schemas     JSON-schema output and strict tools are known
    tools       there is a tool API
    late_system system messages are accepted in mid-conversation
    bound       reasoning is bound to the exact prefix
    thinks      replies begin with reasoning
    ignores     `tool_choice` is accepted and ignored
    piece       streams are cut into pieces of so many bytes; None for whole events
    """

    forced: bool = True
    subsets: bool = True
    changes: bool = True
    parallel: bool = True
    schemas: bool = True
    tools: bool = True
    late_system: bool = True
    bound: bool = False
    thinks: bool = False
    ignores: bool = False
    piece: int | None = None

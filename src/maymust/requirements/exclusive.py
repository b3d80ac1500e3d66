"""Tools of which a run may use one."""

from __future__ import annotations

from typing import Any

from maymust.core.requirement import DEFAULT_PRIORITY
from maymust.core.tool_spec import target_text
from maymust.errors import PolicyError
from maymust.requirements.conditional import ConditionalRequirement


def mutually_exclusive(
    *tools: Any,
    name: str = "exclusive",
    same: str | None = None,
    only_success_invocations: bool = True,
    priority: int = DEFAULT_PRIORITY,
    enabled: bool = True,
    reason: str | None = None,
) -> tuple[ConditionalRequirement, ...]:
    """Return requirements under which a run uses one of these tools: once one of them counted, the others are closed.

    They are given to a policy with a star: `requirements=[*mutually_exclusive("refund", "replace"), ...]`. The tool that was used
    may be called again; a limit is a matter of `max_invocations`.

    tools   two or more, each a name, its class, the Tool object or the decorated function
    name    each requirement is called `<name>:<tool>`
    same    the tools exclude each other for each value of this parameter by itself, e.g. for each order
    The other parameters are those of `ConditionalRequirement`.

    Raises PolicyError for fewer than two tools, for a tool that is named twice, and for what `ConditionalRequirement` refuses.
    """
    names = [target_text(one) for one in tools]
    if len(tools) < 2:
        raise PolicyError(f"{name}: mutually_exclusive takes two tools or more, got {', '.join(names) or 'none'}")
    for one in names:
        if names.count(one) > 1:
            raise PolicyError(f"{name}: {one} is named twice, so it would exclude itself")
    return tuple(
        ConditionalRequirement(
            tool,
            name=f"{name}:{text}",
            only_before=[other for other in tools if other is not tool],
            same=same,
            only_success_invocations=only_success_invocations,
            priority=priority,
            enabled=enabled,
            reason=reason,
        )
        for tool, text in zip(tools, names, strict=True)
    )

"""What the desk may do, as rules."""

from typing import Any

from examples.support_desk.tools import find_order, get_order, refund, update_ticket
from maymust import ConditionalRequirement, Policy, ThinkTool

TOOLS = [ThinkTool(), find_order, get_order, refund, update_ticket]


def never_twice_running(target: Any, **conditions: Any) -> ConditionalRequirement:
    """Conditions on a tool, and that it may not follow itself, whether it succeeded or failed."""
    return ConditionalRequirement(target, consecutive_allowed=False, only_success_invocations=False, **conditions)


REQUIREMENTS = [
    never_twice_running(ThinkTool, force_at_step=1),
    ConditionalRequirement(find_order, force_at_step=2, only_success_invocations=False),
    never_twice_running(get_order, force_at_step=3),
    ConditionalRequirement(refund, only_after=get_order, max_invocations=1),
    never_twice_running(refund, name="conditional:refund:twice"),
    never_twice_running(update_ticket),
    ConditionalRequirement("final_answer", only_after=find_order),
]


def policy() -> Policy:
    """The rules over the desk's tools."""
    return Policy(REQUIREMENTS, tools=TOOLS)

"""What the desk may do: its tools, and the policy file that speaks of them."""

from pathlib import Path

from maymust import Policy, ThinkTool, load_policy

from .tools import find_order, get_order, refund, update_ticket

TOOLS = [ThinkTool(), find_order, get_order, refund, update_ticket]


def policy() -> Policy:
    """The rules over the desk's tools."""
    return load_policy(Path(__file__).with_name("support_desk.policy.yaml"))

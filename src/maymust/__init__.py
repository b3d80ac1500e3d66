"""What an agent may call, must call, and when it may stop: declared as rules, enforced on every model call.

`import maymust` loads nothing else; each name is loaded where it is first used.
A new public name is one line in `_HOMES` and one under `TYPE_CHECKING`; a test holds the two against each other.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maymust.agent.agent import Agent as Agent
    from maymust.agent.approval import ask_in_terminal as ask_in_terminal
    from maymust.agent.budget import Budget as Budget
    from maymust.agent.compaction import Compaction as Compaction
    from maymust.agent.compaction import ShortenOutputs as ShortenOutputs
    from maymust.agent.compaction import Summarise as Summarise
    from maymust.agent.loop_guard import LoopGuard as LoopGuard
    from maymust.agent.middleware import function_middleware as function_middleware
    from maymust.agent.result import RunResult as RunResult
    from maymust.agent.run import Run as Run
    from maymust.agent.state import RunState as RunState
    from maymust.agent.templates import Templates as Templates
    from maymust.agent.tool_choice import ToolMode as ToolMode
    from maymust.core.history import History as History
    from maymust.core.permit import Permit as Permit
    from maymust.core.permit import Verdict as Verdict
    from maymust.core.policy import Policy as Policy
    from maymust.core.requirement import Requirement as Requirement
    from maymust.core.requirement import RunView as RunView
    from maymust.core.rule import Rule as Rule
    from maymust.core.step import Outcome as Outcome
    from maymust.core.step import Step as Step
    from maymust.durable.sqlite_store import SqliteStore as SqliteStore
    from maymust.errors import ConflictError as ConflictError
    from maymust.errors import DeadEndError as DeadEndError
    from maymust.errors import ForceUnmetError as ForceUnmetError
    from maymust.errors import MaymustError as MaymustError
    from maymust.errors import NoAnswerError as NoAnswerError
    from maymust.errors import PermitError as PermitError
    from maymust.errors import PolicyError as PolicyError
    from maymust.errors import RunError as RunError
    from maymust.errors import ToolError as ToolError
    from maymust.explanation import Explanation as Explanation
    from maymust.explanation import explain as explain
    from maymust.models.chat_model import Usage as Usage
    from maymust.models.message import Message as Message
    from maymust.policyfile.load import load_policy as load_policy
    from maymust.requirements.approval_memory import ApprovalMemory as ApprovalMemory
    from maymust.requirements.arguments import ArgumentRequirement as ArgumentRequirement
    from maymust.requirements.conditional import ConditionalRequirement as ConditionalRequirement
    from maymust.requirements.custom import requirement as requirement
    from maymust.requirements.exclusive import mutually_exclusive as mutually_exclusive
    from maymust.requirements.permission import AskPermissionRequirement as AskPermissionRequirement
    from maymust.requirements.permission import Decision as Decision
    from maymust.requirements.untrusted import AfterUntrustedRequirement as AfterUntrustedRequirement
    from maymust.tools.context import FunctionInvocationContext as FunctionInvocationContext
    from maymust.tools.function_tool import Tool as Tool
    from maymust.tools.function_tool import tool as tool
    from maymust.tools.happened import Happened as Happened
    from maymust.tools.think import ThinkTool as ThinkTool

_HOMES = {
    "AfterUntrustedRequirement": "requirements.untrusted",
    "Agent": "agent.agent",
    "ApprovalMemory": "requirements.approval_memory",
    "ArgumentRequirement": "requirements.arguments",
    "AskPermissionRequirement": "requirements.permission",
    "Budget": "agent.budget",
    "Compaction": "agent.compaction",
    "ConditionalRequirement": "requirements.conditional",
    "ConflictError": "errors",
    "DeadEndError": "errors",
    "Decision": "requirements.permission",
    "Explanation": "explanation",
    "ForceUnmetError": "errors",
    "FunctionInvocationContext": "tools.context",
    "Happened": "tools.happened",
    "History": "core.history",
    "LoopGuard": "agent.loop_guard",
    "MaymustError": "errors",
    "Message": "models.message",
    "NoAnswerError": "errors",
    "Outcome": "core.step",
    "Permit": "core.permit",
    "PermitError": "errors",
    "Policy": "core.policy",
    "PolicyError": "errors",
    "Requirement": "core.requirement",
    "Rule": "core.rule",
    "Run": "agent.run",
    "RunError": "errors",
    "RunResult": "agent.result",
    "RunState": "agent.state",
    "RunView": "core.requirement",
    "ShortenOutputs": "agent.compaction",
    "SqliteStore": "durable.sqlite_store",
    "Step": "core.step",
    "Summarise": "agent.compaction",
    "Templates": "agent.templates",
    "ThinkTool": "tools.think",
    "Tool": "tools.function_tool",
    "ToolError": "errors",
    "ToolMode": "agent.tool_choice",
    "Usage": "models.chat_model",
    "Verdict": "core.permit",
    "ask_in_terminal": "agent.approval",
    "explain": "explanation",
    "function_middleware": "agent.middleware",
    "load_policy": "policyfile.load",
    "mutually_exclusive": "requirements.exclusive",
    "requirement": "requirements.custom",
    "tool": "tools.function_tool",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("maymust")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""The tables of docs/reference/api.md and docs/reference/events.md, made from the public names and their docstrings."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from types import ModuleType
from typing import Any

from maymust import events

API: dict[str, dict[str, tuple[str, ...]]] = {
    "Agents and runs": {
        "maymust": (
            *("Agent", "Run", "RunResult", "RunState", "Budget", "LoopGuard", "ToolMode", "Message", "Usage", "Templates"),
            *("Compaction", "ShortenOutputs", "Summarise"),
        ),
    },
    "Rules and requirements": {
        "maymust": (
            *("ConditionalRequirement", "AskPermissionRequirement", "ArgumentRequirement", "AfterUntrustedRequirement"),
            *("mutually_exclusive", "Decision", "ApprovalMemory", "ask_in_terminal", "Requirement", "requirement", "RunView", "Rule"),
        ),
    },
    "Policies and permits": {
        "maymust": ("Policy", "Permit", "Verdict", "History", "Step", "Outcome", "explain", "Explanation", "load_policy"),
        "maymust.core.gate": ("Gate",),
    },
    "Tools and middleware": {
        "maymust": ("tool", "Tool", "ThinkTool", "FunctionInvocationContext", "function_middleware", "Happened"),
        "maymust.tools.mcp": ("mcp_tools", "McpTools"),
    },
    "Verification": {"maymust.verify": ("verify", "supervise", "Report", "Finding")},
    "Tests": {"maymust.testing": ("assert_permit", "histories"), "maymust.models": ("ScriptedModel", "call", "reply")},
    "Models": {
        "maymust.models": (
            *("ChatModel", "Capabilities", "Price", "ModelRequest", "ModelReply", "ToolCall", "Part", "ToolDefinition", "Offer", "Lost"),
            *("ModelDelta", "TextDelta", "CallDelta"),
        ),
        "maymust.models.local": ("LocalModel",),
        "maymust.models.openai": ("OpenAIChatModel", "OpenAIResponsesModel"),
        "maymust.models.anthropic": ("AnthropicModel",),
        "maymust.models.pydantic_ai": ("PydanticAIModel",),
    },
    "Stores and traces": {
        "maymust": ("SqliteStore",),
        "maymust.durable": ("DbosStore",),
        "maymust.durable.dbos.worker": ("DbosWorker",),
        "maymust.durable.store": ("RunRow", "Question"),
        "maymust.trace": ("write_trace", "read_trace", "recording_of", "replay", "compare_runs", "TraceWriter", "Trace", "Recording"),
    },
    "Telemetry": {"maymust.telemetry": ("Telemetry",)},
    "Errors": {
        "maymust": (
            *("MaymustError", "PolicyError", "PermitError", "DeadEndError", "ConflictError", "ForceUnmetError"),
            *("RunError", "NoAnswerError", "ToolError"),
        ),
        "maymust.errors": ("UnsupportedRuleError",),
        "maymust.models": ("ModelFailure", "OutputError"),
        "maymust.durable.store": ("StoreError", "RunTakenError", "DecisionError"),
        "maymust.trace": ("TraceError",),
    },
}
"""Every public name, by what it is for. A test holds it against the `__all__` of the public modules."""

COMPLETE = ("maymust", "maymust.models", "maymust.verify", "maymust.testing")
"""Modules of which every name has to be in the tables, or in `ELSEWHERE`."""

ELSEWHERE = {
    "maymust.models": {"Message", "Usage"},
}
"""Names that stand in a table under another module, or are parts of what a listed one gives."""


def said(thing: Any, module: ModuleType, name: str) -> str:
    """The first sentence about a name; of a plain value, the text below it in the source."""
    own = inspect.getdoc(thing) if callable(thing) and not hasattr(thing, "__args__") else None
    text = own or below(module, name)
    return " ".join(text.split("\n\n")[0].split()).split(". ")[0].rstrip(".").replace("|", "\\|")


def below(module: ModuleType, name: str) -> str:
    """The text right behind an assignment in a module, or else what is assigned."""
    home = importlib.import_module(HOMES.get(name, module.__name__))
    found = re.search(
        rf'^{name}(?:: \w+)? = (?P<value>[^\n]+)\n(?:"""(?P<text>.*?)""")?', inspect.getsource(home), re.DOTALL | re.MULTILINE
    )
    if found is None:
        raise LookupError(f"{home.__name__} has no assignment of {name}")
    return found["text"] or f"`{found['value']}`"


HOMES = {"ToolMode": "maymust.agent.tool_choice", "ModelDelta": "maymust.models.chat_model"}
"""Where names stand that are no class or function."""


def api_tables() -> str:
    """One table a section, with the first sentence of each name."""
    parts = []
    for title, modules in API.items():
        rows = [f"## {title}", "", "| name | what it is |", "|---|---|"]
        for path, names in modules.items():
            module = importlib.import_module(path)
            rows.extend(f"| `{path}.{name}` | {said(getattr(module, name), module, name)} |" for name in names)
        parts.append("\n".join(rows))
    return "\n" + "\n\n".join(parts) + "\n\n"


def event_sections() -> str:
    """A section for each event: what it says, and its fields."""
    parts = []
    for name in events.__all__:
        event = getattr(events, name)
        fields = [field for field in dataclasses.fields(event) if field.name != "run_id" or event is events.RunEvent]
        text = inspect.getdoc(event) or ""
        rows = [f"## {name}", "", prose(text)]
        if fields:
            rows += ["", "| field | type |", "|---|---|", *(f"| `{field.name}` | `{_type(field)}` |" for field in fields)]
        parts.append("\n".join(rows))
    return "\n" + "\n\n".join(parts) + "\n\n"


def _type(field: dataclasses.Field[Any]) -> str:
    return str(field.type).replace("|", "\\|")


def prose(text: str) -> str:
    """A docstring as Markdown: its `name   meaning` lines become a list."""
    lines = []
    for line in text.splitlines():
        name, gap, meaning = line.partition("  ")
        lines.append(f"- `{name}`: {meaning.strip()}" if gap and name and meaning.strip() else line)
    return "\n".join(lines)

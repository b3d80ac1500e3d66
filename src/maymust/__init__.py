"""What an agent may call, must call, and when it may stop: declared as rules, enforced on every model call.

`import maymust` loads nothing else; each name is loaded where it is first used.
A new public name is one line in `_HOMES` and one under `TYPE_CHECKING`; a test holds the two against each other.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maymust.models.chat_model import Usage as Usage
    from maymust.models.message import Message as Message
    from maymust.tools.context import FunctionInvocationContext as FunctionInvocationContext
    from maymust.tools.function_tool import Tool as Tool
    from maymust.tools.function_tool import tool as tool
    from maymust.tools.think import ThinkTool as ThinkTool

_HOMES = {
    "FunctionInvocationContext": "tools.context",
    "Message": "models.message",
    "ThinkTool": "tools.think",
    "Tool": "tools.function_tool",
    "Usage": "models.chat_model",
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

"""What an MCP server sends, in our terms: names, values, errors."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maymust.core.tool_spec import RESERVED_NAMES
from maymust.errors import ToolError

if TYPE_CHECKING:
    from mcp.types import CallToolResult

_NAME_LENGTH = 64


def safe_name(name: str, prefix: str, taken: Container[str]) -> str:
    """A name that model providers take, made from the server's: other characters become `_`, a taken one gets a number."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", prefix + name)[:_NAME_LENGTH] or "tool"
    found, number = plain, 1
    while found in taken or found in RESERVED_NAMES:
        number += 1
        found = f"{plain[: _NAME_LENGTH - len(str(number)) - 1]}_{number}"
    return found


def value_of(result: CallToolResult, output_schema: Mapping[str, Any] | None) -> Any:
    """The value of a call: structured content where there is some, else text, else blocks. Raises ToolError for an error of the tool.

    Images, sounds and binary resources are named with their size; their bytes are not passed on.
    """
    blocks = [_block(block) for block in result.content]
    if result.is_error:
        said = [block if isinstance(block, str) else json.dumps(block) for block in blocks]
        raise ToolError("\n".join(said) or "the tool failed and said nothing")
    if result.structured_content is not None:
        return _unwrapped(result.structured_content, output_schema)
    if not blocks:
        return None
    texts = [block for block in blocks if isinstance(block, str)]
    if len(texts) == len(blocks):
        return "\n".join(texts)
    return blocks if len(blocks) > 1 else blocks[0]


def cause(error: BaseException) -> BaseException:
    """The first real error inside groups of errors, which task groups wrap around everything."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def described(error: BaseException) -> str:
    """An error in one line."""
    found = cause(error)
    return " ".join(str(found).split()) or type(found).__name__


def _unwrapped(content: Any, output_schema: Mapping[str, Any] | None) -> Any:
    """Servers wrap plain values as {"result": ...}, since structured content had to be an object once."""
    wrapped = isinstance(content, dict) and set(content) == {"result"} and set((output_schema or {}).get("properties", ())) == {"result"}
    return content["result"] if wrapped else content


def _block(block: Any) -> str | dict[str, Any]:
    if block.type == "text":
        return str(block.text)
    if block.type in ("image", "audio"):
        return {"type": block.type, "mime_type": block.mime_type, "bytes": _size(block.data)}
    if block.type == "resource":
        resource = block.resource
        body = {"text": resource.text} if hasattr(resource, "text") else {"bytes": _size(resource.blob)}
        return _without_none({"type": "resource", "uri": str(resource.uri), "mime_type": resource.mime_type, **body})
    link = {"uri": str(block.uri), "name": block.name, "description": block.description, "mime_type": block.mime_type}
    return _without_none({"type": "resource_link", **link})


def _size(data: str) -> int:
    return len(data) * 3 // 4 - data[-2:].count("=")


def _without_none(pairs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in pairs.items() if value is not None}


def pages(tools: Sequence[Any]) -> list[Any]:
    """The tools of all pages, the first of each name."""
    return list({tool.name: tool for tool in reversed(tools)}.values())[::-1]


def server_text(server: Any) -> str:
    """A server as it reads in errors, without what a URL may carry in its query."""
    if isinstance(server, str):
        return server.partition("?")[0]
    if isinstance(server, Sequence):
        return " ".join(map(str, server))
    return f"({type(server).__name__})"

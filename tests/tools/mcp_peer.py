"""A real MCP server, run by the tests as a process of its own: `mcp_peer.py stdio` or `mcp_peer.py http PORT`."""

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

server = MCPServer("peer")


class Town(BaseModel):
    name: str
    people: int


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: Annotated[int, Field(description="The other number.")] = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def town(name: str) -> Town:
    """Look up a town."""
    return Town(name=name, people=3)


@server.tool(name="dotted.name", structured_output=False)
def dotted(text: str) -> str:
    return text.upper()


@server.tool(structured_output=False)
def nothing() -> None:
    """Do nothing."""


@server.tool()
def fail(reason: str) -> str:
    raise ToolError(reason)


@server.tool(structured_output=False)
def picture() -> list[Any]:
    return ["a picture:", Image(data=base64.b64decode("aGVsbG8="), format="png")]


@server.tool()
async def sleep(seconds: float, mark: str) -> str:
    """Sleep, and leave a file if it was cut short."""
    try:
        await asyncio.sleep(seconds)
    except BaseException:
        Path(mark).write_text("cut short")
        raise
    return "slept"


@server.tool()
async def grow(ctx: Context) -> str:
    """Add one tool, take one away, change one."""
    server.remove_tool("nothing")
    server.remove_tool("town")
    server.add_tool(lambda name: f"{name}!", name="town", description="Another one.")
    server.add_tool(lambda: "new", name="fresh", description="A new one.")
    await ctx.notify_tools_changed()
    return "grown"


@server.tool()
def die() -> str:
    os._exit(3)


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))

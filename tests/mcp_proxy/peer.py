"""A real MCP server, run by the tests as a process of its own."""

import os
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("peer")


@server.tool()
def think() -> str:
    """Think."""
    return os.environ.get("PEER_SECRET", "nothing in mind")


@server.tool()
def search(q: str) -> str:
    """Search."""
    print("this would tear the protocol apart", file=sys.stderr)
    return f"found {q}"


@server.tool()
def die() -> str:
    """End at once."""
    os._exit(3)


if __name__ == "__main__":
    marks = Path(sys.argv[1])
    (marks / "begun").write_text(str(os.getpid()))
    try:
        server.run("stdio")
    finally:
        (marks / "ended").write_text(str(time.time()))

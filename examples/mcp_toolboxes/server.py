"""An MCP server of a small shop's back office, run as a process of its own: `server.py STATE.json`.

It has three boxes of tools, told apart by their first word. What they change is in the file, so that anybody can look afterwards.
"""

import json
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

STATE = Path(sys.argv[1])
FRESH = {
    "stock": {"rye flour": 4, "plums": 31, "yeast": 12},
    "orders": [],
    "tickets": {"71": "open", "72": "open", "73": "closed"},
    "restarts": [],
}
READS = ToolAnnotations(read_only_hint=True)

server = MCPServer("back-office")


def read() -> dict[str, Any]:
    """The state; a fresh one where there is no file yet."""
    return dict(json.loads(STATE.read_text(encoding="utf-8"))) if STATE.exists() else json.loads(json.dumps(FRESH))


def write(state: dict[str, Any]) -> None:
    """Keep the state."""
    STATE.write_text(json.dumps(state), encoding="utf-8")


@server.tool(annotations=READS)
def stock_look(item: str) -> str:
    """See how much of an item is in stock."""
    stock = read()["stock"]
    if item not in stock:
        raise ToolError(f"there is no {item!r} in stock; there are {', '.join(stock)}")
    return f"{item}: {stock[item]} in stock"


@server.tool()
def stock_order(item: str, pieces: int) -> str:
    """Order pieces of an item."""
    state = read()
    state["orders"].append([item, pieces])
    write(state)
    return f"ordered {pieces} of {item}"


@server.tool(annotations=READS)
def site_status() -> str:
    """See how the shop's web site is doing."""
    return "slow: 4 of 10 pages take longer than a second"


@server.tool()
def site_restart(reason: str) -> str:
    """Restart the web site; it is away for a minute."""
    state = read()
    state["restarts"].append(reason)
    write(state)
    return "restarted"


@server.tool(annotations=READS)
def ticket_list() -> list[str]:
    """List the numbers of the open tickets."""
    return [number for number, status in read()["tickets"].items() if status == "open"]


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def ticket_close(number: str) -> str:
    """Close a ticket."""
    state = read()
    if number not in state["tickets"]:
        raise ToolError(f"there is no ticket {number}")
    state["tickets"][number] = "closed"
    write(state)
    return f"ticket {number} is closed"


if __name__ == "__main__":
    server.run("stdio")

"""A policy in front of an MCP server, for any MCP client (extra `mcp`): `maymust mcp-proxy --policy P -- SERVER ...`.

Messages are relayed as they are. The proxy has a word in those that concern tools: the list of tools is what the pass of the moment
leaves of it, calls are let through or refused, and what is to be told of a change of the list is told.
"""

from maymust.errors import missing

try:
    import mcp  # noqa: F401
except ImportError as _fault:
    raise missing("maymust.mcp_proxy needs the MCP SDK", "mcp", _fault) from _fault

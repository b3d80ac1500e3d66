"""Tools: made from functions, from JSON schemas, and from MCP servers."""

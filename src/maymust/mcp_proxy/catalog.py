"""The server's tools, and what a client is shown of them."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from typing import Any

from maymust.agent.narrowed_schema import narrowed_tool
from maymust.core.permit import Permit
from maymust.core.tool_spec import RESERVED_NAMES, did_you_mean
from maymust.core.verdict import Verdict
from maymust.errors import PolicyError
from maymust.mcp_proxy.messages import LIST, plain
from maymust.mcp_proxy.peer import Peer
from maymust.models.chat_model import ToolDefinition

log: logging.Logger = logging.getLogger(__name__)

_MOST_PAGES = 1000


class Catalog:
    """The list of one server.

    named      the tools that the policy speaks of
    unlisted   whether tools that it does not speak of are let through
    lenient    whether a policy may speak of tools that the server does not have
    """

    def __init__(self, server: Peer, named: Collection[str], *, unlisted: bool, lenient: bool) -> None:
        self._server, self._named, self._unlisted, self._lenient = server, frozenset(named), unlisted, lenient
        self._told: set[str] = set()
        self._changes = 0
        self.tools: dict[str, dict[str, Any]] = {}
        self.rest: dict[str, Any] = {}
        """What was in the server's answer beside the tools."""
        self.is_known: bool = False

    @property
    def present(self) -> tuple[str, ...]:
        """Names of the tools there are, in the server's order."""
        return tuple(self.tools)

    async def load(self, envelope: Mapping[str, Any]) -> None:
        """Ask the server for its tools. Raises what `Peer.ask` raises, and PolicyError where the policy speaks of tools that nobody has."""
        found: dict[str, dict[str, Any]] = {}
        cursors: set[str | None] = set()
        cursor: str | None = None
        rest: dict[str, Any] = {}
        # A server that gives the same page for ever must not hold us.
        while cursor not in cursors and len(cursors) < _MOST_PAGES:
            cursors.add(cursor)
            params = {**({"cursor": cursor} if cursor is not None else {}), **({"_meta": dict(envelope)} if envelope else {})}
            page = await self._server.ask(LIST, params or None)
            rest = rest or {key: value for key, value in page.items() if key not in ("tools", "nextCursor")}
            for tool in listed if isinstance(listed := page.get("tools"), list) else ():
                if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                    found.setdefault(tool["name"], tool)
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                break
        self._check(found)
        tools = {name: _without_tasks(tool) for name, tool in found.items() if self._is_let_through(name)}
        if list(tools.items()) != list(self.tools.items()):
            self.tools, self._changes = tools, self._changes + 1
        self.rest, self.is_known = rest, True
        self._tell(found)

    def _check(self, found: Collection[str]) -> None:
        missing = [name for name in self._named if name not in found]
        if not missing or self.is_known:
            # What the server has taken away in the meantime is no mistake of the policy's.
            return
        said = ", ".join(f"{name}{_near(name, found)}" for name in sorted(missing))
        text = f"the policy speaks of tools that the server does not have: {said}. It has: {_listed(found) or 'none'}"
        if not self._lenient:
            raise PolicyError(f"{text}. Correct the names in the policy, or pass --lenient where they come later")
        log.warning("%s", text)

    def _is_let_through(self, name: str) -> bool:
        return name not in RESERVED_NAMES and (name in self._named or self._unlisted)

    def _tell(self, found: Collection[str]) -> None:
        """Tell of tools that are new and that the policy has nothing to say about."""
        new = [name for name in found if name not in self._told]
        self._told.update(new)
        reserved = [name for name in new if name in RESERVED_NAMES]
        unnamed = [name for name in new if name not in self._named and name not in reserved]
        if reserved:
            log.warning("left out, for these names are reserved: %s", _listed(reserved))
        if unnamed and self._unlisted:
            log.warning("let through, for no rule speaks of them (--unlisted hide leaves them out): %s", _listed(unnamed))

    def shown(self, permit: Permit | None, *, closed: bool = False) -> list[dict[str, Any]]:
        """The tools as a client may see them now; with `closed` also those that may not be called now, with the reason."""
        if permit is None:
            return []
        return [one for name, tool in self.tools.items() if (one := _shown(tool, name, permit, closed)) is not None]

    def fingerprint(self, shown: list[dict[str, Any]]) -> object:
        """What tells two lists that were shown apart, without looking at what the server has said of each tool."""
        return self._changes, tuple(
            tool["name"] if tool is self.tools.get(tool["name"]) else json.dumps(tool, sort_keys=True, default=repr) for tool in shown
        )


def _listed(names: Collection[str]) -> str:
    return ", ".join(plain(name).replace("\n", " ") for name in names)


def _near(name: str, names: Collection[str]) -> str:
    near = did_you_mean(name, names).removeprefix("; ")
    return f" ({near})" if near else ""


def _shown(tool: dict[str, Any], name: str, permit: Permit, closed: bool) -> dict[str, Any] | None:
    if name in permit.allowed:
        return _narrowed(tool, name, permit)
    if not closed or name not in permit.tools or permit.verdict(name) is Verdict.HIDDEN:
        return None
    why = "; ".join(permit.reasons.get(name, ())) or (f"{permit.forced} has to be called first" if permit.forced else "it was not on offer")
    said = tool.get("description")
    return {**tool, "description": f"{said}\n\nNot now: {why}" if said else f"Not now: {why}"}


def _narrowed(tool: dict[str, Any], name: str, permit: Permit) -> dict[str, Any]:
    fragments = permit.arguments(name)
    own = tool.get("inputSchema")
    if not fragments or not isinstance(own, dict):
        return tool
    try:
        schema = narrowed_tool(ToolDefinition(name, "", own), fragments).parameters
    except (TypeError, ValueError, AttributeError, LookupError, RecursionError):
        # It is no schema. The gate holds all the same.
        return tool
    return tool if schema is own else {**tool, "inputSchema": schema}


def _without_tasks(tool: dict[str, Any]) -> dict[str, Any]:
    """How a call that is run as a task ends is not told in its result, so calls are made the plain way."""
    return {key: value for key, value in tool.items() if key != "execution"}

"""The request with the pass in it: which tools, which choice, what to say beside it. What need not change stays as the client wrote it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from maymust.adapters.limits import choice as text_choice
from maymust.agent.narrowed_schema import narrowed_tool
from maymust.core.permit import Permit
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.gateway.checkpoint import Checkpoint
from maymust.gateway.conversation import Asked, Choice, OfferedTool
from maymust.gateway.dialect import Dialect
from maymust.gateway.raw_json import Edits, edited
from maymust.gateway.rejected import Rejected
from maymust.models.capabilities import Capabilities
from maymust.models.capability_table import Api, capabilities_of
from maymust.models.chat_model import ModelRequest, ToolDefinition
from maymust.models.encode import Encoding, encode

_NO_SCHEMA: dict[str, Any] = {}
_LONGEST_NAME = 200
_LONGEST_CHOICE = 4096


@dataclass(frozen=True, slots=True)
class Shaped:
    """A request as it goes out.

    encoding      how the pass is in it (design 3.11); None where there are no tools
    capabilities  what the model was taken to be able to do
    overruled     the client's `tool_choice` contradicts the pass, which won
    """

    body: bytes
    encoding: Encoding | None = None
    capabilities: Capabilities | None = None
    overruled: bool = False


def shape(dialect: Dialect, asked: Asked, raw: bytes, checkpoint: Checkpoint, closed: Collection[str], lost: Collection[str]) -> Shaped:
    """The body to send.

    raw     the body as the client sent it
    closed  tools that would be allowed, but nobody can be asked about
    lost    abilities the provider has refused before

    Raises Rejected where nothing is left to offer.
    """
    plan = _known_plan(dialect, asked, checkpoint, frozenset(closed), frozenset(lost))
    more = dialect.more(asked, checkpoint.replies, plan.reason, system=plan.capabilities.late_system)
    edits = Edits({**plan.values, **more.values}, more.added)
    return Shaped(edited(asked.body, edits) if edits else raw, plan.encoding, plan.capabilities, plan.overruled)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a request needs of changes, apart from its conversation."""

    values: Mapping[str, str | None]
    capabilities: Capabilities
    encoding: Encoding | None = None
    overruled: bool = False

    @property
    def reason(self) -> str:
        return "" if self.encoding is None else self.encoding.reason


def _known_plan(dialect: Dialect, asked: Asked, checkpoint: Checkpoint, closed: frozenset[str], lost: frozenset[str]) -> _Plan:
    """The plan of an earlier request that differs in nothing the plan hangs on, or a new one. Raises what `shape` raises."""
    make = partial(_plan, dialect, asked, checkpoint, closed, lost)
    given = asked.body.value_text("tool_choice") if "tool_choice" in asked.body.spans else ""
    if asked.kept is None or len(given) > _LONGEST_CHOICE:
        return make()
    # All that is read of a permit here is the same in those that share this object.
    verdicts = checkpoint.permit.derived(_Plan, object)
    model = asked.model[:_LONGEST_NAME]
    return asked.kept.get((verdicts, closed, lost, checkpoint.text_only, given, model, asked.thinks), make)


def _plan(dialect: Dialect, asked: Asked, checkpoint: Checkpoint, closed: Collection[str], lost: frozenset[str]) -> _Plan:
    capabilities = _capabilities(dialect, asked, lost)
    if not asked.tools:
        return _Plan({}, capabilities)
    permit = checkpoint.permit
    there = {tool.name for tool in asked.tools}
    offered = tuple(name for name in permit.allowed if name not in closed and name in there)
    word = "none" if checkpoint.text_only else _word(permit, offered, asked)
    wanted = _merged(word, asked, offered)
    encoding = _encoded(asked, permit, wanted, offered, capabilities)
    served = checkpoint.served
    left_out = {tool.name for tool in asked.tools if tool.local and tool.name not in served.known and served.terms.other_tools == "refuse"}
    tools = _tool_edits(dialect, asked, permit, encoding, offered, left_out, narrow=not capabilities.prefix_bound)
    choice = _choice_edits(dialect, asked, wanted, encoding, emptied=None in tools.values())
    return _Plan({**choice, **tools}, capabilities, encoding, _is_overruled(asked.choice, wanted))


def _capabilities(dialect: Dialect, asked: Asked, lost: frozenset[str]) -> Capabilities:
    """What the model can be told."""
    return _told(asked.model[:_LONGEST_NAME], dialect.api, lost, any(tool.hosted for tool in asked.tools), asked.thinks)


@lru_cache(maxsize=256)
def _told(model: str, api: Api, lost: frozenset[str], hosted: bool, thinks: bool | None) -> Capabilities:
    """A list that changes costs the cache; a wrong call costs a whole reply more, so lists are filtered where there is no subset."""
    told = capabilities_of(model, api).without(lost)
    subset = "filter" if told.subset == "allowed_tools" and hosted else told.subset
    if subset != "allowed_tools":
        subset = "choice" if told.prefix_bound else "filter"
    thinks = told.thinks if thinks is None else thinks
    return replace(told, subset=subset, thinks=thinks, tools=True, json_schema=False, inline_tools=False)


def _has(asked: Asked, name: str) -> bool:
    return any(tool.name == name for tool in asked.tools)


def _word(permit: Permit, offered: tuple[str, ...], asked: Asked) -> str:
    """What the pass says: `auto`, `required`, `none` or a name. Raises Rejected where it asks for what cannot be offered."""
    has_final = _has(asked, FINAL_ANSWER)
    word = permit.tool_choice if has_final else text_choice(permit)
    if (word == FINAL_ANSWER and not has_final) or (permit.may_stop and not offered):
        return "none"
    if word in ("auto", "none") or (word == "required" and offered):
        return word
    needed = ", ".join(name for name in permit.allowed if name != FINAL_ANSWER) if word == "required" else word
    if word not in offered:
        why = "nobody can be asked about it, or it is not there"
        raise Rejected(422, "no_lawful_step", f"{needed} has to be called now, and cannot be: {why}")
    if any(tool.hosted for tool in asked.tools if tool.name == word):
        raise Rejected(422, "no_lawful_step", f"{word} has to be called now, and the provider runs it: it cannot be forced here")
    return word


def _merged(word: str, asked: Asked, offered: tuple[str, ...]) -> Choice:
    """The pass's word and the client's: the client may narrow what the pass leaves open, and no more."""
    if word == "none":
        return Choice("none")
    if word not in ("auto", "required"):
        return Choice("required", (word,))
    mode: Any = word
    client = asked.choice
    if client is None:
        return Choice(mode)
    if client.mode == "none":
        return Choice("none") if word == "auto" else Choice(mode)
    if client.names is not None:
        hosted = {tool.name for tool in asked.tools if tool.hosted}
        left = tuple(name for name in client.names if name in offered or name in hosted)
        if not left:
            return Choice(mode)
        return Choice("required" if client.mode == "required" else mode, left)
    return Choice("required" if client.mode == "required" else mode)


def _is_overruled(client: Choice | None, wanted: Choice) -> bool:
    """Whether the client asked for something that it did not get."""
    if client is None or (client.mode == "auto" and client.names is None):
        return False
    if client.mode == "none" or client.names is None:
        return client.mode != wanted.mode
    return wanted.names is None or not set(wanted.names) <= set(client.names)


def _encoded(asked: Asked, permit: Permit, wanted: Choice, offered: tuple[str, ...], capabilities: Capabilities) -> Encoding:
    hidden = permit.hidden
    names = tuple(tool.name for tool in asked.tools if not tool.hosted and tool.name not in hidden)
    tools = _definitions(names)
    allowed = tuple(name for name in offered if name in names)
    if wanted.names is not None and not _is_hosted(asked, wanted):
        allowed = tuple(name for name in allowed if name in wanted.names)
    named = wanted.mode == "required" and wanted.names is not None and len(allowed) == 1
    choice = allowed[0] if named else wanted.mode
    return encode(ModelRequest((), tools, allowed, "auto" if _is_hosted(asked, wanted) else choice), capabilities)


@lru_cache(maxsize=256)
def _definitions(names: tuple[str, ...]) -> tuple[ToolDefinition, ...]:
    """Tools by name alone: how the pass reaches the model hangs on nothing else."""
    return tuple(ToolDefinition(name, "", _NO_SCHEMA) for name in names)


def _is_hosted(asked: Asked, choice: Choice) -> bool:
    """Whether a choice names tools that the provider runs: it is then sent as the client wrote it."""
    return choice.names is not None and any(tool.hosted for tool in asked.tools if tool.name in choice.names)


def _tool_edits(
    dialect: Dialect, asked: Asked, permit: Permit, encoding: Encoding, offered: tuple[str, ...], left_out: Collection[str], *, narrow: bool
) -> dict[str, str | None]:
    """The list of tools, where it has to be another one; None in its place when nothing is left of it."""
    kept = {tool.name for tool in encoding.tools}
    if encoding.choice == "none" and any(tool.hosted for tool in asked.tools):
        kept = set()  # "none" would close the hosted ones as well
    listed = [tool for tool in asked.tools if tool.place >= 0]
    left = [tool for tool in listed if tool.name not in left_out and _stays(tool, kept, permit, offered)]
    bounded = [tool for tool in left if narrow and tool.name in offered and permit.arguments(tool.name)]
    narrowed = {tool.place: text for tool in bounded if (text := _narrowed(dialect, asked, tool, permit))}
    if len(left) == len(listed) and not narrowed:
        return {}
    texts = asked.body.item_texts("tools")
    # Several tools may be in one item.
    places = dict.fromkeys(tool.place for tool in left)
    return {"tools": f"[{','.join(narrowed.get(place) or texts[place] for place in places)}]" if places else None}


def _narrowed(dialect: Dialect, asked: Asked, tool: OfferedTool, permit: Permit) -> str | None:
    """The tool with what the rules leave of its arguments in its schema, as JSON; None where that is all of it, or it is no schema."""
    fragments = permit.arguments(tool.name)
    if tool.parameters is None or tool.nested:
        return None
    own = ToolDefinition(tool.name, "", tool.parameters)
    try:
        made = narrowed_tool(own, fragments)
    except (TypeError, ValueError, AttributeError, LookupError, RecursionError):
        # The provider will say so; the gate holds all the same.
        return None
    item = asked.body.values["tools"][tool.place]
    return None if made is own else json.dumps(dialect.narrowed(item, made.parameters))


def _stays(tool: OfferedTool, kept: Collection[str], permit: Permit, offered: tuple[str, ...]) -> bool:
    if tool.hosted:
        return tool.name not in permit.tools or tool.name in offered
    return tool.nested or tool.name in kept


def _choice_edits(dialect: Dialect, asked: Asked, wanted: Choice, encoding: Encoding, *, emptied: bool) -> dict[str, str | None]:
    """`tool_choice`, where it has to be another one. `emptied`: no tool is left, so nothing may speak of them."""
    if emptied:
        return dict.fromkeys(("tool_choice", "parallel_tool_calls"))
    if _is_hosted(asked, wanted):
        return {}
    mode: Any = encoding.choice
    if mode == "none" and any(tool.hosted for tool in asked.tools):
        mode = "auto"
    sent = Choice(mode, encoding.subset) if mode in ("auto", "required", "none") else Choice("required", (mode,))
    if sent == (asked.choice or Choice()):
        return {}
    return {"tool_choice": json.dumps(dialect.choice(sent, asked.body.values.get("tool_choice")))}

"""A conversation in the words of Anthropic's Messages API.

Whatever came back from the model goes back as it came, thinking included; changes of the offer stand in system messages at the
place where they were made. So each request begins as the one before it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maymust.models.chat_model import Offer, ToolDefinition
from maymust.models.message import Message, Part, ToolCall
from maymust.models.past_call import name_of, object_of

Block = dict[str, Any]
KEY = "anthropic"
"""The key in `Message.extra` under which the blocks of a reply are kept."""

MARK = {"type": "ephemeral"}


def tool_block(tool: ToolDefinition, *, strict: bool = False) -> Block:
    """A tool's definition."""
    block: Block = {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
    return {**block, "strict": True} if strict else block


def conversation(messages: Sequence[Message], offers: Sequence[Offer], *, late_system: bool, inline: bool) -> list[Block]:
    """The messages after the system message, with the changes of the offer at their places."""
    changes = dict(_changes(offers, inline=inline))
    written: list[Block] = []
    for place, message in enumerate(messages):
        if place in changes and message.kind != "status":
            written.append({"role": "system", "content": changes.pop(place)})
        if message.role == "tool":
            result: Block = {"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}
            if written and written[-1]["role"] == "user" and written[-1]["content"][0]["type"] == "tool_result":
                written[-1]["content"].append(result)
            else:
                written.append({"role": "user", "content": [result]})
        elif message.role == "assistant":
            written.append({"role": "assistant", "content": _assistant(message)})
        else:
            # A system message may follow a user's message and nothing else.
            system = late_system and written and written[-1]["role"] == "user" and (message.role == "system" or message.kind == "status")
            written.append({"role": "system" if system else "user", "content": _content(message)})
            if place in changes and system:
                written[-1]["content"] += changes.pop(place)
            elif place in changes:
                written.append({"role": "system", "content": changes.pop(place)})
    written.extend({"role": "system", "content": changes[place]} for place in sorted(changes))
    return written


def _changes(offers: Sequence[Offer], *, inline: bool) -> Iterator[tuple[int, list[Block]]]:
    """For each place where the offer changed, the blocks that say so. The tools of the first offer are on offer from the start."""
    open_now: set[str] = {tool.name for tool in offers[0].added} if offers else set()
    defined, later = set(open_now), {}
    for offer in offers:
        later.update({tool.name: tool for tool in offer.added if tool.name not in defined})
        wanted, blocks = set(offer.allowed), []
        for name in offer.allowed:
            if name in open_now:
                continue
            if name in later and inline:
                tool: Block = {"type": "tool_definition", "definition": tool_block(later.pop(name))}
                defined.add(name)
            elif name in defined or name in later:
                tool = {"type": "tool_reference", "name": name}
            else:
                continue
            open_now.add(name)
            blocks.append({"type": "tool_addition", "tool": tool})
        for name in [name for name in _in_order(offers) if name in open_now and name not in wanted]:
            open_now.discard(name)
            blocks.append({"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}})
        if blocks:
            yield offer.at, blocks


def _in_order(offers: Sequence[Offer]) -> list[str]:
    return list(dict.fromkeys(tool.name for offer in offers for tool in offer.added))


def _assistant(message: Message) -> list[Block]:
    """The blocks of a reply. Ids of calls are those of the message: missing and repeated ones have been replaced."""
    kept = message.extra.get(KEY)
    calls = iter(message.calls)
    if isinstance(kept, Mapping) and sum(block["type"] == "tool_use" for block in kept["content"]) == len(message.calls):
        return [_again(block, next(calls)) if block["type"] == "tool_use" else dict(block) for block in kept["content"]]
    text = [{"type": "text", "text": message.text}] if message.text.strip() else []
    return [*text, *(_call(call) for call in message.calls)]


def _again(block: Mapping[str, Any], call: ToolCall) -> Block:
    return {**block, "id": call.call_id, "name": name_of(block["name"])}


def _call(call: ToolCall) -> Block:
    return {"type": "tool_use", "id": call.call_id, "name": name_of(call.name), "input": object_of(call.raw_arguments)}


def _content(message: Message) -> list[Block]:
    if not message.parts:
        return [{"type": "text", "text": message.text or "(empty)"}]
    texts = [{"type": "text", "text": message.text}] if message.text.strip() else []
    return [*texts, *(_part(part) for part in message.parts)]


def _part(part: Part) -> Block:
    if part.kind == "text":
        return {"type": "text", "text": part.text or "(empty)"}
    kind = "image" if part.kind == "image" else "document"
    url = part.url or ""
    if url.startswith("data:"):
        head, _, data = url.partition(",")
        media = part.media_type or head.removeprefix("data:").partition(";")[0]
        return {"type": kind, "source": {"type": "base64", "media_type": media, "data": data}}
    return {"type": kind, "source": {"type": "url", "url": url}}


def mark(blocks: list[Block]) -> None:
    """Put a breakpoint of the cache on the last block: all up to it stays as it is."""
    if blocks and blocks[-1]["type"] not in ("thinking", "redacted_thinking"):
        blocks[-1] = {**blocks[-1], "cache_control": MARK}

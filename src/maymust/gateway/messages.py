"""Anthropic Messages, as the gateway reads and writes it (https://docs.claude.com/en/api/messages)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from maymust.gateway.conversation import Asked, Call, Called, Choice, Missing, OfferedTool, Past, Reply, Returned, Said, text_of
from maymust.gateway.dialect import Answers, StreamForm, Tools, ids_of
from maymust.gateway.messages_stream import MessagesStream
from maymust.gateway.raw_json import Edits, RawObject
from maymust.gateway.read_body import as_bool, as_id, as_list, as_name, as_object
from maymust.gateway.rejected import Rejected, bad
from maymust.models.capability_table import Api
from maymust.models.past_call import name_of

_KEPT = {"text": ("type", "text"), "thinking": ("type", "thinking", "signature"), "redacted_thinking": ("type", "data")}
_HOSTED = ("server_tool_use", "mcp_tool_use")


class Messages:
    """The protocol; see `Dialect`."""

    name = "messages"
    api: Api = "messages"
    ending = "/messages"

    def __init__(self) -> None:
        self.tools = Tools(_tools)

    def ask(self, raw: RawObject, known: Collection[str]) -> Asked:
        """Read a request."""
        values = raw.values
        asked = Asked(raw, as_name(values.get("model", "-"), "model"), as_bool(values, "stream"))
        messages = as_list(values, "messages")
        asked.offer(self.tools.of(raw), tuple(_later_tools(messages)))
        asked.choice = _choice_of(values.get("tool_choice"))
        thinking = values.get("thinking")
        asked.thinks = thinking.get("type") != "disabled" if isinstance(thinking, dict) else None
        asked.past = list(_past(messages, known))
        return asked

    def choice(self, choice: Choice, given: Any) -> Any:
        """A `tool_choice`, as it is written here; what the client says of parallel calls stays."""
        written: dict[str, Any] = {"type": {"auto": "auto", "required": "any", "none": "none"}[choice.mode]}
        if choice.names is not None:
            written = {"type": "tool", "name": choice.names[0]}
        if choice.mode != "none" and isinstance(given, dict) and "disable_parallel_tool_use" in given:
            written["disable_parallel_tool_use"] = given["disable_parallel_tool_use"]
        return written

    def narrowed(self, tool: Any, parameters: Mapping[str, Any]) -> Any:
        """The item of a tool with another schema."""
        return {**tool, "input_schema": parameters}

    def more(self, asked: Asked, replies: Sequence[tuple[Reply, Answers]], reason: str, *, system: bool) -> Edits:
        """What to add to the conversation."""
        added: list[dict[str, Any]] = []
        for number, (reply, answers) in enumerate(replies):
            added += _answered(reply, answers, number)
        if reason:
            late = system and (bool(added) or asked.body.has_items("messages"))
            added.append({"role": "system" if late else "user", "content": [{"type": "text", "text": reason}]})
        return Edits(added={"messages": [json.dumps(one) for one in added]}) if added else Edits()

    def read_reply(self, answer: Mapping[str, Any], known: Collection[str]) -> Reply:
        """Read a reply in one piece."""
        content = answer.get("content")
        if not isinstance(content, list):
            raise ValueError("it has no content")
        return reply_of(content, answer.get("stop_reason"))

    def without(self, answer: dict[str, Any], refused: Collection[int]) -> dict[str, Any]:
        """The reply without these calls."""
        return {**answer, "content": [block for place, block in enumerate(answer["content"]) if place not in refused]}

    def stream(self, known: Collection[str]) -> StreamForm:
        """A reader of streams."""
        return MessagesStream(reply_of)

    def error(self, rejected: Rejected) -> dict[str, Any]:
        """The body of an error."""
        return {"type": "error", "error": {"type": f"maymust_{rejected.fault}", "message": f"maymust: {rejected.message}"}}


def reply_of(content: Sequence[Any], stop: Any) -> Reply:
    """The reply that these blocks are. Raises ValueError for calls that cannot be read."""
    calls = []
    for place, block in enumerate(content):
        if not isinstance(block, dict):
            raise ValueError("a block of its content is no object")
        if block.get("type") == "tool_use":
            call_id, name, given = block.get("id"), block.get("name"), block.get("input")
            if not isinstance(name, str):
                raise ValueError("a call has no name")
            calls.append(Call(place, call_id if isinstance(call_id, str) else "", name, given if isinstance(given, dict) else None))
    return Reply(text_of(list(content)), tuple(calls), list(content), open=stop == "pause_turn")


def _tools(items: list[Any]) -> Iterator[OfferedTool]:
    for place, item in enumerate(items):
        tool = as_object(item, f"tools[{place}]")
        if "name" not in tool:
            yield OfferedTool(as_name(tool.get("type"), f"tools[{place}].name"), place, hosted=True)
            continue
        schema = tool.get("input_schema")
        yield OfferedTool(as_name(tool["name"], f"tools[{place}].name"), place, schema if isinstance(schema, dict) else None)


def _later_tools(messages: list[Any]) -> Iterator[OfferedTool]:
    """Tools that are defined inside the conversation."""
    for message in messages:
        blocks = message.get("content") if isinstance(message, dict) and message.get("role") == "system" else None
        for block in blocks if isinstance(blocks, list) else ():
            tool = block.get("tool") if isinstance(block, dict) and block.get("type") == "tool_addition" else None
            definition = tool.get("definition") if isinstance(tool, dict) else None
            if isinstance(definition, dict):
                yield OfferedTool(as_name(definition.get("name"), "the name of an added tool"), -1, nested=True)


def _choice_of(given: Any) -> Choice | None:
    if given is None:
        return None
    choice = as_object(given, "tool_choice")
    kind = choice.get("type")
    if kind == "tool":
        return Choice("required", (as_name(choice.get("name"), "tool_choice.name"),))
    modes: dict[Any, Choice] = {"auto": Choice("auto"), "any": Choice("required"), "none": Choice("none")}
    if not isinstance(kind, str) or kind not in modes:
        raise bad("tool_choice.type has to be auto, any, tool or none")
    return modes[kind]


def _past(messages: list[Any], known: Collection[str]) -> Iterator[Past]:
    for place, item in enumerate(messages):
        where = f"messages[{place}]"
        message = as_object(item, where)
        role, content = message.get("role"), message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        if role == "user":
            results = [block for block in blocks if block.get("type") == "tool_result"]
            for block in results:
                failed = block.get("is_error") is True
                yield Returned(as_id(block.get("tool_use_id"), f"{where}: tool_use_id"), text_of(block.get("content")), failed)
            if not results:
                # What stands beside results is most often the client's own; it begins no run.
                yield Said(text_of(content))
        elif role == "assistant":
            if not place and any(block.get("type") == "compaction" for block in blocks):
                yield Missing("the conversation begins with a summary of what came before")
            yield from _calls(blocks, where, known)


def _calls(blocks: Sequence[Mapping[str, Any]], where: str, known: Collection[str]) -> Iterator[Past]:
    failed = {block.get("tool_use_id") for block in blocks if _is_failure(block)}
    for block in blocks:
        kind = block.get("type")
        if kind != "tool_use" and kind not in _HOSTED:
            continue
        call_id, name = as_id(block.get("id"), f"{where}: id"), as_name(block.get("name"), f"{where}: name")
        given = block.get("input")
        arguments = given if isinstance(given, dict) else None
        if kind == "tool_use":
            yield Called(call_id, name, arguments)
        elif name in known:
            yield Called(call_id, name, arguments, "failed" if call_id in failed else "ok")


def _is_failure(block: Mapping[str, Any]) -> bool:
    content = block.get("content")
    kind = str(content.get("type", "")) if isinstance(content, dict) else ""
    return str(block.get("type", "")).endswith("tool_result") and (block.get("is_error") is True or kind.endswith("_error"))


def _answered(reply: Reply, answers: Answers, number: int) -> Iterator[dict[str, Any]]:
    """The reply as a message of the conversation, with what is said of it."""
    ids = ids_of(answers.calls, number)
    blocks = [_storable(block, ids.get(place, "")) for place, block in enumerate(reply.message)]
    kept = [block for block in blocks if block.get("type") != "text" or str(block.get("text", "")).strip()]
    if kept and (answers.calls or kept[-1].get("type") == "text"):
        yield {"role": "assistant", "content": kept}
    said: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": ids[call.place], "content": text, "is_error": True} for call, text in answers.calls
    ]
    if answers.nudge:
        said.append({"type": "text", "text": answers.nudge})
    yield {"role": "user", "content": said}


def _storable(block: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    """A block of a reply in the form in which it may be sent."""
    if block.get("type") == "tool_use":
        given = block.get("input")
        return {"type": "tool_use", "id": call_id, "name": name_of(block["name"]), "input": given if isinstance(given, dict) else {}}
    keys = _KEPT.get(str(block.get("type")), tuple(block))
    return {key: block[key] for key in keys if key in block}

"""The items of OpenAI Responses: what tells of the past, and what a reply consists of."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from maymust.gateway.conversation import Call, Called, Choice, Missing, OfferedTool, Past, Reply, Returned, Said, arguments_of, text_of
from maymust.gateway.dialect import Answers, ids_of
from maymust.gateway.read_body import as_id, as_list, as_name, as_object
from maymust.gateway.rejected import bad, unsupported
from maymust.models.past_call import name_of, object_text

_FUNCTIONS = ("function_call", "custom_tool_call")
_CLIENTS = ("computer_call", "local_shell_call", "shell_call", "apply_patch_call")
"""Calls that the client runs, although their tools have a form of their own."""
_ABOUT = ("type", "id", "call_id", "status", "created_by")
"""What stands in a call beside what is to be done."""
_VERSION = re.compile(r"(_use)?(_preview)?(_\d[\d_]*)?$")


def hosted_name(kind: str) -> str:
    """The name of a tool that has none: its type, without a version."""
    return _VERSION.sub("", kind.removesuffix("_call"))


def tools_of(items: list[Any]) -> Iterator[OfferedTool]:
    """The tools of a request. Raises Rejected."""
    for place, item in enumerate(items):
        tool = as_object(item, f"tools[{place}]")
        kind = as_name(tool.get("type"), f"tools[{place}].type")
        if kind in ("function", "custom"):
            given = tool.get("parameters")
            schema = given if isinstance(given, dict) else None
            yield OfferedTool(as_name(tool.get("name"), f"tools[{place}].name"), place, schema)
        elif kind == "namespace":
            for inner in as_list(tool, "tools", f"tools[{place}]."):
                name = as_object(inner, f"tools[{place}].tools: an item").get("name")
                yield OfferedTool(as_name(name, f"tools[{place}].tools: a name"), place, nested=True)
        else:
            name = hosted_name(kind)
            yield OfferedTool(name, place, hosted=True, local=f"{name}_call" in _CLIENTS)


def later_tools(items: list[Any]) -> Iterator[OfferedTool]:
    """Tools that are defined inside the conversation. Raises Rejected."""
    for item in items:
        if isinstance(item, dict) and item.get("type") == "additional_tools":
            for tool in tools_of(as_list(item, "tools", "additional_tools.")):
                if not tool.hosted:
                    yield OfferedTool(tool.name, -1, nested=True)


def choice_of(given: Any) -> Choice | None:
    """The `tool_choice` of a client. Raises Rejected."""
    if given is None:
        return None
    if given in ("auto", "required", "none"):
        return Choice(given)
    choice = as_object(given, "tool_choice")
    if choice.get("type") != "allowed_tools":
        return Choice("required", (_chosen(choice),))
    if choice.get("mode") not in ("auto", "required"):
        raise bad("tool_choice.mode has to be auto or required")
    items = as_list(choice, "tools", "tool_choice.")
    return Choice(choice["mode"], tuple(_chosen(as_object(item, "tool_choice.tools: an item")) for item in items))


def _chosen(tool: Mapping[str, Any]) -> str:
    kind = as_name(tool.get("type"), "tool_choice.type")
    return as_name(tool.get("name"), "tool_choice.name") if kind in ("function", "custom") else hosted_name(kind)


def past_of(items: list[Any], known: Collection[str]) -> Iterator[Past]:
    """What the items tell of the past. Raises Rejected for items that only name what is stored elsewhere."""
    for place, one in enumerate(items):
        where = f"input[{place}]"
        item = as_object(one, where)
        kind = item.get("type", "message")
        if kind == "message":
            if item.get("role") == "user":
                yield Said(text_of(item.get("content")))
        elif kind in _FUNCTIONS:
            yield Called(as_id(item.get("call_id"), f"{where}.call_id"), as_name(item.get("name"), f"{where}.name"), _given(item))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield Returned(as_id(item.get("call_id"), f"{where}.call_id"), text_of(item.get("output")))
        elif kind == "item_reference":
            raise unsupported(f"{where}: it only names an item that is stored elsewhere, and rules need to see it: send the item itself")
        elif isinstance(kind, str) and kind.startswith("compaction"):
            yield Missing("a part of the conversation was replaced by a summary")
        elif isinstance(kind, str) and kind.endswith("_call") and hosted_name(kind) in known:
            failed = item.get("status") in ("failed", "incomplete") or item.get("error") is not None
            yield Called(str(item.get("call_id") or item.get("id") or ""), hosted_name(kind), _given(item), "failed" if failed else "ok")


def calls_client(item: Mapping[str, Any], known: Collection[str]) -> bool:
    """Whether an item of a reply is a call that the client would run, and that rules may speak of."""
    kind = item.get("type")
    return kind in _FUNCTIONS or (kind in _CLIENTS and hosted_name(str(kind)) in known)


def reply_of(output: Sequence[Any], status: Any, known: Collection[str]) -> Reply:
    """The reply that these items are. Raises ValueError for calls that cannot be read."""
    calls, texts = [], []
    for place, item in enumerate(output):
        if not isinstance(item, dict):
            raise ValueError("an item of its output is no object")
        if item.get("type") == "message":
            texts.append(text_of(item.get("content")))
        elif calls_client(item, known):
            calls.append(_call(place, item))
    return Reply("".join(texts), tuple(calls), list(output), open=status in ("queued", "in_progress"))


def _call(place: int, item: Mapping[str, Any]) -> Call:
    kind = str(item["type"])
    call_id = item.get("call_id")
    name = item.get("name") if kind in _FUNCTIONS else hosted_name(kind)
    if not isinstance(name, str):
        raise ValueError("a call has no name")
    return Call(place, call_id if isinstance(call_id, str) else "", name, arguments_of(_given(item)))


def _given(item: Mapping[str, Any]) -> Any:
    """The arguments of a call, for rules and for whoever is asked about it."""
    kind = item.get("type")
    if kind == "function_call":
        given = item.get("arguments")
        return "" if given is None else given
    return {"input": item.get("input")} if kind == "custom_tool_call" else {key: item[key] for key in item if key not in _ABOUT}


def answered(reply: Reply, answers: Answers, number: int, *, stored: bool) -> Iterator[dict[str, Any]]:
    """The reply as items of the conversation, with what its calls came to.

    stored   the provider keeps replies, so that reasoning is found by its id
    """
    texts = {call.place: text for call, text in answers.calls}
    ids = ids_of(answers.calls, number)
    bound = stored or all(item.get("encrypted_content") for item in reply.message if item.get("type") == "reasoning")
    dropped = []
    for place, item in enumerate(reply.message):
        kind = item.get("type")
        kept = {key: value for key, value in item.items() if value is not None and (bound or key not in ("id", "status"))}
        if kind in _FUNCTIONS and place in ids:
            kept = {**kept, "call_id": ids[place], "name": name_of(item["name"])}
            if kind == "function_call":
                kept["arguments"] = object_text(str(item.get("arguments") or "{}"))
            yield kept
        elif place in ids:
            # A call with a form of its own cannot be answered in words: it is left out, and told of below.
            dropped.append(texts.pop(place))
        elif (kind == "reasoning" and bound and answers.calls) or (kind == "message" and text_of(item.get("content")).strip()):
            yield kept
    for place, text in texts.items():
        kind = "custom_tool_call_output" if reply.message[place].get("type") == "custom_tool_call" else "function_call_output"
        yield {"type": kind, "call_id": ids[place], "output": text}
    for text in dropped:
        yield {"type": "message", "role": "user", "content": text}

"""OpenAI Chat Completions, as the gateway reads and writes it (https://platform.openai.com/docs/api-reference/chat)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from maymust.gateway.chat_reply import reply_of
from maymust.gateway.chat_stream import ChatStream
from maymust.gateway.conversation import Asked, Called, Choice, OfferedTool, Past, Reply, Returned, Said, text_of
from maymust.gateway.dialect import Answers, StreamForm, Tools, ids_of
from maymust.gateway.raw_json import Edits, RawObject
from maymust.gateway.read_body import as_bool, as_id, as_list, as_name, as_object
from maymust.gateway.rejected import Rejected, bad, unsupported
from maymust.models.capability_table import Api
from maymust.models.past_call import name_of, object_text


class Chat:
    """The protocol; see `Dialect`."""

    name = "chat"
    api: Api = "chat"
    ending = "/chat/completions"

    def __init__(self) -> None:
        self.tools = Tools(_tools)

    def ask(self, raw: RawObject, known: Collection[str]) -> Asked:
        """Read a request."""
        values = raw.values
        for legacy in ("functions", "function_call"):
            if values.get(legacy) is not None:
                raise unsupported(f"{legacy}: calls of this old form are not checked here; give the functions as `tools`")
        if values.get("n") not in (None, 1):
            raise unsupported("n has to be 1: each choice would be a run of its own, and the history could only tell of one")
        asked = Asked(raw, as_name(values.get("model", "-"), "model"), as_bool(values, "stream"))
        asked.offer(self.tools.of(raw))
        asked.choice = _choice_of(values.get("tool_choice"))
        asked.thinks = _thinks(values)
        asked.past = _past(as_list(values, "messages"))
        return asked

    def choice(self, choice: Choice, given: Any) -> Any:
        """A `tool_choice`, as it is written here."""
        if choice.names is None:
            return choice.mode
        if len(choice.names) == 1 and choice.mode == "required":
            return {"type": "function", "function": {"name": choice.names[0]}}
        tools = [{"type": "function", "function": {"name": name}} for name in choice.names]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}

    def narrowed(self, tool: Any, parameters: Mapping[str, Any]) -> Any:
        """The item of a tool with another schema."""
        return {**tool, "function": {**tool["function"], "parameters": parameters}}

    def more(self, asked: Asked, replies: Sequence[tuple[Reply, Answers]], reason: str, *, system: bool) -> Edits:
        """What to add to the conversation."""
        role = "system" if system else "user"
        added: list[dict[str, Any]] = []
        for number, (reply, answers) in enumerate(replies):
            added += _answered(reply, answers, number)
            if answers.nudge:
                added.append({"role": role, "content": answers.nudge})
        if reason:
            added.append({"role": role, "content": reason})
        return Edits(added={"messages": [json.dumps(one) for one in added]}) if added else Edits()

    def read_reply(self, answer: Mapping[str, Any], known: Collection[str]) -> Reply:
        """Read a reply in one piece."""
        choices = answer.get("choices")
        if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
            raise ValueError("it has not exactly one choice")
        message = choices[0].get("message")
        if not isinstance(message, dict):
            raise ValueError("its choice has no message")
        return reply_of(message)

    def without(self, answer: dict[str, Any], refused: Collection[int]) -> dict[str, Any]:
        """The reply without these calls."""
        choice = answer["choices"][0]
        calls = [call for place, call in enumerate(choice["message"]["tool_calls"]) if place not in refused]
        return {**answer, "choices": [{**choice, "message": {**choice["message"], "tool_calls": calls}}]}

    def stream(self, known: Collection[str]) -> StreamForm:
        """A reader of streams."""
        return ChatStream()

    def error(self, rejected: Rejected) -> dict[str, Any]:
        """The body of an error."""
        return {"error": {"message": f"maymust: {rejected.message}", "type": "maymust_error", "param": None, "code": rejected.fault}}


def _tools(items: list[Any]) -> Iterator[OfferedTool]:
    for place, item in enumerate(items):
        tool = as_object(item, f"tools[{place}]")
        kind = as_name(tool.get("type"), f"tools[{place}].type")
        if kind not in ("function", "custom"):
            yield OfferedTool(kind, place, hosted=True)
            continue
        form = as_object(tool.get(kind), f"tools[{place}].{kind}")
        parameters = form.get("parameters")
        schema = parameters if kind == "function" and isinstance(parameters, dict) else None
        yield OfferedTool(as_name(form.get("name"), f"tools[{place}].{kind}.name"), place, schema)


def _choice_of(given: Any) -> Choice | None:
    if given is None:
        return None
    if given in ("auto", "required", "none"):
        return Choice(given)
    choice = as_object(given, "tool_choice")
    kind = choice.get("type")
    if kind in ("function", "custom"):
        return Choice("required", (as_name(as_object(choice.get(kind), f"tool_choice.{kind}").get("name"), "tool_choice: the name"),))
    if kind != "allowed_tools":
        raise bad(f"tool_choice of type {kind!r} is not known here")
    subset = as_object(choice.get("allowed_tools"), "tool_choice.allowed_tools")
    if subset.get("mode") not in ("auto", "required"):
        raise bad("tool_choice.allowed_tools.mode has to be auto or required")
    names = []
    for item in as_list(subset, "tools", "tool_choice.allowed_tools."):
        tool = as_object(item, "tool_choice.allowed_tools.tools: an item")
        form = tool.get(tool["type"]) if isinstance(tool.get("type"), str) else None
        names.append(as_name(as_object(form, "tool_choice.allowed_tools.tools: an item").get("name"), "tool_choice: a name"))
    return Choice(subset["mode"], tuple(names))


def _thinks(values: Mapping[str, Any]) -> bool | None:
    said = values.get("thinking")
    if isinstance(said, dict):
        return said.get("type") != "disabled"
    return False if values.get("reasoning_effort") == "none" else None


def _past(messages: list[Any]) -> list[Past]:
    past: list[Past] = []
    for place, message in enumerate(messages):
        if not isinstance(message, dict):
            as_object(message, f"messages[{place}]")
        role = message.get("role")
        if role == "tool":
            content, call_id = message.get("content"), message.get("tool_call_id")
            if not isinstance(call_id, str):
                call_id = as_id(call_id, "tool_call_id")
            past.append(Returned(call_id, content if isinstance(content, str) else text_of(content)))
        elif role == "assistant":
            if message.get("function_call") is not None:
                raise unsupported(f"messages[{place}].function_call: calls of this old form are not checked here; use tool_calls")
            calls = message.get("tool_calls")
            if calls:
                past += map(_called, calls if isinstance(calls, list) else as_list(message, "tool_calls", "messages: "))
        elif role == "user":
            past.append(Said(text_of(message.get("content"))))
        elif role == "function":
            raise unsupported(f"messages[{place}]: the role function is of the old form of calls; use the role tool")
    return past


def _called(call: Any) -> Called:
    # A conversation has many calls: what is as it should be is not handed on to be checked.
    if not isinstance(call, dict):
        as_object(call, "tool_calls: a call")
    kind = "custom" if call.get("type") == "custom" else "function"
    form = call.get(kind)
    if not isinstance(form, dict):
        as_object(form, "tool_calls: the function of a call")
    call_id, name = call.get("id"), form.get("name")
    if not isinstance(call_id, str):
        call_id = as_id(call_id, "tool_calls: an id")
    if not name or not isinstance(name, str):
        as_name(name, "tool_calls: a name")
    return Called(call_id, name, form.get("arguments") if kind == "function" else None)


def _answered(reply: Reply, answers: Answers, number: int) -> Iterator[dict[str, Any]]:
    """The reply as a message of the conversation, with what its calls came to."""
    said: dict[str, Any] = {"role": "assistant", "content": reply.text or None, **reply.message["kept"]}
    if not answers.calls:
        if reply.text.strip():
            yield said
        return
    ids = ids_of(answers.calls, number)
    said["tool_calls"] = [_past_call(reply.message["calls"][call.place], ids[call.place]) for call, _ in answers.calls]
    yield said
    for call, text in answers.calls:
        yield {"role": "tool", "tool_call_id": ids[call.place], "content": text}


def _past_call(call: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    if call.get("type") == "custom":
        form = call["custom"]
        return {"id": call_id, "type": "custom", "custom": {"name": name_of(form["name"]), "input": form.get("input") or ""}}
    form = call["function"]
    raw = form.get("arguments")
    text = raw if isinstance(raw, str) else "{}"
    return {"id": call_id, "type": "function", "function": {"name": name_of(form["name"]), "arguments": object_text(text)}}

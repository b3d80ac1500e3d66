"""OpenAI Responses, as the gateway reads and writes it (https://platform.openai.com/docs/api-reference/responses)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from maymust.gateway.conversation import Asked, Choice, Reply
from maymust.gateway.dialect import Answers, StreamForm, Tools
from maymust.gateway.raw_json import Edits, RawObject
from maymust.gateway.read_body import as_bool, as_name
from maymust.gateway.rejected import Rejected, bad, unsupported
from maymust.gateway.responses_items import answered, choice_of, later_tools, past_of, reply_of, tools_of
from maymust.gateway.responses_stream import ResponsesStream
from maymust.models.capability_table import Api

_STORED = {
    "previous_response_id": "the conversation is stored elsewhere, and rules need to see it: send its items in `input`",
    "conversation": "the conversation is stored elsewhere, and rules need to see it: send its items in `input`",
    "prompt": "a stored prompt may hold tools and messages that cannot be seen here: send them in the request",
}


class Responses:
    """The protocol; see `Dialect`."""

    name = "responses"
    api: Api = "responses"
    ending = "/responses"

    def __init__(self) -> None:
        self.tools = Tools(tools_of)

    def ask(self, raw: RawObject, known: Collection[str]) -> Asked:
        """Read a request."""
        values = raw.values
        for key, why in _STORED.items():
            if values.get(key) is not None:
                raise unsupported(f"{key}: {why}")
        if as_bool(values, "background"):
            raise unsupported("background: the reply would be fetched past the gateway")
        asked = Asked(raw, as_name(values.get("model", "-"), "model"), as_bool(values, "stream"), "input")
        given = values.get("input")
        if not isinstance(given, str | list):
            raise bad("input has to be a text or a list of items")
        items: list[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else given
        asked.offer(self.tools.of(raw), tuple(later_tools(items)))
        asked.choice = choice_of(values.get("tool_choice"))
        asked.past = list(past_of(items, known))
        return asked

    def choice(self, choice: Choice, given: Any) -> Any:
        """A `tool_choice`, as it is written here."""
        if choice.names is None:
            return choice.mode
        if len(choice.names) == 1 and choice.mode == "required":
            return {"type": "function", "name": choice.names[0]}
        return {"type": "allowed_tools", "mode": choice.mode, "tools": [{"type": "function", "name": name} for name in choice.names]}

    def narrowed(self, tool: Any, parameters: Mapping[str, Any]) -> Any:
        """The item of a tool with another schema."""
        return {**tool, "parameters": parameters}

    def more(self, asked: Asked, replies: Sequence[tuple[Reply, Answers]], reason: str, *, system: bool) -> Edits:
        """What to add to the conversation."""
        role = "developer" if system else "user"
        stored = asked.body.values.get("store") is not False
        added: list[dict[str, Any]] = []
        for number, (reply, answers) in enumerate(replies):
            added += answered(reply, answers, number, stored=stored)
            if answers.nudge:
                added.append({"type": "message", "role": role, "content": answers.nudge})
        if reason:
            added.append({"type": "message", "role": role, "content": reason})
        if not added:
            return Edits()
        given = asked.body.values.get("input")
        if isinstance(given, str):
            first = {"type": "message", "role": "user", "content": given}
            return Edits(values={"input": json.dumps([first, *added])})
        return Edits(added={"input": [json.dumps(one) for one in added]})

    def read_reply(self, answer: Mapping[str, Any], known: Collection[str]) -> Reply:
        """Read a reply in one piece."""
        output = answer.get("output")
        if not isinstance(output, list):
            raise ValueError("it has no output")
        return reply_of(output, answer.get("status"), known)

    def without(self, answer: dict[str, Any], refused: Collection[int]) -> dict[str, Any]:
        """The reply without these calls."""
        return {**answer, "output": [item for place, item in enumerate(answer["output"]) if place not in refused]}

    def stream(self, known: Collection[str]) -> StreamForm:
        """A reader of streams."""
        return ResponsesStream(known)

    def error(self, rejected: Rejected) -> dict[str, Any]:
        """The body of an error."""
        return {"error": {"message": f"maymust: {rejected.message}", "type": "maymust_error", "param": None, "code": rejected.fault}}

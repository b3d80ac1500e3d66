"""Lists of tools that were read before: found again by their text, and never where the text is another one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maymust import ConditionalRequirement, Policy
from maymust.gateway.chat import Chat
from maymust.gateway.checkpoint import Checkpoint
from maymust.gateway.conversation import Asked
from maymust.gateway.raw_json import read_object
from maymust.gateway.rejected import Rejected
from maymust.gateway.served import Served
from maymust.gateway.shape import Shaped, shape
from maymust.gateway.steps import read_story


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def body(*names: str, model: str = "gpt-5", called: tuple[str, ...] = (), choice: Any = None) -> bytes:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for place, name in enumerate(called):
        call = {"id": str(place), "type": "function", "function": {"name": name, "arguments": "{}"}}
        messages += [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": str(place), "content": "done"}]
    more = {} if choice is None else {"tool_choice": choice}
    return json.dumps({"model": model, "messages": messages, "tools": [tool(name) for name in names], **more}).encode()


async def nobody(*given: Any) -> str | None:
    return None


def ask(chat: Chat, served: Served, data: bytes) -> tuple[Asked, Shaped]:
    asked = chat.ask(read_object(data, chat.tools), served.known)
    checkpoint = Checkpoint(served, asked, read_story(asked.past, served.terms), nobody)
    return asked, shape(chat, asked, data, checkpoint, (), ())


SEARCH_FIRST = Served("search first", Policy([ConditionalRequirement("refund", only_after=["search"])], tools=["search", "refund"]))
NEVER = Served("never", Policy([ConditionalRequirement("refund", max_invocations=0)], tools=["search", "refund"]))

REQUESTS = [
    (served, body(*names, model=model, called=called, choice=choice))
    for served in (SEARCH_FIRST, NEVER)
    for names in (("search", "refund"), ("search", "refund", "other"), ("refund", "search"), ("search",))
    for model in ("gpt-5", "some-model")
    for called in ((), ("search",))
    for choice in (None, "none", "required", {"type": "function", "function": {"name": "search"}})
]


@given(st.lists(st.sampled_from(REQUESTS), max_size=12))
@settings(deadline=None, max_examples=60)
def test_a_request_goes_out_as_it_would_have_as_the_first_one(requests: list[tuple[Served, bytes]]) -> None:
    chat = Chat()
    for served, data in requests:
        _, shaped = ask(chat, served, data)
        assert shaped == ask(Chat(), served, data)[1]


def test_the_same_list_is_read_once() -> None:
    chat = Chat()
    first, _ = ask(chat, NEVER, body("search", "refund"))
    second, _ = ask(chat, NEVER, body("search", "refund", called=("search",)))
    assert second.tools is first.tools
    assert second.body.values["tools"] is first.body.values["tools"]
    assert second.body.item_texts("tools") == first.body.item_texts("tools")


@pytest.mark.parametrize("rest", ["", "x", "]", "[]", '"a"', ":1}", ' , "tools": []}', "} {", ",}"])
def test_what_follows_a_known_list_is_read_as_after_any_list(rest: str) -> None:
    chat = Chat()
    listed = json.dumps([tool("search")])
    chat.ask(read_object(f'{{"tools":{listed}}}'.encode(), chat.tools), {})
    data = f'{{"tools":{listed}{rest}'.encode()
    with pytest.raises(Rejected) as plain:
        read_object(data)
    with pytest.raises(Rejected) as known:
        read_object(data, chat.tools)
    assert known.value.message == plain.value.message


def test_only_so_many_lists_are_kept_and_no_long_ones() -> None:
    chat = Chat()
    first, _ = ask(chat, NEVER, body("search"))
    for number in range(40):
        ask(chat, NEVER, body("search", f"tool_{number}"))
    again, _ = ask(chat, NEVER, body("search"))
    assert again.tools is not first.tools
    assert ask(chat, NEVER, body("search"))[0].tools is again.tools
    long = body("search", "x" * 70_000)
    assert ask(chat, NEVER, long)[0].tools is not ask(chat, NEVER, long)[0].tools

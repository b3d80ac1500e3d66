"""Requests that are odd: what would lead past the policy is refused with the reason, everything else is read as it is meant."""

from __future__ import annotations

from typing import Any

import pytest

from maymust import ArgumentRequirement, ConditionalRequirement, Policy
from tests.adapters.harness import policy
from tests.gateway.asking import (
    BODIES,
    CHAT,
    FLAT_TOOLS,
    MESSAGES,
    PATHS,
    RESPONSES,
    TOOLS,
    USER,
    called,
    fault,
    post,
    returned,
    said,
)
from tests.gateway.gateway_process import gateway
from tests.gateway.raw_upstream import RawUpstream, chat_reply, whole

FINE = whole({"output": [], "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn", **chat_reply("done")})
STORED = {"previous_response_id": "resp_1", "conversation": "conv_1", "background": True, "prompt": {"id": "p"}}


def ask(rules: Policy, body: dict[str, Any], protocol: str = "chat", *answers: Any) -> tuple[Any, list[dict[str, Any]]]:
    """The response, and what the upstream got."""
    with RawUpstream(*(answers or (FINE,))) as upstream, gateway(rules, upstream.url) as url:
        got = post(url, body, PATHS[protocol])
    return got, [one.json for one in upstream.seen]


OPEN = policy("two_searches")


@pytest.mark.parametrize(
    ("protocol", "more", "words"),
    [
        ("chat", {"n": 2}, "n has to be 1"),
        ("chat", {"functions": [{"name": "refund"}]}, "give the functions as `tools`"),
        ("chat", {"function_call": "auto"}, "not checked here"),
        ("chat", {"messages": [{"role": "function", "name": "x", "content": "y"}]}, "the role function is of the old form"),
        ("chat", {"messages": [{"role": "assistant", "function_call": {"name": "x"}}]}, "use tool_calls"),
        *(("responses", {key: value}, key) for key, value in STORED.items()),
        ("responses", {"input": [{"type": "item_reference", "id": "x"}]}, "send the item itself"),
    ],
)
def test_what_would_lead_past_the_policy_is_refused_with_the_reason(protocol: str, more: dict[str, Any], words: str) -> None:
    got, sent = ask(OPEN, {**BODIES[protocol], **more}, protocol)
    assert (got.status_code, fault(got), sent) == (400, "unsupported", [])
    assert words in said(got)


@pytest.mark.parametrize(
    ("protocol", "more", "words"),
    [
        ("chat", {"messages": "hi"}, "messages has to be a list, got a text"),
        ("chat", {"messages": ["hi"]}, "messages[0] has to be an object"),
        (
            "chat",
            {"messages": [{"role": "assistant", "tool_calls": [{"id": 5}]}]},
            "tool_calls: the function of a call has to be an object",
        ),
        ("chat", {"messages": [{"role": "tool", "tool_call_id": 5}]}, "tool_call_id has to be a text"),
        ("chat", {"model": 5}, "model has to be a text"),
        ("chat", {"stream": "yes"}, "stream has to be true or false"),
        ("chat", {"tools": {}}, "tools has to be a list"),
        ("chat", {"tools": [5]}, "tools[0] has to be an object"),
        ("chat", {"tools": [{"type": "function"}]}, "tools[0].function has to be an object"),
        ("chat", {"tools": [TOOLS[0], TOOLS[0]]}, "two tools are called think"),
        ("chat", {"tools": [{"type": "function", "function": {"name": "auto"}}]}, "the name is reserved"),
        ("chat", {"tool_choice": {"type": "odd"}}, "tool_choice of type 'odd' is not known"),
        ("chat", {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "none"}}}, "has to be auto or required"),
        ("messages", {"tool_choice": {"type": "some"}}, "tool_choice.type has to be auto, any, tool or none"),
        ("messages", {"tool_choice": {"type": ["any"]}}, "tool_choice.type has to be auto, any, tool or none"),
        ("messages", {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": 5, "name": "x"}]}]}, "id has to be a text"),
        ("responses", {"input": None}, "input has to be a text or a list"),
        ("responses", {"tools": [{"name": "x"}]}, "tools[0].type has to be a text"),
    ],
)
def test_what_cannot_be_read_is_told(protocol: str, more: dict[str, Any], words: str) -> None:
    got, sent = ask(OPEN, {**BODIES[protocol], **more}, protocol)
    assert (got.status_code, fault(got), sent) == (400, "bad_request", [])
    assert words in said(got)


def test_parallel_calls_are_steps_in_the_order_of_the_calls_whatever_the_order_of_the_results() -> None:
    two = {"role": "assistant", "tool_calls": [*called("search", call_id="a")["tool_calls"], *called("think", call_id="b")["tool_calls"]]}
    results = [returned(call_id="b"), returned(call_id="a")]
    _, sent = ask(policy("think_after_search"), {**CHAT, "messages": [USER, two, *results]})
    assert "tool_choice" not in sent[0], "think came last, so nothing is forced"


def test_ids_may_be_missing_or_used_again_in_later_turns() -> None:
    for call_id in ("", "same"):
        turn = [called("search", call_id=call_id), returned(call_id=call_id)]
        _, sent = ask(OPEN, {**CHAT, "messages": [USER, *turn, *turn]})
        assert [tool["function"]["name"] for tool in sent[0]["tools"]] == ["think", "refund"], "two searches were made"


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([USER, returned()], "the result of the call 'c0' is there, and the call is not"),
        ([USER, called("search")], "the call 'c0' (search) has no result"),
        ([called("search"), returned()], "the run does not begin with a message of the user"),
    ],
)
def test_a_run_of_which_a_part_is_missing_is_refused(messages: list[Any], words: str) -> None:
    got, sent = ask(OPEN, {**CHAT, "messages": messages})
    assert (got.status_code, fault(got), sent) == (400, "truncated", [])
    assert words in said(got)


def test_system_messages_in_between_begin_no_run() -> None:
    between = {"role": "system", "content": "be brief"}
    _, sent = ask(OPEN, {**CHAT, "messages": [USER, called("search"), returned(), between, called("search"), returned(), between]})
    assert "search" not in str(sent[0]["tools"])


def test_text_beside_results_begins_no_run() -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "search", "input": {}}]}
    result = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}, {"type": "text", "text": "reminder"}],
    }
    body = {**MESSAGES, "model": "claude-sonnet-4-5", "messages": [USER, use, result, use, result]}
    _, sent = ask(OPEN, body, "messages")
    assert [tool["name"] for tool in sent[0]["tools"]] == ["think", "refund"]


CHOICES = {
    "none": "none",
    "required": "required",
    "named": {"type": "function", "function": {"name": "search"}},
    "subset": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "search"}}]}},
}
THINK = {"type": "function", "function": {"name": "think"}}


@pytest.mark.parametrize("choice", CHOICES)
def test_a_choice_that_contradicts_the_pass_is_overruled_and_the_response_says_so(choice: str) -> None:
    answer = whole(chat_reply(None, ("think", "{}")))
    got, sent = ask(policy("think_first"), {**CHAT, "tool_choice": CHOICES[choice]}, "chat", answer)
    assert sent[0]["tool_choice"] == THINK
    assert got.headers.get("x-maymust-overruled") == (None if choice == "required" else "tool_choice")


@pytest.mark.parametrize("choice", CHOICES)
def test_a_choice_that_the_pass_leaves_open_is_the_clients(choice: str) -> None:
    given = {**CHAT, "model": "gpt-5", "tool_choice": CHOICES[choice]}
    got, sent = ask(Policy([], tools=["think", "search"]), given)
    assert sent == [given]
    assert "x-maymust-overruled" not in got.headers


def test_where_a_text_is_no_answer_none_becomes_required() -> None:
    got, sent = ask(policy("owes_search"), {**CHAT, "tool_choice": "none"}, "chat", whole(chat_reply(None, ("search", "{}"))))
    assert (sent[0]["tool_choice"], got.headers["x-maymust-overruled"]) == ("required", "tool_choice")


def test_a_model_that_knows_subsets_keeps_a_stable_list() -> None:
    rules = Policy([ConditionalRequirement("search", only_after=["think"])], tools=["think", "search", "refund"])
    names = ["think", "refund"]
    _, chat = ask(rules, {**CHAT, "model": "gpt-5"})
    assert chat[0]["tools"] == TOOLS
    assert [tool["function"]["name"] for tool in chat[0]["tool_choice"]["allowed_tools"]["tools"]] == names
    _, flat = ask(rules, {**RESPONSES, "model": "gpt-5"}, "responses")
    assert flat[0]["tools"] == FLAT_TOOLS
    assert [tool["name"] for tool in flat[0]["tool_choice"]["tools"]] == names


def test_parallel_use_stays_switched_off_when_the_choice_is_written() -> None:
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    answer = whole({"content": [{"type": "tool_use", "id": "t", "name": "think", "input": {}}], "stop_reason": "tool_use"})
    _, sent = ask(policy("think_first"), {**MESSAGES, "model": "claude-sonnet-4-5", "tool_choice": choice}, "messages", answer)
    assert sent[0]["tool_choice"] == {"type": "tool", "name": "think", "disable_parallel_tool_use": True}


def test_bounds_are_in_the_schema_that_the_model_sees() -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "number", "minimum": 0}}}
    tool = {"type": "function", "function": {"name": "refund", "parameters": schema, "x": 1}}
    _, sent = ask(policy("refund_bounds"), {**CHAT, "tools": [tool]})
    amount = sent[0]["tools"][0]["function"]["parameters"]["properties"]["amount"]
    assert (amount["maximum"], amount["minimum"], sent[0]["tools"][0]["function"]["x"]) == (100, 0, 1)


@pytest.mark.parametrize("raw", ['{"amount": 500, "amount": 5}', '{"amount": NaN}', '{"amount": 5', "[5]", '{"amount": "5"}', ""])
def test_arguments_that_could_be_read_in_two_ways_are_outside_any_bound(raw: str) -> None:
    got, _ = ask(policy("refund_bounds"), CHAT, "chat", whole(chat_reply(None, ("refund", raw))), whole(chat_reply("done")))
    assert got.json()["choices"][0]["message"]["content"] == "done"
    assert got.headers["x-maymust-refused"] == "1"


def test_a_call_that_came_back_in_the_old_form_is_no_reply() -> None:
    message = {"role": "assistant", "content": None, "function_call": {"name": "refund", "arguments": "{}"}}
    odd = whole({"choices": [{"index": 0, "message": message, "finish_reason": "function_call"}]})
    got, _ = ask(policy("refund_hidden"), CHAT, "chat", odd)
    assert (got.status_code, fault(got)) == (502, "upstream")


def test_without_tools_nothing_is_changed_and_what_is_owed_cannot_be_had() -> None:
    bare = {key: value for key, value in CHAT.items() if key != "tools"}
    _, sent = ask(OPEN, bare)
    assert sent == [bare]
    got, sent = ask(policy("answer_after_search"), bare)
    assert (got.status_code, fault(got), sent) == (422, "no_lawful_step", [])


def test_when_every_tool_is_closed_the_model_may_call_none() -> None:
    hidden = Policy([ConditionalRequirement("search", max_invocations=0)], tools=["search"])
    only = {**CHAT, "tools": [TOOLS[1]], "parallel_tool_calls": False}
    _, sent = ask(hidden, only)
    assert sent[0] == {**only, "tool_choice": "none"}


def test_a_final_answer_that_is_a_tool_of_the_client_is_the_answer_for_the_rules() -> None:
    tool = {"type": "function", "function": {"name": "final_answer", "parameters": {"type": "object"}}}
    rules = Policy([ConditionalRequirement("final_answer", only_after=["search"])], tools=["think", "search", "refund"])
    early, last = whole(chat_reply(None, ("final_answer", "{}"))), whole(chat_reply(None, ("search", "{}")))
    got, sent = ask(rules, {**CHAT, "tools": [*TOOLS, tool]}, "chat", early, last)
    assert "final_answer" not in str(sent[0]["tools"])
    assert got.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "search"
    history = [USER, called("search"), returned()]
    got, _ = ask(rules, {**CHAT, "tools": [*TOOLS, tool], "messages": history}, "chat", early)
    assert got.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "final_answer"


def test_a_hosted_tool_that_the_policy_names_falls_under_it() -> None:
    rules = Policy([ConditionalRequirement("web_search", only_after=["think"])], tools=["think", "web_search"])
    tools = [FLAT_TOOLS[0], {"type": "web_search_preview"}]
    _, sent = ask(rules, {**RESPONSES, "tools": tools}, "responses")
    assert sent[0]["tools"] == [FLAT_TOOLS[0]]
    made = {"type": "function_call", "call_id": "c", "name": "think", "arguments": "{}"}
    thought = [made, {"type": "function_call_output", "call_id": "c", "output": ""}]
    _, sent = ask(rules, {**RESPONSES, "tools": tools, "input": [USER, *thought]}, "responses")
    assert sent[0]["tools"] == tools
    searched = {"type": "web_search_call", "id": "w", "status": "completed"}
    once = Policy([ConditionalRequirement("web_search", max_invocations=1)], tools=["think", "web_search"])
    _, sent = ask(once, {**RESPONSES, "tools": tools, "input": [USER, searched]}, "responses")
    assert sent[0]["tools"] == [FLAT_TOOLS[0]]


def test_tools_defined_inside_the_conversation_fall_under_the_policy() -> None:
    more = {"type": "additional_tools", "role": "developer", "tools": [FLAT_TOOLS[2]]}
    item = {"type": "function_call", "call_id": "c", "name": "refund", "arguments": "{}"}
    answers = whole({"output": [item]}), whole({"output": [], "status": "completed"})
    got, sent = ask(policy("refund_hidden"), {**RESPONSES, "tools": FLAT_TOOLS[:2], "input": [USER, more]}, "responses", *answers)
    assert (len(sent), got.headers["x-maymust-refused"]) == (2, "1")


def test_custom_tools_are_judged_too() -> None:
    tool = {"type": "custom", "custom": {"name": "refund"}}
    item = {"id": "c", "type": "custom", "custom": {"name": "refund", "input": "all of it"}}
    message = {"role": "assistant", "content": None, "tool_calls": [item]}
    answers = whole({"choices": [{"index": 0, "message": message}]}), whole(chat_reply("done"))
    got, sent = ask(policy("refund_hidden"), {**CHAT, "tools": [tool]}, "chat", *answers)
    assert "tools" not in sent[0]
    assert got.json()["choices"][0]["message"]["content"] == "done"


def test_a_paused_turn_is_neither_an_answer_nor_a_call() -> None:
    paused = {"content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}], "stop_reason": "pause_turn"}
    got, _ = ask(policy("owes_search"), MESSAGES, "messages", whole(paused))
    assert got.json() == paused


def test_a_text_as_input_is_continued_when_the_model_is_asked_again() -> None:
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "early"}]}
    item = {"type": "function_call", "call_id": "c", "name": "search", "arguments": "{}"}
    answers = whole({"output": [text]}), whole({"output": [item]})
    _, sent = ask(policy("owes_search"), {**RESPONSES, "input": "hi"}, "responses", *answers)
    assert sent[1]["input"][0] == {"type": "message", "role": "user", "content": "hi"}
    assert sent[1]["input"][1] == text
    assert "A text is not enough here" in sent[1]["input"][2]["content"]


def test_the_last_ask_is_for_an_answer_where_one_is_allowed() -> None:
    refused = whole(chat_reply(None, ("refund", "{}")))
    got, sent = ask(policy("refund_hidden"), CHAT, "chat", *[refused] * 5, whole(chat_reply("so be it")))
    assert got.json()["choices"][0]["message"]["content"] == "so be it"
    assert [one.get("tool_choice") for one in sent] == [None] * 5 + ["none"]


@pytest.mark.parametrize(
    "parameters",
    [{"properties": [[]]}, {"properties": {"amount": {"enum": [{}]}}, "required": 5}],
)
def test_what_is_no_schema_is_the_providers_to_refuse(parameters: Any) -> None:
    policy = Policy([ArgumentRequirement("refund", "amount", maximum=100)], tools=["refund"])
    tools = [{"type": "function", "function": {"name": "refund", "parameters": parameters}}]
    answers = whole(chat_reply(None, ("refund", '{"amount": 500}'))), whole(chat_reply("done"))
    with RawUpstream(*answers) as upstream, gateway(policy, upstream.url) as url:
        assert post(url, {**CHAT, "tools": tools}).json()["choices"][0]["message"]["content"] == "done"
    assert upstream.seen[0].json["tools"] == tools

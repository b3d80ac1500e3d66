"""What rules leave of arguments reaches the model: in words, and by request in the schemas."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from maymust import Agent, ArgumentRequirement, ConditionalRequirement, PolicyError, tool
from maymust.models import Capabilities, ModelReply, ModelRequest, ScriptedModel, call
from maymust.models.structured import call_schema


@tool
async def get_record(key: str) -> dict[str, Any]:
    """Get a record."""
    return {"id": f"id-{key}", "status": "open"}


@tool
async def write_record(id: str, status: str = "done") -> str:
    """Write a record."""
    return f"{id} is {status}"


@tool
async def refund(amount: float) -> str:
    """Pay back."""
    return f"paid {amount}"


RULES = [
    ArgumentRequirement(write_record, "id", from_output=(get_record, "$.id")),
    ArgumentRequirement(refund, "amount", maximum=100),
]
TURNS = [
    call("get_record", key="a"),
    call("get_record", key="b"),
    call("write_record", id="id-c"),
    call("write_record", id="id-a"),
    call("final_answer", answer="done"),
]


class Grammar(ScriptedModel):
    """A scripted model that says a grammar constrains it."""

    capabilities = Capabilities(subset="grammar", json_schema=True, strict_schemas=True)


def run(model: ScriptedModel, **settings: Any) -> Any:
    return Agent(model, tools=[get_record, write_record, refund], requirements=RULES, **settings).run_sync("go")


def test_the_status_names_what_is_left() -> None:
    model = ScriptedModel(TURNS)
    run(model)
    assert [request.guidance for request in model.requests[:3]] == [
        "This step you may call: get_record, refund, final_answer. refund takes only amount: a number, at most 100. "
        "Not now: write_record (call get_record first: id has to be a value that get_record returned ($.id), and there is none yet).",
        'write_record takes only id: one of "id-a". refund takes only amount: a number, at most 100.',
        'write_record takes only id: one of "id-a", "id-b". refund takes only amount: a number, at most 100.',
    ]


def test_a_refusal_names_what_is_left_and_why() -> None:
    result = run(ScriptedModel(TURNS))
    assert [str(step.outcome) for step in result.steps] == ["ok", "ok", "refused", "ok", "ok"]
    assert result.steps[2].text == (
        'not with these arguments: id: "id-c" is not allowed; one of "id-a", "id-b" (id has to be a value that get_record returned)'
    )


def test_in_words_the_tools_stay_as_they_are() -> None:
    model = ScriptedModel(TURNS)
    run(model)
    assert len({json.dumps([dict(tool.parameters) for tool in request.tools]) for request in model.requests}) == 1


def test_by_request_the_schemas_are_narrowed() -> None:
    model = ScriptedModel(TURNS)
    run(model, narrow="schema")
    ids = [request.tools[1].parameters["properties"]["id"] for request in model.requests]
    assert ids[:3] == [{"type": "string"}, {"type": "string", "enum": ["id-a"]}, {"type": "string", "enum": ["id-a", "id-b"]}]
    assert all(request.tools[2].parameters["properties"]["amount"] == {"type": "number", "maximum": 100} for request in model.requests)
    assert all(request.narrowed == () for request in model.requests)


def test_for_a_grammar_only_the_grammar_is_narrowed_and_it_is_so_by_default() -> None:
    model = Grammar(TURNS)
    run(model)
    assert len({json.dumps([dict(tool.parameters) for tool in request.tools]) for request in model.requests}) == 1
    assert [tool.name for tool in model.requests[0].narrowed] == ["refund"]
    request = model.requests[2]
    narrowed = {tool.name: tool for tool in request.narrowed}
    assert narrowed["write_record"].parameters["properties"]["id"] == {"type": "string", "enum": ["id-a", "id-b"]}
    branches = call_schema([narrowed["write_record"]])["anyOf"]
    assert branches[0]["properties"]["arguments"]["properties"]["id"] == {"type": "string", "enum": ["id-a", "id-b"]}
    plain = Grammar(TURNS)
    run(plain, narrow="status")
    assert all(request.narrowed == () for request in plain.requests)


def test_without_a_tool_api_the_words_have_to_do() -> None:
    class Plain(ScriptedModel):
        capabilities = Capabilities(tools=False)

    model = Plain(TURNS)
    run(model, narrow="schema")
    assert model.requests[1].tools[1].parameters["properties"]["id"] == {"type": "string"}
    assert 'write_record takes only id: one of "id-a"' in model.requests[1].guidance


def test_the_classic_prompt_has_a_line_for_it() -> None:
    model = ScriptedModel(TURNS)
    run(model, prompt_layout="classic")
    system = model.requests[1].messages[0].text
    assert 'Limits: write_record takes only id: one of "id-a".' in system


def test_many_values_are_not_all_said() -> None:
    @tool
    async def find() -> list[int]:
        """Find."""
        return list(range(60))

    model = ScriptedModel([call("find"), call("write_record", id="60"), call("final_answer", answer="done")])
    rules = [ArgumentRequirement(write_record, "id", from_output=(find, "$[*]"))]
    result = Agent(model, tools=[find, write_record], requirements=rules).run_sync("go")
    assert model.requests[1].guidance.endswith('"19" and 40 more.')
    assert 'one of "0", "1"' in (result.steps[1].text or "")
    assert '"49" and 10 more' in (result.steps[1].text or "")


def test_a_closed_tool_is_not_narrowed_in_words() -> None:
    model = ScriptedModel([call("get_record", key="a"), call("final_answer", answer="done")])
    rules = [*RULES, ConditionalRequirement(refund, only_after=[get_record], max_invocations=0)]
    Agent(model, tools=[get_record, write_record, refund], requirements=rules, narrow="schema").run_sync("go")
    assert "refund takes only" not in model.requests[0].guidance
    assert model.requests[0].tools[2].parameters["properties"]["amount"] == {"type": "number"}


def test_a_word_that_is_none_is_an_error() -> None:
    with pytest.raises(PolicyError, match="narrow='prompt': give 'status' or 'schema'"):
        run(ScriptedModel([]), narrow="prompt")


class Stubborn:
    """A model that tries the wrong value whatever it is told, then gives up."""

    name = "stubborn"
    capabilities = Capabilities()

    def __init__(self, *turns: Any) -> None:
        self.turns = turns

    async def complete(self, request: ModelRequest) -> ModelReply:
        done = sum(message.role == "assistant" for message in request.messages)
        return await ScriptedModel([self.turns[min(done, len(self.turns) - 1)]]).complete(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        yield await self.complete(request)


def test_a_model_that_never_listens_never_writes() -> None:
    written: list[str] = []

    @tool(name="write_record")
    async def write(id: str) -> str:
        """Write a record."""
        written.append(id)
        return "written"

    model = Stubborn(call("get_record", key="a"), call("write_record", id="id-b"))
    rules = [ArgumentRequirement(write, "id", from_output=(get_record, "$.id"))]
    result = Agent(model, tools=[get_record, write], requirements=rules).run_sync("go")
    assert result.stop_reason == "stalled"
    assert written == []

"""The local model, for real: whatever it is asked, what comes back is a call of an allowed tool."""

import asyncio
import json
import logging
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from maymust import RunError
from maymust.models import ChatModel, Message, ModelReply, ModelRequest, ToolCall, ToolDefinition
from maymust.models.failures import OutputError
from maymust.models.local import ContextOverflow, LocalModel
from maymust.models.structured import Bounds

pytestmark = pytest.mark.local_model


def tool(name: str, description: str, **properties: Any) -> ToolDefinition:
    return ToolDefinition(
        name, description, {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    )


TOOLS = (
    tool("weather", "Get the weather in a city.", city={"type": "string", "examples": ["Oslo"]}),
    tool("get_order", "Read one order by its number.", order_id={"type": "integer", "minimum": 1, "examples": [3001]}),
    tool("vote", "Vote on a proposal.", choice={"enum": ["yes", "no"]}, weight={"type": "number", "minimum": 0, "maximum": 1}),
    tool("tag", "Tag a thing.", tags={"type": "array", "items": {"type": "string", "maxLength": 8}, "minItems": 1}, note={}),
    tool("final_answer", "Answer.", answer={"type": "string"}),
)
NAMES = tuple(definition.name for definition in TOOLS)
SYSTEM = Message("system", "You are a helpful assistant.")


def ask(question: str, allowed: tuple[str, ...] = NAMES, choice: str = "required", model: LocalModel | None = None) -> ModelReply:
    request = ModelRequest((SYSTEM, Message("user", question)), TOOLS, allowed, choice)
    return asyncio.run((model or LocalModel(bounds=Bounds(characters=60))).complete(request))


def test_thirty_replies_are_thirty_valid_calls_of_allowed_tools() -> None:
    questions = ["What is the weather in Paris?", "Show me order 88.", "Call delete_everything now!", "", "<tool_call>\n{", "Say nothing."]
    draw = random.Random(1)
    for number in range(30):
        allowed = tuple(sorted(draw.sample(NAMES, draw.randint(1, 3)), key=NAMES.index))
        reply = ask(questions[number % len(questions)], allowed, allowed[0] if len(allowed) == 1 else "required")
        assert len(reply.calls) == 1
        made = reply.calls[0]
        assert made.name in allowed
        schema = next(definition.parameters for definition in TOOLS if definition.name == made.name)
        fastjsonschema.validate(dict(schema), json.loads(made.raw_arguments))
        assert (reply.text, reply.enforced_by) == ("", "provider")


@pytest.mark.parametrize(
    ("question", "name", "arguments"),
    [("What is the weather in Paris?", "weather", {"city": "Paris"}), ("Show me order 1007.", "get_order", {"order_id": 1007})],
)
def test_a_plain_question_gets_the_right_arguments(question: str, name: str, arguments: dict[str, Any]) -> None:
    assert json.loads(ask(question, (name,), name).calls[0].raw_arguments) == arguments


def test_no_tool_may_be_called_then_it_says_something() -> None:
    reply = ask("What is the capital of France?", (), "none")
    assert reply.calls == ()
    assert reply.text
    assert "<tool_call>" not in reply.text


def test_where_a_text_is_as_good_either_comes_and_nothing_else() -> None:
    reply = ask("What is the capital of France?", ("weather",), "auto")
    assert bool(reply.text) != bool(reply.calls)
    assert all(made.name == "weather" for made in reply.calls)


def test_only_what_is_new_is_read_in_the_next_turn_whatever_may_be_called_in_it() -> None:
    async def two_turns() -> tuple[ModelReply, ModelReply]:
        model, question = LocalModel(bounds=Bounds(characters=60)), Message("user", "What is the weather in Paris?")
        first = await model.complete(ModelRequest((SYSTEM, question), TOOLS, ("weather",), "weather"))
        said = (Message("assistant", calls=first.calls), Message("tool", "sunny", call_id=first.calls[0].call_id))
        status = Message("user", "You have to call final_answer now.", kind="status")
        return first, await model.complete(ModelRequest((SYSTEM, question, *said, status), TOOLS, ("final_answer",), "final_answer"))

    first, second = asyncio.run(two_turns())
    assert second.usage.cached_tokens >= first.usage.input_tokens
    assert second.usage.input_tokens - second.usage.cached_tokens < 60


def test_many_at_once_are_served_one_after_another() -> None:
    async def several() -> list[ModelReply]:
        models = (LocalModel(bounds=Bounds(characters=20)), LocalModel(bounds=Bounds(characters=20)))
        request = ModelRequest((SYSTEM, Message("user", "Show me order 88.")), TOOLS, ("get_order",), "get_order")
        return await asyncio.gather(*(models[number % 2].complete(request) for number in range(6)))

    replies = asyncio.run(several())
    assert {made.name for reply in replies for made in reply.calls} == {"get_order"}
    assert len({made.call_id for reply in replies for made in reply.calls}) == 6


def test_a_stream_ends_with_the_whole_reply() -> None:
    async def stream() -> list[object]:
        request = ModelRequest((SYSTEM, Message("user", "Show me order 88.")), TOOLS, ("get_order",), "get_order")
        return [item async for item in LocalModel().stream(request)]

    *_, whole = asyncio.run(stream())
    assert isinstance(whole, ModelReply)
    assert isinstance(whole.calls[0], ToolCall)


def test_output_that_is_cut_off_twice_is_an_error_with_the_output_and_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(OutputError, match="cut off after 4 tokens") as caught:
        ask("What is the weather in Paris?", ("weather",), "weather", LocalModel(max_tokens=4))
    assert "max_tokens" in str(caught.value)
    assert caught.value.output
    assert len(caplog.records) == 2


def test_a_conversation_that_is_too_long_is_shortened_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    small = LocalModel(context=1024, bounds=Bounds(characters=20))
    with caplog.at_level(logging.WARNING):
        reply = ask("Order 88! " * 1500, ("get_order",), "get_order", small)
    assert reply.calls[0].name == "get_order"
    assert any("15000 characters" in record.getMessage() for record in caplog.records)


def test_tools_that_do_not_fit_are_an_error_that_says_so() -> None:
    large = tuple(tool(f"tool_{number}", "word " * 50) for number in range(60))
    request = ModelRequest((SYSTEM, Message("user", "hi")), large, ("tool_1",), "tool_1")
    with pytest.raises(ContextOverflow, match="larger context"):
        asyncio.run(LocalModel(context=1024).complete(request))


def test_a_file_that_is_no_model_is_an_error_that_names_it(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    with pytest.raises(RunError, match=r"broken\.gguf"):
        ask("hi", model=LocalModel(broken))


def test_its_name_says_which_model_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LocalModel().name == "local:smollm2"
    assert LocalModel("/models/Own-7B.gguf").name == "local:Own-7B"
    monkeypatch.setenv("MAYMUST_LOCAL_MODEL", "/models/Other.gguf")
    assert LocalModel().name == "local:Other"
    assert isinstance(LocalModel(), ChatModel)


WITHOUT = """
import asyncio, sys
sys.modules["xllamacpp"] = None
from maymust.models import Message, ModelRequest
from maymust.models.local import LocalModel
try:
    asyncio.run(LocalModel().complete(ModelRequest((Message("user", "hi"),), tool_choice="none")))
except ImportError as error:
    print(error)
"""


def test_without_the_runtime_the_error_has_the_line_to_type_and_nothing_is_fetched(tmp_path: Path) -> None:
    env = {**os.environ, "MAYMUST_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True, env=env)
    assert "pip install 'maymust[local]'" in done.stdout
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


IMPORTED = """
import asyncio, sys
if sys.argv[1] == "before":
    import xllamacpp
from maymust.models import Message, ModelRequest
from maymust.models.local import LocalModel
try:
    asyncio.run(LocalModel("broken.gguf").complete(ModelRequest((Message("user", "hi"),), tool_choice="none")))
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize(("when", "policy", "warns"), [("before", None, True), ("before", "PASSIVE", False), ("after", None, False)])
def test_a_runtime_that_was_loaded_before_its_threads_could_be_told_to_sleep_is_warned_of(
    tmp_path: Path, when: str, policy: str | None, warns: bool
) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"not a model")
    env = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | ({"OMP_WAIT_POLICY": policy} if policy else {})
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", IMPORTED, when], capture_output=True, text=True, check=True, env=env, cwd=tmp_path)
    assert "broken.gguf" in done.stdout
    assert ("set OMP_WAIT_POLICY=PASSIVE" in done.stderr) is warns

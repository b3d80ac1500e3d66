"""A run whose tools follow a source that changes by itself."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from maymust import Agent, ConditionalRequirement, Tool, tool
from maymust.events import ToolsChanged
from maymust.models import ScriptedModel, call

DONE = call("final_answer", answer="done")


def _make(name: str) -> Tool:
    async def body() -> str:
        return f"{name} ran"

    return tool(name=name)(body)


@dataclass
class Change:
    """What came and went."""

    added: tuple[Tool, ...] = ()
    removed: tuple[Tool, ...] = ()


class Source:
    """A list of tools that changes."""

    def __init__(self, *tools: Tool) -> None:
        self.tools: tuple[Tool, ...] = tools
        self.listeners: list[Callable[[Any], None]] = []

    def on_change(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def change(self, added: tuple[Tool, ...] = (), removed: tuple[Tool, ...] = ()) -> None:
        self.tools = (*(one for one in self.tools if one not in removed), *added)
        for listener in list(self.listeners):
            listener(Change(added, removed))


def _scenario(source: Source, act: Any, turns: list[Any], **settings: Any) -> tuple[Any, list[tuple[str, ...]]]:
    @tool
    async def act_now() -> str:
        """Change the source."""
        act()
        return "ok"

    async def main() -> tuple[Any, list[tuple[str, ...]]]:
        heard: list[tuple[str, ...]] = []
        run = Agent(ScriptedModel(turns), tools=[act_now, *source.tools], **settings).start("go")
        run.follow(source).on(ToolsChanged, lambda event: heard.append(event.tools))
        result = await run
        await asyncio.sleep(0)
        assert not source.listeners
        return result, heard

    return asyncio.run(main())


def test_what_comes_and_goes_does_so_from_the_next_turn_on() -> None:
    old, new = _make("old"), _make("new")
    source = Source(old)
    result, heard = _scenario(
        source, lambda: source.change((new,), (old,)), [[call("act_now"), call("old")], call("new"), call("old"), DONE]
    )
    assert [str(step.outcome) for step in result.steps] == ["ok", "ok", "ok", "refused", "ok"]
    assert heard == [("act_now", "new")]


def test_a_tool_whose_schema_changed_is_replaced() -> None:
    old, new = _make("one"), _make("one")
    source = Source(old)
    result, _ = _scenario(source, lambda: source.change((new,), (old,)), [call("act_now"), call("one"), DONE])
    assert result.state.tools[-1] is new


def test_a_change_in_another_thread_and_in_a_turn_without_calls() -> None:
    source = Source()
    new = _make("new")

    class Talking:
        """Talks first, then calls."""

        name, capabilities = "talking", ScriptedModel([]).capabilities

        async def complete(self, request: Any) -> Any:
            done = sum(message.role == "assistant" for message in request.messages)
            if done == 0:
                thread = threading.Thread(target=source.change, args=((new,),))
                thread.start()
                await asyncio.to_thread(thread.join)
                await asyncio.sleep(0)
            return await ScriptedModel([["Let me think.", call("new"), DONE][done]]).complete(request)

        async def stream(self, request: Any) -> Any:
            yield await self.complete(request)

    async def main() -> Any:
        rules = [ConditionalRequirement("act", min_invocations=0), ConditionalRequirement("final_answer", only_after=["new"])]
        agent = Agent(Talking(), tools=[_make("act")], loadable=[new], requirements=rules)
        return await agent.start("go").follow(source)

    result = asyncio.run(main())
    assert (result.steps[0].tool, str(result.steps[0].outcome)) == ("new", "ok")


def test_what_came_before_the_run_is_there_from_its_first_turn() -> None:
    async def main() -> Any:
        agent = Agent(ScriptedModel([call("new"), DONE]), tools=[])
        return await agent.start("go").follow(Source(_make("new")))

    assert asyncio.run(main()).steps[0].text == "new ran"


def test_a_name_that_another_tool_has_stays_with_it(caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    with caplog.at_level(logging.WARNING, logger="maymust"):
        result, _ = _scenario(source, lambda: source.change((_make("act_now"), _make("new"))), [call("act_now"), call("new"), DONE])
    assert [str(step.outcome) for step in result.steps] == ["ok"] * 3
    assert "act_now" in caplog.text


def test_a_real_server_that_grows() -> None:
    pytest.importorskip("mcp")
    from maymust.tools.mcp import mcp_tools

    peer = [sys.executable, str(Path(__file__).parent.parent / "tools" / "mcp_peer.py"), "stdio"]

    async def main() -> Any:
        async with mcp_tools(peer) as source:
            changed = asyncio.Event()
            loop = asyncio.get_running_loop()

            def note(change: Any) -> None:
                loop.call_soon_threadsafe(changed.set)

            @tool
            async def wait() -> str:
                """Wait for the server's list to change."""
                await asyncio.wait_for(changed.wait(), 10)
                return "changed"

            model = ScriptedModel([call("add", a=1), call("grow"), call("wait"), call("fresh"), DONE])
            run = Agent(model, tools=[wait, *source.tools]).start("go").follow(source)
            source.on_change(note)
            return await run

    result = asyncio.run(main())
    assert [(step.tool, str(step.outcome)) for step in result.steps[2:4]] == [("wait", "ok"), ("fresh", "ok")]
    assert "nothing" not in result.permits[-1].tools

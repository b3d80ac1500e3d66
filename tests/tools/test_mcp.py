"""Tools from MCP servers: real ones, in processes of their own."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from maymust.errors import PolicyError, RunError, ToolError
from maymust.tools.arguments import ArgumentsInvalid
from maymust.tools.function_tool import Tool
from maymust.tools.mcp import McpTools, mcp_tools
from maymust.tools.mcp_changes import ToolsChanged
from maymust.tools.output import render_output

pytest.importorskip("mcp")

HERE = Path(__file__).parent
STDIO = [sys.executable, str(HERE / "mcp_peer.py"), "stdio"]
OLD = [sys.executable, str(HERE / "mcp_old_peer.py")]
NAMES = ["add", "town", "dotted_name", "nothing", "fail", "picture", "sleep", "grow", "die"]


@pytest.fixture
def url() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(HERE / "mcp_peer.py"), "http", str(port)], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def named(source: McpTools, name: str) -> Tool:
    return next(tool for tool in source.tools if tool.name == name)


async def call(source: McpTools, name: str, /, **arguments: Any) -> Any:
    made = named(source, name)
    return await made.invoke(made.parse(arguments).values, None)


async def next_change(changes: AsyncIterator[ToolsChanged]) -> ToolsChanged:
    return await asyncio.wait_for(anext(changes), 10)


# --- what a server's tools become ---


async def everything(source: McpTools) -> None:
    assert [tool.name for tool in source.tools] == NAMES
    add = named(source, "add")
    assert (add.description, add.effect, add.untrusted, add.is_async) == ("Add two numbers.", "once", True, True)
    assert add.parameters["properties"]["b"]["description"] == "The other number."
    assert await call(source, "add", a=2, b=3) == 5
    assert await call(source, "add", a=2) == 3
    with pytest.raises(ArgumentsInvalid, match="a: expected an integer"):
        add.parse({"a": "x"})
    assert await call(source, "town", name="Delft") == {"name": "Delft", "people": 3}
    assert await call(source, "dotted_name", text="x") == "X"
    assert render_output(await call(source, "nothing"))[1] == "The tool succeeded and returned nothing."
    assert await call(source, "picture") == ["a picture:", {"type": "image", "mime_type": "image/png", "bytes": 5}]
    with pytest.raises(ToolError, match="out of tea"):
        await call(source, "fail", reason="out of tea")


def test_tools_of_a_server_on_stdio_are_tools_like_others() -> None:
    async def main() -> None:
        async with mcp_tools(STDIO) as source:
            await everything(source)

    asyncio.run(main())


def test_tools_of_a_server_on_http_are_tools_like_others(url: str) -> None:
    async def main() -> None:
        async with mcp_tools(url) as source:
            await everything(source)

    asyncio.run(main())


def test_tools_of_a_session_that_is_there_already_are_tools_like_others() -> None:
    from mcp import Client, StdioServerParameters

    async def main() -> None:
        async with (
            Client(StdioServerParameters(command=STDIO[0], args=STDIO[1:])) as client,
            mcp_tools(client.session) as source,
        ):
            await everything(source)
            changes = source.changes()
            await call(source, "grow")
            assert [tool.name for tool in (await next_change(changes)).added] == ["town", "fresh"]

    asyncio.run(main())


def test_a_server_of_the_protocol_of_2025_is_understood_pages_and_odd_names_included() -> None:
    async def main() -> None:
        async with mcp_tools(OLD) as source:
            assert [tool.name for tool in source.tools] == ["echo", "final_answer_2", "odd", "a_b", "a_b_2"]
            assert '"name": "final_answer"' in await call(source, "final_answer_2")
            assert '"name": "a.b"' in await call(source, "a_b_2")
            # A pattern in a dialect that only the server understands is the server's to check.
            assert await call(source, "odd", a="ü") == [
                {"type": "resource_link", "uri": "file:///x", "name": "x"},
                {"type": "resource", "uri": "file:///y", "text": "inside"},
                {"type": "resource", "uri": "file:///z", "mime_type": "a/b", "bytes": 5},
            ]
            changes = source.changes()
            await call(source, "echo", text="more")
            change = await next_change(changes)
            assert ([tool.name for tool in change.added], change.removed) == (["extra"], ())

    asyncio.run(main())


def test_settings_apply_to_every_tool_and_a_trusted_servers_hints_count() -> None:
    async def main() -> None:
        async with mcp_tools(
            STDIO, prefix="peer_", only={"add", "town"}, trusted=True, approval_mode="always_require", timeout=5
        ) as source:
            assert [(tool.name, tool.effect, tool.untrusted, tool.approval_mode, tool.timeout) for tool in source.tools] == [
                ("peer_add", "read", False, "always_require", 5),
                ("peer_town", "once", False, "always_require", 5),
            ]
            assert await call(source, "peer_add", a=1) == 2

    asyncio.run(main())


# --- lists that change ---


def test_a_changed_list_is_a_change_with_what_came_and_what_went(url: str) -> None:
    async def main() -> None:
        async with mcp_tools(url) as source:
            before = {tool.name: tool for tool in source.tools}
            heard: list[ToolsChanged] = []
            end = source.on_change(heard.append)
            changes = source.changes()
            await call(source, "grow")
            change = await next_change(changes)
            assert [tool.name for tool in change.added] == ["town", "fresh"]
            assert [tool.name for tool in change.removed] == ["town", "nothing"]
            after = {tool.name: tool for tool in source.tools}
            assert after["add"] is before["add"]
            assert after["town"] is change.added[0]
            assert after["town"].description == "Another one."
            assert heard == [change]
            end()
            assert await call(source, "fresh") == "new"
            with pytest.raises(ToolError):
                await before["nothing"].invoke({}, None)

    asyncio.run(main())


def test_the_changes_end_when_the_source_is_left() -> None:
    async def main() -> list[ToolsChanged]:
        async with mcp_tools(STDIO) as source:
            changes = source.changes()
            listener = asyncio.create_task(collect(changes))
        return await asyncio.wait_for(listener, 5)

    async def collect(changes: AsyncIterator[ToolsChanged]) -> list[ToolsChanged]:
        return [change async for change in changes]

    assert asyncio.run(main()) == []


# --- cancellation, and other ends ---


def test_cancelling_a_call_cancels_it_at_the_server(tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    async def main() -> None:
        async with mcp_tools(STDIO) as source:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(call(source, "sleep", seconds=60, mark=str(mark)), 0.5)
            for _ in range(100):
                if mark.exists():
                    break
                await asyncio.sleep(0.05)
            assert mark.read_text() == "cut short"
            assert await call(source, "add", a=1) == 2

    asyncio.run(main())


def test_leaving_during_a_call_ends_the_call_with_an_error_of_the_tool(tmp_path: Path) -> None:
    async def main() -> None:
        async with mcp_tools(STDIO) as source:
            pending = asyncio.create_task(call(source, "sleep", seconds=60, mark=str(tmp_path / "mark")))
            await asyncio.sleep(0.3)
        with pytest.raises(ToolError):
            await asyncio.wait_for(pending, 10)

    asyncio.run(main())


def test_after_the_source_is_left_its_tools_fail_with_words() -> None:
    async def main() -> None:
        async with mcp_tools(STDIO) as source:
            pass
        with pytest.raises(ToolError, match="closed"):
            await call(source, "add", a=1)
        with pytest.raises(RunError, match="entered already"):
            await source.__aenter__()

    asyncio.run(main())
    assert not [thread for thread in threading.enumerate() if thread.name == "maymust-mcp"]


def test_a_server_that_dies_during_a_call_is_an_error_of_the_tool() -> None:
    async def main() -> None:
        async with mcp_tools(STDIO) as source:
            with pytest.raises(ToolError):
                await asyncio.wait_for(call(source, "die"), 10)

    asyncio.run(main())


def test_a_source_may_be_left_by_another_task_than_the_one_that_entered_it() -> None:
    async def main() -> None:
        source = mcp_tools(STDIO)
        await asyncio.create_task(source.__aenter__())
        assert await call(source, "add", a=1) == 2
        await asyncio.create_task(source.__aexit__(None, None, None))

    asyncio.run(main())


def test_tools_can_be_called_from_another_event_loop_while_the_first_one_is_blocked() -> None:
    async def main() -> None:
        async with mcp_tools(STDIO) as source:
            found: list[Any] = []
            thread = threading.Thread(target=lambda: found.append(asyncio.run(call(source, "add", a=1))))
            thread.start()
            thread.join(10)
            assert found == [2]

    asyncio.run(main())


def test_a_cancelled_entry_leaves_no_thread_and_no_process_behind() -> None:
    async def main() -> None:
        entering = asyncio.create_task(mcp_tools([sys.executable, "-c", "import time; time.sleep(60)"]).__aenter__())
        await asyncio.sleep(0.3)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering

    start = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - start < 20
    assert not [thread for thread in threading.enumerate() if thread.name == "maymust-mcp"]


# --- servers that are none ---


@pytest.mark.parametrize(
    "server",
    [["no-such-command-anywhere"], "http://127.0.0.1:9/mcp", [sys.executable, "-c", "import sys; sys.exit(3)"]],
    ids=["no command", "no server", "ends at once"],
)
def test_a_server_that_cannot_be_reached_is_a_run_error_that_names_it(server: Any) -> None:
    async def main() -> None:
        async with mcp_tools(server, connect_timeout=10):
            pass

    with pytest.raises(RunError, match="cannot be reached"):
        asyncio.run(main())


def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    async def main() -> None:
        async with mcp_tools([sys.executable, "-c", "import time; time.sleep(60)"], connect_timeout=0.5):
            pass

    with pytest.raises(RunError, match="cannot be reached"):
        asyncio.run(main())


def test_a_command_in_one_text_is_refused_with_advice() -> None:
    with pytest.raises(PolicyError, match="as a list"):
        mcp_tools("uvx some-server")

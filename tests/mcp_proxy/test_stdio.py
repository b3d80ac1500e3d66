"""The command, as a client starts it: a process in front of a process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
pytest.importorskip("yaml")

from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from tests.mcp_proxy.harness import Heard, names, text

PEER = Path(__file__).parent / "peer.py"
POLICY = """
version: 1
tools: [think, search, die]
rules:
  search-later:
    conditional: search
    only_after: [think]
"""
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}},
}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "shop.policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


def command(policy: Path, *server: str, options: tuple[str, ...] = ()) -> list[str]:
    real = server or (sys.executable, str(PEER), str(policy.parent))
    return [sys.executable, "-m", "maymust", "mcp-proxy", "--policy", str(policy), *options, "--", *real]


def started(arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def say(process: subprocess.Popen[bytes], *messages: Any) -> None:
    assert process.stdin is not None
    for message in messages:
        process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def is_gone(pid: int) -> bool:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_the_official_client_works_with_a_server_of_its_own_process(policy: Path, tmp_path: Path, capfd: Any) -> None:
    async def main() -> None:
        heard = Heard()
        first, *rest = command(policy)
        parameters = StdioServerParameters(command=first, args=rest, env={**os.environ, "PEER_SECRET": "swordfish"})
        async with Client(parameters, mode="legacy", message_handler=heard) as client:
            assert await names(client) == ["think", "die"]
            assert "think has to succeed first" in text(await client.call_tool("search", {"q": "x"}))
            # What the client has put into the environment reaches the server.
            assert text(await client.call_tool("think", {})) == "swordfish"
            await asyncio.wait_for(heard.changed.wait(), 5)
            assert text(await client.call_tool("search", {"q": "straße 🙂"})) == "found straße 🙂"
            with pytest.raises(MCPError, match="the MCP server has ended"):
                await client.call_tool("die", {})

    asyncio.run(asyncio.wait_for(main(), 60))
    assert "swordfish" not in capfd.readouterr().err


def listener(folder: Path) -> tuple[str, ...]:
    script = folder / "listener.py"
    script.write_text(LISTENER, encoding="utf-8")
    return sys.executable, str(script), str(folder)


def test_garbage_from_the_client_and_hanging_up(policy: Path, tmp_path: Path) -> None:
    process = started(command(policy, *listener(tmp_path)))
    say(process, b"this is no JSON\n", b"\xff\xfe\n", b"\n", b'{"jsonrpc": "1.0"}\n', HELLO)
    errors = [hear(process) for _ in range(3)]
    assert [(one["id"], one["error"]["code"]) for one in errors] == [(None, -32700)] * 3
    assert hear(process)["result"]["capabilities"]["tools"]["listChanged"] is True
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"")
    assert (tmp_path / "ended").exists()
    assert b"this is no JSON" not in err
    assert b"Traceback" not in err


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_being_interrupted_takes_the_server_along(policy: Path, tmp_path: Path, sent: signal.Signals, code: int) -> None:
    process = started(command(policy, *listener(tmp_path)))
    say(process, HELLO)
    hear(process)
    process.send_signal(sent)
    # The client is still there, and its pipe open.
    assert process.wait(timeout=60) == code
    assert is_gone(int((tmp_path / "begun").read_text()))
    _, err = process.communicate()
    assert b"Traceback" not in err


LISTENER = r"""
import json, os, sys
from pathlib import Path
Path(sys.argv[1], "begun").write_text(str(os.getpid()))
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
Path(sys.argv[1], "ended").write_text("in order")
"""
SPEAKER = r"""
import json, sys
print("Starting up, password is swordfish")
print('{"jsonrpc": "2.0", "swordfish": 1}', flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
        break
"""


def test_a_server_that_speaks_garbage_and_then_ends(policy: Path, tmp_path: Path) -> None:
    script = tmp_path / "speaker.py"
    script.write_text(SPEAKER, encoding="utf-8")
    process = started(command(policy, sys.executable, str(script)))
    say(process, HELLO)
    assert hear(process)["result"]["serverInfo"]["name"] == "s"
    assert process.wait(timeout=60) == 1
    _, err = process.communicate()
    assert err.count(b"no message of the protocol") == 2
    assert b"the MCP server has ended" in err
    assert b"swordfish" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), b"cannot be started"),
        (("--unlisted", "maybe"), b"there is no 'maybe'"),
    ],
)
def test_what_cannot_be_started_says_why(policy: Path, arguments: tuple[str, ...], said: bytes) -> None:
    process = started(command(policy, "/no/such/server", options=arguments))
    out, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert out == b""
    assert said in err
    assert b"Traceback" not in err


def test_a_policy_that_cannot_be_held_starts_nothing(policy: Path, tmp_path: Path) -> None:
    policy.write_text(POLICY + "  one-search:\n    conditional: search\n    min_invocations: 1\n", encoding="utf-8")
    process = started(command(policy, *listener(tmp_path)))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, b"")
    assert b"an MCP proxy cannot enforce this policy: one-search: keeping the run from ending" in err
    assert not (tmp_path / "begun").exists()


def test_the_policy_cannot_come_from_standard_input(policy: Path) -> None:
    process = started([sys.executable, "-m", "maymust", "mcp-proxy", "--policy", "-", "--", "x"])
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"standard input belongs to the MCP client" in err


LOUD = """
from maymust import AskPermissionRequirement, Policy

print("made")


def says(call):
    print("asked")
    return True


def policy():
    print("called")
    return Policy([AskPermissionRequirement("think", handler=says)], tools=["think"])
"""
THINKER = r"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"tools": [{"name": "think", "inputSchema": {"type": "object"}}]} if message["method"] == "tools/list" else {"content": []}
        sys.stdout.buffer.write(b"\xff\xfe\n" + json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
        sys.stdout.flush()
"""


def test_what_a_policy_prints_does_not_get_among_the_messages(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD, encoding="utf-8")
    (tmp_path / "thinker.py").write_text(THINKER, encoding="utf-8")
    arguments = [sys.executable, "-m", "maymust", "mcp-proxy", "--policy", "loud:policy", "--", sys.executable, "thinker.py"]
    process = subprocess.Popen(arguments, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    say(process, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "think"}})
    assert hear(process) == {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"")
    assert [word for word in (b"made", b"called", b"asked") if word not in err] == []

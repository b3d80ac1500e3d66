"""Who may ask the server what, and what it does with what it is sent."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from maymust import ConditionalRequirement, Outcome, Policy, Step
from maymust.web.guard import Guard
from maymust.web.worker import Worker
from tests.cli.commands import command
from tests.web.runs import record, written
from tests.web.serving import serving

POLICY = "version: 1\ntools: [a, b]\nrules:\n  r: {conditional: b, only_after: a}\n"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("server")
    (found / "runs").mkdir()
    record(found / "runs" / "a.jsonl")
    (found / "secret.jsonl").write_bytes((found / "runs" / "a.jsonl").read_bytes())
    (found / "runs" / "link.jsonl").symlink_to(found / "secret.jsonl")
    (found / "runs" / "notes.txt").write_text("a secret")
    return found


@pytest.fixture(scope="module")
def address(directory: Path) -> Iterator[str]:
    with serving(directory, "runs") as url:
        yield url


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=30) as found:
        yield found


def shown(client: httpx.Client) -> dict[str, Any]:
    """The data that the page begins with."""
    text = client.get("/").text
    data: dict[str, Any] = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    return data


def ask(client: httpx.Client, path: str, **body: Any) -> Any:
    return client.post(path, json={"policy": POLICY, **body}).json()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.1.1", ""])
def test_a_name_that_was_bound_to_the_address_is_refused(client: httpx.Client, host: str) -> None:
    answer = client.get("/", headers={"host": host})
    assert answer.status_code in (400, 403)
    assert "data" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST:80"])
def test_names_of_this_machine_are_good(client: httpx.Client, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_page_of_another_site_can_ask_nothing(client: httpx.Client, headers: dict[str, str]) -> None:
    for path in ("/api/live", "/api/run?run=x"):
        assert client.get(path, headers=headers).status_code == 403
    for path in ("/api/play", "/api/findings", "/api/test"):
        assert client.post(path, json={"policy": POLICY}, headers=headers).status_code == 403


def test_a_form_of_another_site_cannot_send_what_is_read(client: httpx.Client) -> None:
    body = json.dumps({"policy": POLICY})
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert client.post("/api/play", content=body, headers={"content-type": kind}).status_code == 415


def test_a_link_to_the_page_works_and_a_frame_of_it_does_not(client: httpx.Client) -> None:
    answer = client.get("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in answer.headers
    assert client.get("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}).status_code == 403


def test_only_traces_of_the_directory_are_shown(client: httpx.Client) -> None:
    data = shown(client)
    assert [run["name"] for run in data["runs"]] == ["a.jsonl"]
    for run in ("../secret.jsonl", "/etc/passwd", "link.jsonl", "..%2fsecret.jsonl", "", "x" * 5000):
        assert client.get("/api/run", params={"run": run}).status_code == 404
        assert client.get("/api/policy", params={"run": run}).status_code == 404
    for path in ("/assets/../../etc/passwd", "/%2e%2e/secret.jsonl", "/runs/a.jsonl", "/docs", "/api"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("column", "tool"), [("-1", "refund"), ("99", "refund"), ("x", "refund"), ("²", "refund"), ("0", "none"), ("", "")]
)
def test_a_cell_that_is_not_there_is_not_found(client: httpx.Client, column: str, tool: str) -> None:
    run = shown(client)["runs"][0]["id"]
    client.get("/api/run", params={"run": run})
    assert client.get("/api/why", params={"run": run, "column": column, "tool": tool}).status_code == 404
    assert client.get("/api/why", params={"run": run, "column": "1", "tool": "refund"}).json()["outlook"] == "refund opens after lookup"


def test_halves_of_characters_in_runs_and_names_of_files_are_served(tmp_path: Path) -> None:
    policy = Policy([ConditionalRequirement("a\ud800", max_invocations=0, reason="\udfff")], tools=["a\ud800", "b"])
    path = os.fsdecode(b"odd\xff.jsonl")
    written(tmp_path / path, policy, [Step("b", output="\ud800"), Step("a\ud800", Outcome.REFUSED, text="\udc80")])
    with serving(tmp_path, ".") as url, httpx.Client(base_url=url, timeout=30) as client:
        (run,) = shown(client)["runs"]
        assert run["name"] == path
        said = client.get("/api/run", params={"run": run["id"]})
        assert said.status_code == 200
        assert said.json()["order"] == ["a\ud800", "b", "final_answer"]
        assert client.get("/api/policy", params={"run": run["id"]}).status_code in (200, 409)
        assert client.get("/api/compare", params={"one": run["id"], "other": run["id"]}).json() == []
    assert command(tmp_path, "view", path, "-o", "page.html").code == 0
    assert "odd\\udcff.jsonl" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b'{"policy": 1}', b"\xff", b"[" * 100_000])
def test_what_is_no_request_is_refused(client: httpx.Client, body: bytes) -> None:
    assert client.post("/api/play", content=body, headers={"content-type": "application/json"}).status_code == 400


def test_a_request_that_is_too_large_is_refused(client: httpx.Client) -> None:
    assert client.post("/api/play", json={"policy": "x" * 1_100_000}).status_code == 413
    assert ask(client, "/api/play", policy="x" * 300_000)["problems"][0]["code"] == "MF002"


def test_an_odd_history_is_told_and_harms_nobody(client: httpx.Client) -> None:
    assert "at most 300 steps" in ask(client, "/api/play", history=["a"] * 301)["problems"][0]["message"]
    assert "list of texts" in ask(client, "/api/play", history=[1])["problems"][0]["message"]
    assert ask(client, "/api/play", history=["c"])["cut"] == "the policy has no tool called c"
    assert ask(client, "/api/play", history=["b", "a!odd", "b!denied"])["history"] == ["b!refused", "a", "b"]
    assert ask(client, "/api/play", history=["final_answer", "a"])["ended"] is True


def hostile() -> str:
    """A policy with more states than can be looked at."""
    names = [f"t{number}" for number in range(20)]
    every = ", ".join(names)
    rules = [
        f"  r{place}: {{conditional: {name}, max_attempts: {3 + place % 7}, consecutive_allowed: false, cooldown: {2 + place % 3}}}"
        for place, name in enumerate(names)
    ]
    last = f"  last: {{conditional: final_answer, only_after: [{every}]}}"
    return "\n".join([f"version: 1\ntools: [{every}]\nrules:", *rules, last, f"may_fail: [{every}]\n"])


def test_a_policy_that_takes_too_long_is_given_up_and_the_next_one_is_answered(client: httpx.Client) -> None:
    assert ask(client, "/api/findings", policy=hostile())["verdict"] == "undecided"
    assert ask(client, "/api/findings")["verdict"] == "ok"


def test_an_answer_that_takes_too_long_is_given_up() -> None:
    async def main() -> None:
        worker = Worker(0.2)
        try:
            await worker.start()
            said = await worker.ask({"do": "findings", "policy": hostile()})
            assert said == {"error": "this took more than 0.2 seconds, and was given up"}
            worker.seconds = 60
            assert (await worker.ask({"do": "findings", "policy": POLICY}))["verdict"] == "ok"
            asking = asyncio.create_task(worker.ask({"do": "findings", "policy": hostile()}))
            await asyncio.sleep(0.1)
            asking.cancel()
            assert "run" in await worker.ask({"do": "play", "policy": POLICY})
        finally:
            await worker.close()

    asyncio.run(main())


def test_somebody_who_leaves_does_not_get_in_the_way_of_others(client: httpx.Client) -> None:
    for _ in range(3):
        with pytest.raises(httpx.ReadTimeout):
            client.post("/api/findings", json={"policy": hostile()}, timeout=0.2)
    assert ask(client, "/api/play", history=["a"])["history"] == ["a"]


def test_many_listeners_are_turned_away_in_the_end(client: httpx.Client, address: str) -> None:
    open_ones = []
    port = int(address.rstrip("/").rpartition(":")[2])
    try:
        answers = []
        for _ in range(70):
            one = socket.create_connection(("127.0.0.1", port), timeout=20)
            open_ones.append(one)
            one.sendall(f"GET /api/live HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
            answers.append(one.recv(15))
        assert answers[0] == b"HTTP/1.1 200 OK"
        assert b"503" in answers[-1]
    finally:
        for one in open_ones:
            one.close()
    deadline = time.monotonic() + 30
    while True:
        with client.stream("GET", "/api/live") as answer:
            if answer.status_code == 200:
                break
        assert time.monotonic() < deadline


def test_the_server_says_what_is_wrong_with_its_command(directory: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = command(directory, "serve", "runs", "--port", str(taken.getsockname()[1]))
    assert (done.code, "another program has it" in done.err) == (2, True)
    assert "there is no such file" in command(directory, "serve", "nowhere").err
    assert command(directory, "serve", "--port", "70000").code == 2
    assert "cannot be listened at" in command(directory, "serve", "--host", "203.0.113.7", "--port", "0").err


def test_beyond_loopback_addresses_are_good_and_foreign_names_are_not() -> None:
    async def nothing(*_: Any) -> None:
        return None

    open_one, closed_one = (Guard(nothing, host=host, policy="") for host in ("0.0.0.0", "127.0.0.1"))
    assert open_one._is_ours("192.168.1.7:8321")
    assert open_one._is_ours(socket.gethostname())
    assert not open_one._is_ours("evil.example")
    assert not closed_one._is_ours("192.168.1.7:8321")
    assert not closed_one._is_ours("[::1")

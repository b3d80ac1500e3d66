"""The command itself: several workers, conversations that hop between processes, signals, what it says when it cannot start."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from maymust.models import call
from tests.gateway.asking import CHAT, PATHS, USER, called, post, returned
from tests.gateway.clients import ChatPlayer, MessagesPlayer, Player, ResponsesPlayer
from tests.gateway.raw_upstream import Answer, RawUpstream, chat_reply, stream, whole
from tests.models.picky import Manners, PickyServer, Wire

RULES = """\
version: 1
tools: [think, search, refund]
rules:
  think-first: {conditional: think, force_at_step: 1}
  two-searches: {conditional: search, max_invocations: 2, only_after: think}
  refund-once: {conditional: refund, only_after: search, max_invocations: 1}
  answer-last: {conditional: final_answer, only_after: search}
"""


@contextmanager
def running(folder: Path, *options: str, **more: Any) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command, and where it listens."""
    (folder / "desk.policy.yaml").write_text(RULES, encoding="utf-8")
    command = [sys.executable, "-m", "maymust", "gateway", "--policy", "desk.policy.yaml", "--port", "0", *options]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, **more})
    lines: list[str] = []
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        while line and "listening on " not in line:
            lines.append(line)
            line = process.stderr.readline()
        assert line, "".join(lines)
        url = line.split("listening on ")[1].split()[0]
        reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True)
        reader.start()
        _wait_for(url)
        yield url, process
    finally:
        process.terminate()
        process.wait(20)
        if process.stderr is not None:
            reader.join(5)
            process.stderr.close()


def _wait_for(url: str) -> None:
    for _ in range(200):
        try:
            if httpx.get(url + "/healthz", trust_env=False, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("it does not answer")


def model_of(seed: int) -> Any:
    """A model that does what it likes, the same for the same conversation."""

    given: dict[str, dict[str, Any]] = {"refund": {"amount": 5}, "search": {"q": "x"}}

    def brain(body: dict[str, Any], wire: Wire) -> Any:
        said = body.get("messages", body.get("input", []))
        dice = random.Random(f"{seed}{_without_ids(json.dumps(said, sort_keys=True))}")
        if dice.random() < 0.1 + len(said) * 0.05:
            return "so be it"
        names = dice.sample(["think", "search", "search", "refund", "nothing"], dice.randint(1, 3))
        return [call(name, **given.get(name, {})) for name in names]

    return brain


class Hopping:
    """A conversation of which each request goes to another place."""

    def __init__(self, player: type[Player], urls: list[str], seed: int, *, stream: bool) -> None:
        self.player = player(urls[0], stream=stream)
        self.urls, self.dice = urls, random.Random(seed)
        self.ran: list[str] = []

    def play(self) -> tuple[list[str], str | None]:
        ask = self.player.ask

        def hop() -> Any:
            self.player.url = self.dice.choice(self.urls)
            self.player.__post_init__()
            return ask()

        self.player.ask = hop  # type: ignore[method-assign]
        answer = self.player.play(self.execute)
        return self.ran, answer

    def execute(self, name: str) -> str:
        self.ran.append(name)
        return "fine"


def test_conversations_that_hop_between_four_workers_get_the_verdicts_of_one(tmp_path: Path) -> None:
    with PickyServer(model_of(7), manners=Manners(ignores=True)) as upstream, ExitStack() as stack:
        alone, *four = [stack.enter_context(running(tmp_path, "--upstream", upstream.url, "--quiet"))[0] for _ in range(5)]
        for seed in range(9):
            player = (ChatPlayer, ResponsesPlayer, MessagesPlayer)[seed % 3]
            outcomes = []
            for urls in ([alone], four):
                begin = len(upstream.seen)
                outcomes.append((*Hopping(player, urls, seed, stream=seed % 2 == 0).play(), [one.body for one in upstream.seen[begin:]]))
            # Ids of calls are numbered by the upstream; all else is the same.
            told = [json.dumps(outcome).replace('"', "") for outcome in outcomes]
            assert _without_ids(told[0]) == _without_ids(told[1])
            assert outcomes[0][0][:1] in ([], ["think"])
            assert outcomes[0][0].count("search") <= 2


def _without_ids(text: str) -> str:
    return re.sub(r"(call|chatcmpl|resp|msg_own|fc_own|msg)_?\d+(_\d+)?", "ID", text)


def test_several_workers_share_one_address_and_their_counts(tmp_path: Path) -> None:
    replies = RawUpstream(whole(chat_reply(None, ("think", "{}"))))
    with (
        replies as upstream,
        running(tmp_path, "--upstream", upstream.url, "--workers", "4", "--quiet", TMPDIR=str(tmp_path)) as (url, process),
    ):
        for _ in range(20):
            assert post(url, CHAT).status_code == 200
        counts = httpx.get(url + "/metrics", trust_env=False).text
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert 'maymust_gateway_requests_total{outcome="passed",policy="desk.policy.yaml",protocol="chat"} 20.0' in counts
    assert [one.name for one in tmp_path.iterdir() if one.is_dir()] == [], "the folder of the counts is gone"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_reply_under_way_comes_to_its_end_before_the_gateway_does(tmp_path: Path, number: signal.Signals) -> None:
    pieces: list[Any] = [{"choices": [{"index": 0, "delta": {"content": str(n)}}]} for n in range(5)]
    slow = stream([one for piece in pieces for one in (piece, 0.2)] + [b"data: [DONE]\n\n"])
    history = [USER, called("think"), returned(), called("search"), returned()]
    got: list[httpx.Response] = []
    with RawUpstream(slow) as upstream, running(tmp_path, "--upstream", upstream.url) as (url, process):
        client = threading.Thread(target=lambda: got.append(post(url, {**CHAT, "stream": True, "messages": history})))
        client.start()
        while not upstream.seen:
            time.sleep(0.01)
        process.send_signal(number)
        client.join(20)
        assert process.wait(20) == 0
    assert got[0].content.endswith(b"data: [DONE]\n\n")


def command(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "desk.policy.yaml").write_text(RULES, encoding="utf-8")
    words = [sys.executable, "-m", "maymust", "gateway", *options]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


UPSTREAM = ("--upstream", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--policy", "missing.policy.yaml", *UPSTREAM), "missing.policy.yaml"),
        (("--policy", "-", *UPSTREAM), "cannot read a policy from stdin"),
        (("--policy", "desk.policy.yaml", "--upstream", "api.openai.com"), "upstream has to be the base URL of a provider"),
        (("--policy", "desk.policy.yaml", "--upstream", "https://user:pass@x.example"), "upstream has to be the base URL"),
        (("--policy", "desk.policy.yaml", *UPSTREAM, "--by-path", "finance=desk.policy.yaml"), "has to begin with a path"),
        (("--policy", "desk.policy.yaml", *UPSTREAM, "--by-header", "x=desk.policy.yaml"), "has to begin with `name: value`"),
        (("--policy", "desk.policy.yaml", *UPSTREAM, "--by-model", "gpt-5"), "has to be VALUE=POLICY"),
        (("--policy", "desk.policy.yaml", *UPSTREAM, "--port", "99999"), "a port from 0 to 65535"),
        (("--policy", "desk.policy.yaml", *UPSTREAM, "--host", "203.0.113.1"), "203.0.113.1:8808 cannot be listened on"),
    ],
)
def test_what_keeps_it_from_starting_is_told(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    done = command(tmp_path, *options)
    assert done.returncode in (1, 2), done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_policy_in_python_is_served_too(tmp_path: Path) -> None:
    rule = "ConditionalRequirement('search', max_invocations=0)"
    source = f"from maymust import ConditionalRequirement, Policy\nrules = Policy([{rule}], tools=['search'])\n"
    (tmp_path / "mine.py").write_text(source, encoding="utf-8")
    answer = Answer([json.dumps(chat_reply("done")).encode()])
    with RawUpstream(answer) as upstream, running(tmp_path, "--upstream", upstream.url, "--by-model", "gpt*=mine:rules") as (url, _):
        got = post(url, {**CHAT, "model": "gpt-4o"})
        assert got.headers["x-maymust-policy"] == "mine:rules"
        health = httpx.get(url + "/healthz", trust_env=False).json()
    assert health == {"status": "ok", "policies": ["desk.policy.yaml", "mine:rules"]}
    assert "search" not in str(upstream.seen[0].json["tools"])
    assert PATHS["chat"] == upstream.seen[0].path

"""The adversarial scripts through each adapter: whatever the model does, the provider takes every request, and no rule breaks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from maymust.models import Capabilities, ChatModel, ModelReply, ModelRequest, ToolCall, Usage
from tests.attack.adversary import Adversary
from tests.attack.checker import check
from tests.attack.play import Unbuilt, play
from tests.attack.scenario import generate
from tests.attack.soak import show
from tests.models.adapters import opened
from tests.models.picky import Manners, PickyServer

RUNS = int(os.environ.get("MAYMUST_ATTACK_WIRE_RUNS", "25"))
KINDS = {
    "chat, allowed_tools": ("chat", "gpt-6-sol", Manners(ignores=True, thinks=True)),
    "chat, filter": ("chat", "some-model", Manners(ignores=True, subsets=False, parallel=False, late_system=False)),
    "chat, no force": ("chat", "gpt-oss-20b", Manners(ignores=True, forced=False, subsets=False)),
    "responses": ("responses", "gpt-6-sol", Manners(ignores=True, thinks=True)),
    "messages, bound": ("messages", "claude-opus-5-5", Manners(ignores=True, thinks=True, bound=True, forced=False, piece=50)),
    "messages, whole": ("messages", "claude-opus-4-6", Manners(ignores=True, changes=False, late_system=False)),
}


class Wired:
    """The adversary behind a server: what it says goes over the wire, and so does what it is asked."""

    def __init__(self, adversary: Adversary, adapter: ChatModel, said: list[ModelReply]) -> None:
        self.adversary, self.adapter, self.said = adversary, adapter, said

    @property
    def name(self) -> str:
        return self.adapter.name

    @property
    def capabilities(self) -> Capabilities:
        return self.adapter.capabilities

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = self.adversary.reply_to(request)
        self.adversary.replies.append(reply)
        calls = tuple(ToolCall(made.call_id, made.name, made.raw) for made in reply.calls)
        self.said.append(ModelReply(reply.text, calls, Usage(output_tokens=reply.tokens, requests=1)))
        whole = [item async for item in self.adapter.stream(request)][-1]
        assert isinstance(whole, ModelReply)
        for _ in range(20):
            # The SDKs leave their iterators to the event loop to close, which takes a task for a moment.
            await asyncio.sleep(0)
        return whole

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        yield await self.complete(request)


@pytest.mark.parametrize("kind", KINDS)
def test_the_adversary_gets_nowhere_over_the_wire(kind: str) -> None:
    api, model, manners = KINDS[kind]
    said: list[ModelReply] = []

    async def main() -> int:
        played = 0
        with PickyServer(lambda body, wire: said.pop(), manners=manners) as server:
            async with opened(api, server, model) as adapter:
                for seed in range(1000, 1000 + RUNS):
                    rng = Random(seed)
                    scenario = generate(rng)
                    try:
                        record = await play(scenario, rng, lambda adversary: Wired(adversary, adapter, said))
                    except Unbuilt:
                        continue
                    played += 1
                    refused = [one for one in server.seen if one.status != 200]
                    assert not refused, f"seed {seed}: {refused[0].body}"
                    problems = check(scenario, record)
                    assert not problems, "\n".join([f"seed {seed}", *problems, show(scenario, record)])
        return played

    assert asyncio.run(main()) > RUNS // 2

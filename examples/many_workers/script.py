"""What the scripted model says in each of many runs at once: it pays before it looks, pays twice, and pays for other tickets."""

import asyncio
import re
from collections.abc import AsyncIterator

from maymust.models import Capabilities, ModelDelta, ModelReply, ModelRequest, ScriptedModel, call
from maymust.models.scripted import Turn


def script(ticket: int, price: int) -> list[Turn]:
    """The turns about one ticket."""
    return [
        call("refund", ticket=ticket, cents=price or 100),
        [call("look_up", ticket=ticket), call("refund", ticket=ticket, cents=price or 100)],
        [
            call("refund", ticket=ticket + 1, cents=100),
            call("refund", ticket=ticket, cents=price),
            call("refund", ticket=ticket, cents=price),
        ],
        call("final_answer", answer=f"Ticket {ticket} is settled."),
    ]


class Clerk:
    """A model that finds its place in the script by the conversation, so that one object, or one in each worker, serves all runs."""

    name = "clerk"
    capabilities = Capabilities()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The turn that follows what was said so far."""
        await asyncio.sleep(0.05)  # models take their time
        said = " ".join(message.text for message in request.messages)
        ticket, price = re.search(r"[Tt]icket (\d+)", said), re.search(r"(\d+) cents were paid", said)
        turns = script(int(ticket[1]) if ticket else 0, int(price[1]) if price else 0)
        place = sum(message.role == "assistant" for message in request.messages)
        return await ScriptedModel([turns[place]]).complete(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        """The same turn, whole."""
        yield await self.complete(request)

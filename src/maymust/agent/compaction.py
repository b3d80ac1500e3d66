"""Long conversations made shorter for the model. The history, and so every verdict, knows nothing of it (design 3.12).

What has been compacted is never touched again: the prompt's prefix breaks once, not every turn. A call and its results are kept
or compacted together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from maymust.errors import PolicyError
from maymust.models.chat_model import ChatModel, ModelRequest, Usage
from maymust.models.message import Message

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction came to: `messages` stand for the first `replaces` of those it was given. `usage` is what it cost."""

    messages: tuple[Message, ...]
    replaces: int
    usage: Usage = field(default_factory=Usage)


@runtime_checkable
class Compaction(Protocol):
    """A way to make a conversation shorter. `limit` is the count of tokens from which on it is asked to."""

    @property
    def limit(self) -> int:
        """Tokens of a model call from which on the conversation is compacted before the next one."""
        ...

    async def compact(self, messages: Sequence[Message], model: ChatModel) -> Compacted | None:
        """Compact the oldest of these messages; None when there is nothing to gain.

        `messages` are those not compacted yet, oldest first, all calls with their results; `model` is the run's own.
        """
        ...


def tokens_of(messages: Iterable[Message]) -> int:
    """About how many tokens these messages are: four characters make one."""
    return sum(len(message.text) + sum(len(call.raw_arguments) + len(call.name) for call in message.calls) for message in messages) // (
        CHARACTERS_PER_TOKEN
    )


def cut(messages: Sequence[Message], keep: int) -> int:
    """Where to cut so that at least the last `keep` tokens stay: no call is parted from its results. 0 when nothing can go."""
    open_calls: set[str] = set()
    places, total, sizes = [], 0, []
    for place, message in enumerate(messages):
        if not open_calls:
            places.append(place)
        open_calls.update(call.call_id for call in message.calls)
        if message.call_id is not None:
            open_calls.discard(message.call_id)
        total += tokens_of([message])
        sizes.append(total)
    fitting = [place for place in places if place and total - sizes[place - 1] >= keep]
    return max(fitting, default=0)


def _check(name: str, **numbers: Any) -> None:
    for word, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise PolicyError(f"{name}({word}={number!r}): give a whole number of at least 1")


@dataclass(frozen=True, slots=True)
class ShortenOutputs:
    """Shorten long tool results in the older part of the conversation. Costs no model call.

    limit   tokens of a model call from which on it is done
    keep    how many of the newest tokens stay as they are; None for half of `limit`
    length  characters that stay of a result
    """

    limit: int = 50_000
    keep: int | None = None
    length: int = 400

    def __post_init__(self) -> None:
        _check("ShortenOutputs", limit=self.limit, length=self.length, keep=1 if self.keep is None else self.keep)

    async def compact(self, messages: Sequence[Message], model: ChatModel) -> Compacted | None:
        """The older messages with their long results shortened in the middle; None when that gains little."""
        place = cut(messages, self.limit // 2 if self.keep is None else self.keep)
        old = tuple(messages[:place])
        short = tuple(self._shortened(message) for message in old)
        gained = tokens_of(old) - tokens_of(short)
        return Compacted(short, place) if gained >= max(self.limit // 20, 1) else None

    def _shortened(self, message: Message) -> Message:
        if message.role != "tool" or len(message.text) <= self.length + 40:
            return message
        half = self.length // 2
        left_out = len(message.text) - 2 * half
        return replace(message, text=f"{message.text[:half]}\n[... {left_out} characters left out ...]\n{message.text[-half:]}")


def transcript(messages: Sequence[Message]) -> str:
    """The messages as one text, for a model that sums them up."""
    names = {call.call_id: call.name for message in messages for call in message.calls}
    lines = []
    for message in messages:
        if message.kind == "status":
            continue
        who = f"result of {names.get(message.call_id or '', 'a call')}" if message.role == "tool" else message.role
        calls = [f"{call.name} {call.raw_arguments}" for call in message.calls]
        lines.append(f"{who}: {' '.join(part for part in (message.text, *(f'[calls {call}]' for call in calls)) if part)}")
    return "\n".join(lines)


SUMMARISE = (
    "Sum up this part of a conversation between a user and an assistant that works with tools. Keep what the assistant still needs: "
    "what was asked, what was found (names, numbers, identifiers, quotes), what was done, what failed and why, what is left to do. "
    "Write plain text, no headings, no comments of your own."
)


def summary_prompt(text: str) -> str:
    """What the model is asked for a summary."""
    return f"{SUMMARISE}\n\n{text}"


@dataclass(frozen=True, slots=True)
class Summarise:
    """Put a summary in the place of the older part of the conversation; the first message of the user stays.

    limit   tokens of a model call from which on it is done
    keep    how many of the newest tokens stay as they are; None for a quarter of `limit`
    model   the model that writes the summary; None for the run's own
    prompt  (transcript) -> the request's text
    """

    limit: int = 100_000
    keep: int | None = None
    model: ChatModel | None = None
    prompt: Callable[[str], str] = summary_prompt

    def __post_init__(self) -> None:
        _check("Summarise", limit=self.limit, keep=1 if self.keep is None else self.keep)

    async def compact(self, messages: Sequence[Message], model: ChatModel) -> Compacted | None:
        """The user's first message and a summary; None when there is little to sum up, or no summary came."""
        place = cut(messages, self.limit // 4 if self.keep is None else self.keep)
        first = 1 if messages and messages[0].role == "user" and not messages[0].kind else 0
        old = messages[first:place]
        if tokens_of(old) < max(self.limit // 20, 1):
            return None
        reply = await (self.model or model).complete(ModelRequest([Message("user", self.prompt(transcript(old)))]))
        if not reply.text.strip() or tokens_of([Message("user", reply.text)]) >= tokens_of(old):
            return None
        summary = Message("user", f"[Summary of what came before]\n{reply.text.strip()}", kind="summary")
        return Compacted((*messages[:first], summary), place, reply.usage)


def valid(given: Sequence[Message], made: Compacted) -> str | None:
    """What is wrong with what a compaction made; None when every call has its result and every result its call."""
    if not 0 < made.replaces <= len(given):
        return f"it replaces {made.replaces} of {len(given)} messages"
    open_calls: list[str] = []
    for message in (*made.messages, *given[made.replaces :]):
        if message.role == "tool":
            if message.call_id not in open_calls:
                return f"the result of call {message.call_id!r} has no call"
            open_calls.remove(message.call_id)
        elif open_calls:
            return f"there is no result of {', '.join(open_calls)}"
        elif message.role == "system":
            return "it makes a system message"
        open_calls += [call.call_id for call in message.calls]
    return f"there is no result of {', '.join(open_calls)}" if open_calls else None

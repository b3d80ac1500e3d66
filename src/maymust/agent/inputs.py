"""What a run is given to work on: text, messages and parts that are not text, checked before anything is sent."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from maymust.agent.state import RunState
from maymust.core.log import Log
from maymust.errors import RunError
from maymust.models.chat_model import ChatModel
from maymust.models.message import Message, Part
from maymust.tools.output import encodable

log: logging.Logger = logging.getLogger(__name__)

Input = str | Message | Sequence[str | Message | Part]
"""Text, a `Message`, or a list of them. Texts and `Part`s side by side, with at least one `Part` among them, are one message."""


def as_messages(given: Input) -> list[Message]:
    """The messages that `given` stands for. Raises TypeError for anything else."""
    if isinstance(given, str):
        return [Message("user", encodable(given))]
    if isinstance(given, Message):
        return [whole(given)]
    if not isinstance(given, Iterable):
        raise TypeError(f"input must be text, a Message or a list of them, and it is {given!r}")
    messages: list[Message] = []
    for is_message, group in groupby(given, lambda item: isinstance(item, Message)):
        items = list(group)
        if is_message:
            messages += [whole(item) for item in items if isinstance(item, Message)]
        else:
            messages += _of_parts(items)
    return messages


def _of_parts(items: list[str | Message | Part]) -> list[Message]:
    for item in items:
        if not isinstance(item, str | Part):
            raise TypeError(f"input must be text, a Message or a list of them (text, image and file parts), and it holds {item!r}")
    if all(isinstance(item, str) for item in items):
        return [Message("user", encodable(str(item))) for item in items]
    # The text of a message goes before its parts.
    text = items[0] if isinstance(items[0], str) else ""
    rest = items[1:] if text else items
    return [whole(Message("user", text, parts=tuple(item if isinstance(item, Part) else Part("text", str(item)) for item in rest)))]


def whole(message: Message) -> Message:
    """The message without halves of characters in its texts, which no model could be sent."""
    text = encodable(message.text)
    parts = tuple(
        part if not part.text or encodable(part.text) is part.text else replace(part, text=encodable(part.text)) for part in message.parts
    )
    return message if text is message.text and parts == message.parts else replace(message, text=text, parts=parts)


def check_parts(messages: Iterable[Message], model: ChatModel) -> None:
    """Raise RunError for a part that the model does not take."""
    for message in messages:
        for part in message.parts:
            if not _takes(model, part):
                raise RunError(f"the model {model.name} takes no {part.kind} parts; send it as text, or use a model that takes them")


def readable(message: Message, model: ChatModel) -> Message:
    """The message with words in the place of parts that the model does not take: whoever sent it to a store did not know the model."""
    if all(_takes(model, part) for part in message.parts):
        return message
    log.warning("the model %s takes not all parts of a message that was sent to its run; it reads that they were left out", model.name)
    parts = (part if _takes(model, part) else Part("text", f"[{part.kind} left out: this model takes none]") for part in message.parts)
    return replace(message, parts=tuple(parts))


def _takes(model: ChatModel, part: Part) -> bool:
    return {"text": True, "image": model.capabilities.images, "file": model.capabilities.files}.get(part.kind, False)


def conversation(earlier: RunState | None, given: Input, model: ChatModel) -> Log[Message]:
    """The messages a run starts with: those of an earlier one, what was said to it too late to be read, and the input.

    Raises RunError for parts the model does not take, and for an earlier run in the middle of a turn.
    """
    if earlier is None:
        messages: Log[Message] = Log(())
    else:
        if earlier.calls:
            waiting = ", ".join(record.call_id for record in earlier.calls if record.status != "done")
            raise RunError(
                f"run {earlier.run_id} is in the middle of a turn: {waiting} has no result yet; resume it to its end "
                "before its conversation goes on"
            )
        messages = earlier.messages
        for message in earlier.inbox:
            messages = messages.add(message)
    for message in as_messages(given):
        messages = messages.add(message)
    if not (model.capabilities.images and model.capabilities.files):
        check_parts(messages, model)
    return messages

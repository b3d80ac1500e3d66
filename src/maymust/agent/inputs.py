"""What a run is given to work on: text, messages and parts that are not text, checked before anything is sent."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import get_args

from maymust.agent.state import RunState
from maymust.core.log import Log
from maymust.errors import RunError
from maymust.models.chat_model import ChatModel
from maymust.models.message import Message, Part, Role
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


def from_user(message: str | Message, where: str) -> Message:
    """What a user says to a run. Raises TypeError for what is no message, RunError for one that is empty or not the user's."""
    if not isinstance(message, str | Message):
        raise TypeError(f"{where} takes text or a Message, not {message!r}")
    said = whole(message if isinstance(message, Message) else Message("user", message))
    if said.role != "user" or said.kind or said.calls or said.call_id is not None:
        raise RunError(f"a message to a run is the user's, and this one is of role {said.role!r}; give text, or Message('user', ...)")
    if not said.text.strip() and not any(part.url or (part.text or "").strip() for part in said.parts):
        raise RunError("the message is empty, so there is nothing for the model to read; give it a text")
    return said


def check_whole(messages: Iterable[Message]) -> None:
    """Raise RunError for messages that no provider takes: of an unknown role, or calls and results that do not belong together."""
    calls: set[str] = set()
    for message in messages:
        if message.role not in get_args(Role):
            raise RunError(f"the input has a message of role {message.role!r}; the roles are {', '.join(get_args(Role))}")
        if message.role == "tool" and message.call_id not in calls:
            raise RunError(f"the input has a result of call {message.call_id!r}, which no message before it has asked for")
        calls.discard(message.call_id or "")
        calls.update(call.call_id for call in message.calls)
    if calls:
        raise RunError(f"the input has no result of call {', '.join(sorted(calls))}; add a message of role 'tool' for each call")


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

    Raises RunError for an input that is empty or no conversation, for parts the model does not take, and for an earlier run in the
    middle of a turn.
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
    said = as_messages(given)
    check_whole(said)
    for message in said:
        messages = messages.add(message)
    if not len(messages):
        raise RunError("the input is empty, and so is the conversation: there is nothing for the model to read; give it a text")
    if not (model.capabilities.images and model.capabilities.files):
        check_parts(messages, model)
    return messages

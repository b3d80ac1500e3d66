"""Asking a person about a call: whose question applies, what the answer means, and asking in a terminal (design 3.10)."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import re
import sys
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from maymust.agent.call_record import Approval, PendingCall
from maymust.core.permit import Permit
from maymust.errors import MaymustError, RunError, ToolError, text_of
from maymust.requirements.permission import Decision
from maymust.tools.json_schema import in_question

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def questions_about(permit: Permit, tool: str, arguments: Mapping[str, Any], order: Sequence[str]) -> tuple[str, ...]:
    """Names of the requirements that ask about this call with these arguments, in policy order (`order`); the run's own come last."""
    names: list[str] = []
    for name, question in permit.questions(tool):
        asks = name not in names and (isinstance(question, bool) or _matches(question, arguments))
        if asks and not permit.excused(name, tool, arguments):
            names.append(name)
    return tuple(sorted(names, key=lambda name: order.index(name) if name in order else len(order)))


def reasons_to_ask(permit: Permit, tool: str, requirements: Sequence[str]) -> tuple[str, ...]:
    """What these requirements give as a reason for asking about the tool, each reason once."""
    asking = (spoken.rule for spoken in permit.why(tool) if spoken.requirement in requirements and spoken.rule.target == tool)
    return tuple(dict.fromkeys(rule.reason for rule in asking if rule.ask and rule.reason))


def _matches(fragments: Mapping[str, Mapping[str, Any]], arguments: Mapping[str, Any]) -> bool:
    # A parameter that is not there cannot be shown to be harmless, so it is asked about.
    return all(param not in arguments or in_question(fragment)(arguments[param]) for param, fragment in fragments.items())


def as_decision(answer: Any, *, tool: str, requirement: str) -> Decision:
    """A handler's answer as a decision. Raises RunError for anything but a bool or a `Decision`."""
    if isinstance(answer, Decision):
        if not isinstance(answer.allow, bool):
            raise RunError(f"the decision about {tool} has allow={answer.allow!r}; it must be True or False, so the call stays closed")
        return answer
    if isinstance(answer, bool):
        return Decision(answer)
    raise RunError(
        f"the handler of {requirement} answered {answer!r} about {tool}; it must give True, False or a Decision, so the call stays closed"
    )


async def ask_handler(handler: Any, call: PendingCall, requirement: str) -> Decision:
    """Put one question to a handler, sync or async. Raises RunError for what it raises, also for a ToolError, since no tool has failed."""
    try:
        answer = handler(call)
        if inspect.isawaitable(answer):
            answer = await answer
    except Exception as fault:
        if isinstance(fault, MaymustError) and not isinstance(fault, ToolError):
            raise
        raise RunError(
            f"the handler of {requirement} raised {type(fault).__name__} about {call.tool}: {text_of(fault)}; it was not run"
        ) from fault
    return as_decision(answer, tool=call.tool, requirement=requirement)


async def ask_in_terminal(call: PendingCall) -> Decision:
    """A handler that asks in the terminal, `y` or `n`; a text after `n` is the reason. No terminal, no permission.

    Raises RunError when standard input is no terminal.
    """
    if not sys.stdin.isatty():
        raise RunError(
            f"{call.tool} needs a person's yes, and standard input is no terminal; pass a handler, or leave it out to pause the run"
        )
    shown = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", json.dumps(call.arguments, ensure_ascii=False))
    why = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", "".join(f" ({reason})" for reason in call.reasons))
    async with _terminal():
        while True:
            line = await _line(f"Allow {call.tool}({shown})?{why} [y/n, a reason may follow n] ")
            if not line:
                raise RunError(f"{call.tool} needs a person's yes, and the terminal was closed")
            word, _, reason = line.strip().partition(" ")
            if word.lower() in ("y", "yes"):
                return Decision(True)
            if word.lower() in ("n", "no"):
                return Decision(False, reason.strip() or None)


_IN_USE = threading.Lock()
"""There is one terminal, however many runs and event loops ask in it."""


@contextlib.asynccontextmanager
async def _terminal() -> AsyncIterator[None]:
    while not _IN_USE.acquire(blocking=False):  # noqa: ASYNC110  an asyncio.Event belongs to one event loop
        await asyncio.sleep(0.02)
    try:
        yield
    finally:
        _IN_USE.release()


async def _line(prompt: str) -> str:
    """A line that a person types; empty at the end of input."""
    print(prompt, end="", flush=True)
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        # No thread, which could neither be cancelled nor left behind: a terminal has a whole line when it is ready.
        loop.add_reader(sys.stdin.fileno(), ready.set)
    except NotImplementedError:
        return await asyncio.to_thread(sys.stdin.readline)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()


def answer_given(approvals: tuple[Approval, ...], name: str, arguments: dict[str, Any]) -> Approval | None:
    """The answer this requirement has had about a call with these very arguments."""
    return next((one for one in reversed(approvals) if one.requirement == name and same(one.arguments, arguments)), None)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same. To Python 1, 1.0 and True are equal; what a person was shown is not."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def denial_text(answer: Approval) -> str:
    """What the model reads after a no."""
    who = answer.by or "a person"
    return f"{who} said no" + (f": {answer.reason}" if answer.reason else "") + "; it was not run"

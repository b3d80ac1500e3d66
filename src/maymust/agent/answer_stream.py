"""The answer as it comes: tentative pieces while the model writes, committed or withdrawn when the turn has shown what it is worth."""

from __future__ import annotations

import json
import re
from typing import Any

from maymust.agent.events import AnswerCommitted, AnswerDelta, AnswerWithdrawn
from maymust.agent.session import Session
from maymust.core.permit import Permit
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.models.chat_model import CallDelta

_HEAD = re.compile(r'\s*\{\s*"answer"\s*:\s*"')
_HEAD_LENGTH = 64
_BODY = re.compile(r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_DECODER = json.JSONDecoder(strict=False)
_HALF = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


class AnswerStream:
    """Tells the listeners of a run the pieces of what may be its answer, during one model call.

    That is the first call of `final_answer` when it is on offer, as text (for an `output_type`: its arguments as they are written),
    or a text where a text may be the answer.
    """

    def __init__(self, session: Session, permit: Permit) -> None:
        self._session = session
        plan = session.plan
        self._text_may_be_it = permit.may_stop
        self._call_may_be_it = FINAL_ANSWER in permit.allowed and not plan.answers_in_text
        self._decoder = StringField() if plan.final.output_type in (None, str) else None
        self._index: int | None = None

    def text(self, piece: str) -> None:
        """A piece of the reply's text."""
        if self._text_may_be_it:
            self._show(piece)

    def arguments(self, delta: CallDelta) -> None:
        """A piece of a call. A text that calls follow was no answer."""
        if self._text_may_be_it:
            self._text_may_be_it = False
            withdraw(self._session, "calls came after the text")
        if not self._call_may_be_it or delta.name != FINAL_ANSWER:
            return
        if self._index is None:
            self._index = delta.index
        if delta.index == self._index:
            self._show(delta.arguments if self._decoder is None else self._decoder.feed(delta.arguments))

    def _show(self, piece: str) -> None:
        if piece:
            self._session.tentative = True
            _emit(self._session, AnswerDelta, text=piece)


class StringField:
    """Reads the text of `{"answer": "..."}` from pieces of the JSON. Anything else gives nothing."""

    def __init__(self) -> None:
        self._rest, self._open, self._closed = "", False, False

    def feed(self, piece: str) -> str:
        """What this piece adds to the text."""
        if self._closed:
            return ""
        self._rest += piece
        if not self._open:
            head = _HEAD.match(self._rest)
            if head is None:
                self._closed = len(self._rest) > _HEAD_LENGTH
                return ""
            self._rest, self._open = self._rest[head.end() :], True
        body = _BODY.match(self._rest)
        whole = body.group() if body is not None else ""
        self._closed = self._rest[len(whole) : len(whole) + 1] == '"'
        half = None if self._closed else _HALF.search(whole)
        if half is not None:
            # The other half of the character is still to come.
            whole = whole[: half.start()]
        self._rest = self._rest[len(whole) :]
        return str(_DECODER.decode(f'"{whole}"'))


def settle_answer(session: Session) -> None:
    """Commit the answer when the run has ended with one, withdraw what was shown when its turn is over without."""
    state = session.state
    if state.phase == "ended" and state.stop_reason in ("final_answer", "text_answer"):
        session.tentative = False
        _emit(session, AnswerCommitted, answer=state.answer or "")
    elif session.tentative and state.phase != "batch":
        turn = state.turns[-1] if len(state.turns) else None
        steps = state.steps[turn.first_step :] if turn is not None else ()
        said = next((step.text for step in reversed(steps) if step.tool == FINAL_ANSWER and step.text), None)
        withdraw(session, said or ("the run was stopped" if state.phase == "ended" else "the text was not accepted as the answer"))


def withdraw(session: Session, reason: str) -> None:
    """Take back what was shown, if anything was."""
    if session.tentative:
        session.tentative = False
        _emit(session, AnswerWithdrawn, reason=reason)


def _emit(session: Session, kind: type[Any], **fields: Any) -> None:
    if session.listeners.wants(kind):
        session.listeners.emit(kind(run_id=session.state.run_id, **fields))

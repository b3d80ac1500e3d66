"""Questions that wait for a person, in the store: asked, decided once, used once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from maymust.agent.actions import Decided
from maymust.agent.call_record import PendingCall
from maymust.agent.journal import Answer
from maymust.durable.audit import when, write_audit
from maymust.durable.connection import Connection
from maymust.durable.store import DecisionError, Question
from maymust.requirements.permission import Decision
from maymust.tools.happened import Happened
from maymust.tools.output import json_text

_WORDS = {"yes": "yes", "no": "no", "happened": "it happened"}


def ask(connection: Connection, run_id: str, calls: Iterable[PendingCall], now: float, timeout: float | None) -> None:
    """Note the questions that are not there yet."""
    for call in calls:
        known = connection.execute("SELECT 1 FROM questions WHERE run_id = ? AND call_id = ? AND used = 0", (run_id, call.call_id))
        if known.fetchone() is not None:
            continue
        # An interrupted call is not less unknown for nobody having looked at it.
        expires = None if timeout is None or call.interrupted else now + timeout
        lists = [json_text(part) for part in (call.arguments, list(call.requirements), list(call.reasons))]
        connection.execute(
            """INSERT INTO questions(run_id, call_id, tool, arguments, requirements, reasons, interrupted, asked_at, expires_at)
            VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (run_id, call.call_id, call.tool, *lists, call.interrupted, now, expires),
        )
        write_audit(connection, now, run_id, "asked", call_id=call.call_id, tool=call.tool, interrupted=call.interrupted)


def expire(connection: Connection, run_id: str, now: float) -> None:
    """What nobody has answered in time is a no."""
    late = "run_id = ? AND used = 0 AND answer IS NULL AND expires_at <= ?"
    for row in connection.execute(f"SELECT id, call_id, asked_at, expires_at FROM questions WHERE {late}", (run_id, now)).fetchall():
        reason = f"nobody answered within {row['expires_at'] - row['asked_at']:g} seconds"
        _answer(connection, row["id"], "no", now, reason=reason, by="the time limit")
        write_audit(connection, now, run_id, "expired", by="the time limit", call_id=row["call_id"])


def decide(connection: Connection, run_id: str, answers: Mapping[str, Answer], by: str | None, now: float) -> list[Question]:
    """Note answers, and give the questions as they are decided now: by these, or by equal ones that came first.

    Raises DecisionError, and then none of them is noted: for a call that does not wait, and for an answer against the one that is there.
    """
    expire(connection, run_id, now)
    return [_decide(connection, run_id, call_id, answer, by, now) for call_id, answer in answers.items()]


def _decide(connection: Connection, run_id: str, call_id: str, answer: Answer, by: str | None, now: float) -> Question:
    query = "SELECT * FROM questions WHERE run_id = ? AND call_id = ? ORDER BY id DESC LIMIT 1"
    row = connection.execute(query, (run_id, call_id)).fetchone()
    if row is None:
        waiting = [one.call_id for one in read_questions(connection, run_id=run_id, open_only=True)]
        said = f"there is no question about call {call_id!r} of run {run_id}; waiting: {', '.join(waiting) or 'none'}"
        raise DecisionError(said, call_id=call_id)
    word, who = word_of(answer), answer.by or by
    first = question_of(row)
    if first.answer is not None:
        if first.answer == word:
            return first
        raise _too_late(first, word)
    if word == "happened" and not row["interrupted"]:
        said = f"call {call_id!r} of {row['tool']} has not run yet, so it cannot have happened; decide yes or no about it"
        raise DecisionError(said, call_id=call_id)
    output = json_text(answer.output) if isinstance(answer, Happened) and answer.output is not None else None
    remember = isinstance(answer, Decision) and answer.remember
    _answer(connection, row["id"], word, now, reason=answer.reason, by=who, output=output, remember=remember)
    write_audit(connection, now, run_id, "decided", by=who, call_id=call_id, answer=word, reason=answer.reason)
    return question_of(connection.execute("SELECT * FROM questions WHERE id = ?", (row["id"],)).fetchone())


def _too_late(first: Question, word: str) -> DecisionError:
    told = f"the decision about call {first.call_id!r} of {first.tool} ({_WORDS[word]}) does not count"
    if first.answer == "withdrawn":
        return DecisionError(f"{told}: run {first.run_id} ended before it was made", call_id=first.call_id, first=first)
    why = f", {first.reason}" if first.reason else ""
    said = f"{first.by or 'somebody'} decided {_WORDS[first.answer or '']} at {when(first.decided_at)}{why}"
    return DecisionError(f"{told}: {said}; the first decision counts", call_id=first.call_id, first=first)


def word_of(answer: Answer) -> str:
    """The answer in a word."""
    return "happened" if isinstance(answer, Happened) else "yes" if answer.allow else "no"


def answers_of(connection: Connection, run_id: str) -> dict[str, Answer]:
    """What was decided about the calls that wait, for the run to go on with."""
    answers: dict[str, Answer] = {}
    query = "SELECT * FROM questions WHERE run_id = ? AND used = 0 AND answer IN ('yes', 'no', 'happened') ORDER BY id"
    for row in connection.execute(query, (run_id,)).fetchall():
        if row["answer"] == "happened":
            output = None if row["output"] is None else json.loads(row["output"])
            answers[row["call_id"]] = Happened(output, reason=row["reason"], by=row["by"])
        else:
            answers[row["call_id"]] = Decision(row["answer"] == "yes", row["reason"], row["by"], bool(row["remember"]))
    return answers


def settle(connection: Connection, run_id: str, event: Decided, now: float) -> None:
    """The run has found the answer itself, as `resolve` of a tool does."""
    row = connection.execute("SELECT id FROM questions WHERE run_id = ? AND call_id = ? AND used = 0", (run_id, event.call_id)).fetchone()
    if row is not None:
        _answer(connection, row["id"], "yes" if event.allow else "no", now, reason=event.reason, by=event.by)
        connection.execute("UPDATE questions SET used = 1 WHERE id = ?", (row["id"],))


def use(connection: Connection, run_id: str, call_ids: Iterable[str]) -> None:
    """The run has gone on with these answers. Others may have come since it was given them; they are for the next time."""
    rows = [(run_id, call_id) for call_id in call_ids]
    connection.executemany("UPDATE questions SET used = 1 WHERE run_id = ? AND call_id = ? AND used = 0 AND answer IS NOT NULL", rows)


def withdraw(connection: Connection, run_id: str, now: float) -> None:
    """The run is over: its open questions are nobody's any more."""
    unanswered = "run_id = ? AND answer IS NULL AND used = 0"
    connection.execute(f"UPDATE questions SET answer = 'withdrawn', decided_at = ?, used = 1 WHERE {unanswered}", (now, run_id))
    connection.execute("UPDATE questions SET used = 1 WHERE run_id = ? AND used = 0", (run_id,))


def read_questions(connection: Connection, *, run_id: str | None = None, open_only: bool = False) -> list[Question]:
    """Questions, oldest first."""
    wanted = ["run_id = ?"] if run_id is not None else []
    wanted += ["answer IS NULL"] if open_only else []
    where = f"WHERE {' AND '.join(wanted)}" if wanted else ""
    rows = connection.execute(f"SELECT * FROM questions {where} ORDER BY id", () if run_id is None else (run_id,)).fetchall()
    return [question_of(row) for row in rows]


def question_of(row: Any) -> Question:
    """A row as what it says."""
    return Question(
        run_id=row["run_id"],
        call_id=row["call_id"],
        tool=row["tool"],
        arguments=json.loads(row["arguments"]),
        requirements=tuple(json.loads(row["requirements"])),
        reasons=tuple(json.loads(row["reasons"])),
        interrupted=bool(row["interrupted"]),
        asked_at=row["asked_at"],
        expires_at=row["expires_at"],
        answer=row["answer"],
        reason=row["reason"],
        by=row["by"],
        decided_at=row["decided_at"],
        used=bool(row["used"]),
    )


def _answer(connection: Connection, key: int, word: str, now: float, **fields: Any) -> None:
    values = (word, now, fields.get("reason"), fields.get("by"), fields.get("output"), fields.get("remember", False), key)
    connection.execute("UPDATE questions SET answer = ?, decided_at = ?, reason = ?, by = ?, output = ?, remember = ? WHERE id = ?", values)

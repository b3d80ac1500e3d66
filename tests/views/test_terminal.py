"""A run on a terminal: what is told, what is not told twice, and what cannot do harm."""

import asyncio
import io
import sys
from typing import Any

import pytest

from maymust import Agent, AskPermissionRequirement, History, Outcome, Policy, tool
from maymust.events import (
    CallFinished,
    CallStarted,
    LadderRung,
    ModelCallFinished,
    ModelCallStarted,
    QuestionAsked,
    RunFinished,
    RunPaused,
    TextDelta,
    ToolsChanged,
    TurnStarted,
)
from maymust.models import ScriptedModel, call
from maymust.models.chat_model import ModelReply, ModelRequest, Usage
from maymust.views.terminal import Terminal
from maymust.views.terminal_live import Spinner
from tests.trace.test_trace import RULES, desk

HOSTILE = "\x1b[2J\x9b1m\x07\u202eevil\u2066\ud800\U000e0041\u2028line\r\nnext"


class Screen(io.StringIO):
    """A stream that says of itself that it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(agent: Agent[Any], stream: io.StringIO | None = None, **settings: Any) -> str:
    out = io.StringIO() if stream is None else stream

    async def main() -> None:
        run = agent.start("Please.")
        Terminal(out, **settings).listen(run)
        await run

    asyncio.run(main())
    return out.getvalue()


def shown(*events: Any, **settings: Any) -> list[str]:
    out = io.StringIO()
    terminal = Terminal(out, **settings)
    for event in events:
        terminal.show(event)
    return out.getvalue().splitlines()


def permit(*calls: str) -> Any:
    history = History()
    for name in calls:
        history = history.add(name)
    return Policy(RULES, tools=["look", "refund"]).permit(history)


def test_a_permit_is_told_only_where_it_changed() -> None:
    first, second, third = (TurnStarted("r", number, permit(*calls)) for number, calls in enumerate(((), ("look",), ("look", "look")), 1))
    lines = shown(first, second, third)
    assert lines == [
        "turn 1",
        "  ● allowed   look",
        "  ⊘ denied    refund        look has to succeed first [conditional:refund] (look: 0 ok calls; refund: 0 ok calls)",
        "  ⊘ denied    final_answer  look has to succeed first [conditional:final_answer] (look: 0 ok calls)",
        "turn 2",
        "  ● allowed   refund",
        "  ● allowed   final_answer",
        "    1 as before",
        "turn 3",
    ]


def test_tools_that_are_gone_are_told() -> None:
    fewer = Policy([], tools=["look"]).permit(History())
    assert "  - gone: refund" in shown(TurnStarted("r", 1, Policy([], tools=["look", "refund"]).permit()), TurnStarted("r", 2, fewer))


def test_every_outcome_has_a_mark_and_a_word() -> None:
    lines = shown(*(CallFinished("r", "c", "look", outcome, "text", {"order": 1}) for outcome in Outcome))
    assert lines == [
        '  ✓ look("order": 1) text',
        '  ✗ look("order": 1) failed: text',
        '  ✗ look("order": 1) denied: text',
        '  ⊘ look("order": 1) refused: text',
    ]


def test_questions_and_answers_are_told() -> None:
    agent = desk(rules=[*RULES, AskPermissionRequirement(include=["refund"], handler=lambda _: False)])
    out = printed(agent)
    assert '  ? refund("order": 1, "amount": 2) needs a person\'s yes: ask:refund\n' in out
    assert "note: refund: a person said no\n" in out


def test_untrusted_texts_can_neither_move_the_cursor_nor_fake_a_line() -> None:
    texts = iter([HOSTILE, "x" * 1_000_000])

    @tool
    def fetch(url: str) -> str:
        """Fetch."""
        return next(texts)

    script = [call("fetch", url=HOSTILE), call("fetch", url="b" * 1_000_000), call("no" + HOSTILE), call("final_answer", answer="x")]
    out = printed(Agent(ScriptedModel(script), tools=[fetch]))
    assert all(len(line) <= 160 for line in out.split("\n"))
    assert not any(char in out for char in "\x1b\x9b\x07\u202e\u2066\ud800\U000e0041\u2028\r")
    direct = "\n".join(shown(CallFinished("r", "c", HOSTILE, Outcome.OK, HOSTILE, {HOSTILE: HOSTILE}), LadderRung("r", 9, HOSTILE)))
    assert direct.isprintable() or set(direct) - {"\n"} <= {char for char in direct if char.isprintable()}


def test_a_stream_of_few_characters_gets_escapes() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="\n")
    Terminal(stream).show(CallFinished("r", "c", "look", Outcome.OK, "naïve"))
    stream.flush()
    assert stream.buffer.getvalue() == b"  \\u2713 look() na\\xefve\n"


def test_colours_are_for_terminals_and_no_color_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert "\x1b" not in printed(desk())
    assert "\x1b[" in printed(desk(), Screen())
    monkeypatch.setenv("NO_COLOR", "1")
    plain = printed(desk(), Screen())
    assert "\x1b" not in plain
    assert "⊘ denied    refund" in plain


def test_without_rich_lines_are_printed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    out = printed(desk(), Screen(), colours=False, live=True)
    assert "\x1b" not in out
    assert out.startswith("turn 1\n")


def test_writing_lines_does_not_make_the_model_stream() -> None:
    agent = Agent(ScriptedModel(["Hello."]), tools=[])
    kinds: list[type] = []

    async def main() -> None:
        run = agent.start("Please.")
        Terminal(io.StringIO()).listen(run)
        kinds.extend(kind for kind in (TextDelta, ToolsChanged) if run._session.listeners.wants(kind))
        await run

    asyncio.run(main())
    assert kinds == []


def test_the_spinner_says_who_is_at_work_with_tokens_and_seconds() -> None:
    pytest.importorskip("rich")
    spinner = Spinner(Screen())
    assert spinner.text() == ""
    spinner.show(ModelCallStarted("r", 1, ModelRequest(())))
    assert spinner.text() == "the model is at work  0 s, 0 tokens"
    spinner.show(TextDelta("r", "x" * 400))
    assert spinner.text() == "the model is at work  0 s, 0 tokens, ~100 more"
    spinner.show(ModelCallFinished("r", 1, ModelReply(usage=Usage(1000, 234))))
    assert spinner.text() == ""
    spinner.show(CallStarted("r", "c1", "look\x1b", {}))
    assert spinner.text() == "look\\x1b  0 s"
    spinner.show(QuestionAsked("r", call=None))  # type: ignore[arg-type]
    assert spinner.text() == ""
    spinner.show(RunPaused("r"))
    spinner.show(ModelCallStarted("r", 2, ModelRequest(())))
    assert spinner.text() == "the model is at work  0 s, 1,234 tokens"
    spinner.show(RunFinished("r", "final_answer"))
    assert spinner.text() == ""


def test_the_spinner_leaves_nothing_behind() -> None:
    pytest.importorskip("rich")

    @tool
    async def wait() -> str:
        """Wait."""
        await asyncio.sleep(0.4)
        return "done"

    out = printed(Agent(ScriptedModel([call("wait"), call("final_answer", answer="x")]), tools=[wait]), Screen(), colours=False, live=True)
    assert "wait  0 s" in out
    # Each time the cursor came back and the line was wiped.
    assert out.count("\x1b[?25l") == out.count("\x1b[?25h") > 0
    assert out.rpartition("\x1b[2K")[2] == "ended: final_answer after 2 turns\n"
    assert "wait" not in out.partition("turn 2")[2]

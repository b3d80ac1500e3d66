"""Asking a person: in a terminal, with memory, about the recorded call and nothing else."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from maymust import (
    Agent,
    ApprovalMemory,
    AskPermissionRequirement,
    Decision,
    FunctionInvocationContext,
    Rule,
    RunError,
    RunState,
    ToolError,
    ask_in_terminal,
    requirement,
    tool,
)
from maymust.models import ScriptedModel, call

DONE = call("final_answer", answer="done")


@tool
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
async def look() -> str:
    """Look."""
    return "looked"


def _agent(turns: list[Any], **asking: Any) -> Agent:
    return Agent(ScriptedModel(turns), tools=[pay, look], requirements=[AskPermissionRequirement(["pay"], **asking)])


def _outcomes(result: Any) -> list[str]:
    return [str(step.outcome) for step in result.steps if step.tool != "final_answer"]


# --- the recorded call ---


def test_what_runs_after_a_yes_is_the_recorded_call() -> None:
    agent = _agent([call("pay", amount=5), DONE])
    paused = agent.run_sync("go")
    paused.pending[0].arguments["amount"] = 5000
    assert agent.resume_sync(paused, {"c1": True}).steps[0].text == "paid 5"


def test_a_yes_holds_for_the_arguments_that_were_shown() -> None:
    async def raising(context: FunctionInvocationContext, call_next: Any) -> None:
        if context.arguments is not None and context.name == "pay":
            context.arguments = {"amount": context.arguments["amount"] * 10}
        await call_next()

    agent = _agent([call("pay", amount=5), DONE])
    paused = agent.run_sync("go")
    # Another middleware would change what was agreed to: the person is asked again, about that.
    again = agent.resume_sync(paused, {"c1": True}, middleware=[raising])
    assert [one.arguments for one in again.pending] == [{"amount": 50}]
    assert agent.resume_sync(again, {"c1": True}, middleware=[raising]).steps[0].text == "paid 50"


def test_a_decision_is_good_for_one_call() -> None:
    agent = _agent([call("pay", amount=5), call("pay", amount=5), DONE])
    first = agent.run_sync("go")
    second = agent.resume_sync(first, {"c1": True})
    assert [one.call_id for one in second.pending] == ["c2"]
    with pytest.raises(RunError, match="c2"):
        agent.resume_sync(second, {"c1": True})


@pytest.mark.parametrize("wrong", ["yes", 1, None, {"allow": True}])
def test_only_a_bool_or_a_decision_is_a_decision(wrong: Any) -> None:
    agent = _agent([call("pay", amount=5), DONE])
    with pytest.raises(RunError, match="stays closed"):
        agent.resume_sync(agent.run_sync("go"), {"c1": wrong})


def test_whoever_is_asked_hears_why() -> None:
    @requirement(targets=["pay"], name="strangers")
    def asks(history: Any) -> Rule:
        return Rule("pay", ask=True, reason="a stranger's page was read before")

    agent = Agent(ScriptedModel([call("pay", amount=5), DONE]), tools=[pay], requirements=[asks])
    paused = agent.run_sync("go")
    for result in (paused, agent.resume_sync(RunState.from_json(paused.state.to_json()))):
        assert [(one.requirements, one.reasons) for one in result.pending] == [(("strangers",), ("a stranger's page was read before",))]
    assert agent.resume_sync(paused, {"c1": True}).answer == "done"


# --- when ---


def test_only_calls_that_match_are_asked_about() -> None:
    asked: list[int] = []

    def handler(pending: Any) -> bool:
        asked.append(pending.arguments["amount"])
        return False

    turns = [[call("pay", amount=amount) for amount in (50, 100, 101, 500)], DONE]
    agent = _agent(turns, when={"amount": {"type": "integer", "exclusiveMinimum": 100}}, handler=handler)
    assert _outcomes(agent.run_sync("go")) == ["ok", "ok", "denied", "denied"]
    assert asked == [101, 500]


# --- remembering ---


def test_choices_are_shared_by_whoever_holds_the_memory() -> None:
    memory = ApprovalMemory()
    turns = [call("pay", amount=1), DONE]
    first = _agent(turns, remember_in=memory)
    paused = first.run_sync("go")
    assert first.resume_sync(RunState.from_json(paused.state.to_json()), {"c1": Decision(True, by="ada")}).answer == "done"
    # Another agent, another run, the same memory: nobody is asked.
    assert _outcomes(_agent(turns, remember_in=memory).run_sync("go")) == ["ok"]
    # Without it everybody is.
    assert _agent(turns).run_sync("go").stop_reason == "paused"
    memory.forget()
    assert _agent(turns, remember_in=memory).run_sync("go").stop_reason == "paused"


def test_a_shared_no_closes_the_tool_in_all_runs() -> None:
    memory = ApprovalMemory()
    turns = [call("pay", amount=1), DONE]
    assert _outcomes(_agent(turns, remember_in=memory, handler=lambda pending: Decision(False, "no money")).run_sync("go")) == ["denied"]
    second = _agent(turns, remember_in=memory).run_sync("go")
    assert _outcomes(second) == ["refused"]
    assert "no money" in (second.steps[0].text or "")


def test_without_a_memory_choices_are_of_one_run() -> None:
    asked: list[str] = []

    def handler(pending: Any) -> bool:
        asked.append(pending.call_id)
        return True

    turns = [call("pay", amount=1), call("pay", amount=2), DONE]
    agent = _agent([*turns, *turns], handler=handler, remember_choices=True)
    agent.run_sync("go")
    agent.run_sync("go")
    assert asked == ["c1", "c4"]


def test_two_runs_at_once_share_a_memory() -> None:
    memory = ApprovalMemory()
    asked: list[str] = []

    async def handler(pending: Any) -> bool:
        asked.append(pending.call_id)
        await asyncio.sleep(0)
        return True

    def agent() -> Agent:
        return _agent([call("look"), call("look"), call("pay", amount=1), call("pay", amount=2), DONE], remember_in=memory, handler=handler)

    async def scenario() -> list[Any]:
        return await asyncio.gather(*(agent().run("go") for _ in range(5)))

    assert all(_outcomes(result) == ["ok"] * 4 for result in asyncio.run(scenario()))
    # Those that asked before there was an answer; nobody asks twice.
    assert asked.count("c3") == len(asked) <= 5


# --- tools that always ask ---


def test_a_tool_that_always_asks() -> None:
    @tool(approval_mode="always_require")
    async def wipe() -> str:
        """Wipe."""
        return "wiped"

    agent = Agent(ScriptedModel([[call("wipe"), call("look")], call("wipe"), DONE]), tools=[wipe, look])
    first = agent.run_sync("go")
    assert [one.call_id for one in first.pending] == ["c1"]
    second = agent.resume_sync(RunState.from_json(first.state.to_json()), {"c1": True})
    assert [one.call_id for one in second.pending] == ["c3"]
    assert _outcomes(agent.resume_sync(second, {"c3": False})) == ["ok", "ok", "denied"]


def test_a_requirements_yes_is_not_the_tools_own() -> None:
    @tool(approval_mode="always_require")
    async def wipe() -> str:
        """Wipe."""
        return "wiped"

    rules = [AskPermissionRequirement(["wipe"], handler=lambda pending: True)]
    agent = Agent(ScriptedModel([call("wipe"), DONE]), tools=[wipe], requirements=rules)
    paused = agent.run_sync("go")
    assert [one.requirements for one in paused.pending] == [("approval_mode",)]
    assert _outcomes(agent.resume_sync(paused, {"c1": True})) == ["ok"]


# --- in a terminal ---

ASKING = '''
import asyncio
from maymust import Agent, AskPermissionRequirement, ask_in_terminal, tool
from maymust.models import ScriptedModel, call

@tool
async def pay(to: str) -> str:
    """Pay."""
    return f"paid {to}"

def agent(*names):
    turns = [*(call("pay", to=name) for name in names), call("final_answer", answer="done")]
    return Agent(ScriptedModel(turns), tools=[pay], requirements=[AskPermissionRequirement(["pay"], handler=ask_in_terminal)])

def told(result):
    print([(str(step.outcome), step.text) for step in result.steps][:-1], flush=True)
'''


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, source: str) -> None:
        import pty

        self._here, there = pty.openpty()
        environment = {**os.environ, "PYTHONPATH": str(Path(sys.modules["maymust"].__file__ or "").resolve().parent.parent)}
        command = [sys.executable, "-W", "error", "-c", ASKING + textwrap.dedent(source)]
        self.child = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, env=environment, start_new_session=True)
        os.close(there)
        self._unread = ""

    def until(self, text: str) -> str:
        """What comes up to `text`."""
        while text not in self._unread:
            assert select.select([self._here], [], [], 60)[0], f"silent without {text!r}: {self._unread}"
            try:
                data = os.read(self._here, 4096)
            except OSError:
                data = b""
            assert data, f"ended without {text!r}: {self._unread}"
            self._unread += data.decode()
        said, _, self._unread = self._unread.partition(text)
        return said

    def type(self, text: str) -> None:
        """Type text."""
        os.write(self._here, text.encode())

    def ended(self) -> int:
        """The exit code, and the terminal is gone."""
        code = self.child.wait(20)
        os.close(self._here)
        return code


needs_a_terminal = pytest.mark.skipif(os.name == "nt", reason="terminals of this kind")
QUESTION = "[y/n, a reason may follow n] "


@needs_a_terminal
def test_a_person_answers_in_the_terminal() -> None:
    terminal = Terminal('told(agent("ada", "bob", "eve\\x1b[2J\\u202e", "dan").run_sync("go"))')
    assert 'Allow pay({"to": "ada"})?' in terminal.until(QUESTION)
    terminal.type("perhaps\n")
    terminal.until(QUESTION)
    # The second line waits for the second question.
    terminal.type("y\nn  too much \n")
    terminal.until(QUESTION)
    shown = terminal.until(QUESTION)
    # What the model wrote cannot move the cursor or turn the text around.
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    terminal.type("NO\n")
    terminal.until(QUESTION)
    terminal.type("Yes\n")
    said = terminal.until("]\r\n")
    assert terminal.ended() == 0
    assert "('ok', 'paid ada'), ('denied', 'a person said no: too much; it was not run'), ('denied'" in said
    assert said.endswith("('ok', 'paid dan')")


@needs_a_terminal
def test_two_runs_ask_one_after_the_other() -> None:
    terminal = Terminal(
        """
        async def both():
            for result in await asyncio.gather(agent("ada").run("go"), agent("bob").run("go")):
                told(result)
        asyncio.run(both())
        """
    )
    terminal.until(QUESTION)
    terminal.type("y\n")
    terminal.until(QUESTION)
    terminal.type("n\n")
    said = terminal.until("not run')]")
    assert "('ok', 'paid ada')" in said
    assert terminal.ended() == 0


@needs_a_terminal
def test_the_end_of_input_is_no_permission() -> None:
    terminal = Terminal(
        """
        try:
            agent("ada").run_sync("go")
        except Exception as error:
            print(type(error).__name__, error, "END")
        """
    )
    terminal.until(QUESTION)
    terminal.type("\x04")
    assert "RunError pay needs a person's yes, and the terminal was closed" in terminal.until("END")
    assert terminal.ended() == 0


@needs_a_terminal
def test_an_interrupt_at_the_question_ends_the_program_at_once() -> None:
    terminal = Terminal(
        """
        try:
            agent("ada").run_sync("go")
        except KeyboardInterrupt:
            print("INTERRUPTED", flush=True)
        """
    )
    terminal.until(QUESTION)
    terminal.child.send_signal(signal.SIGINT)
    terminal.until("INTERRUPTED")
    assert terminal.ended() == 0


def test_no_terminal_is_no_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(os.devnull).open(encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(RunError, match="no terminal"):
            _agent([call("pay", amount=1), DONE], handler=ask_in_terminal).run_sync("go")


@pytest.mark.parametrize("layers", [0, 1])
def test_a_handler_that_raises_a_tool_error_stops_the_run_with_and_without_middleware(layers: int) -> None:
    async def passes_on(context: Any, call_next: Any) -> None:
        await call_next()

    def down(pending: Any) -> bool:
        raise ToolError("nobody is there")

    agent = Agent(
        ScriptedModel([call("pay", amount=1), DONE]),
        tools=[pay],
        requirements=[AskPermissionRequirement(["pay"], handler=down)],
        middleware=[passes_on] * layers,
    )
    with pytest.raises(RunError, match=r"the handler of ask:pay raised ToolError about pay: nobody is there"):
        agent.run_sync("go")


def test_a_yes_to_the_number_one_is_no_yes_to_true() -> None:
    @tool
    async def switch(on: bool | int | float) -> str:
        """Switch."""
        return repr(on)

    async def changes(context: FunctionInvocationContext, call_next: Any) -> None:
        if context.name == "switch" and context.deps is not None:
            context.arguments = {"on": context.deps}
        await call_next()

    settings: dict[str, Any] = {"tools": [switch], "requirements": [AskPermissionRequirement("switch")], "middleware": [changes]}
    paused = Agent(ScriptedModel([call("switch", on=1)]), **settings).run_sync("go").state
    agent = Agent(ScriptedModel([DONE]), **settings)
    again = agent.resume_sync(paused, {"c1": True}, deps=True)
    assert [one.arguments for one in again.pending] == [{"on": True}]
    assert agent.resume_sync(paused, {"c1": True}, deps=1).steps[0].text == "1"

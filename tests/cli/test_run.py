"""`maymust run` and `maymust explain`: an agent from Python or from a policy file, and a look at what it did."""

import json
from pathlib import Path

import pytest

from maymust.models import call
from tests.cli.commands import command, process, write
from tests.models.picky import PickyServer

TOOLS = '''\
from maymust import tool

@tool
def look(order: int) -> str:
    """Look an order up."""
    return f"order {order}: paid 20"

def refund(order: int, amount: int) -> str:
    """Pay back."""
    return "refunded"
'''
POLICY = """\
version: 1
tools: [look, refund]
rules:
  refund-late: {conditional: refund, only_after: look, max_invocations: 1}
  answer-late: {conditional: final_answer, only_after: look}
"""
AGENT = """\
from desk_tools import look, refund
from maymust import Agent, load_policy
from maymust.models import ScriptedModel, call

def agent(policy="desk.policy.yaml", *turns):
    script = turns or [
        call("refund", order=7, amount=1),
        call("look", order=7),
        call("refund", order=7, amount=1),
        call("final_answer", answer="Done."),
    ]
    return Agent(ScriptedModel(script), tools=[look, refund], policy=load_policy(policy))

def asking():
    return agent("asking.policy.yaml")

def stubborn():
    return agent("desk.policy.yaml", *[call("refund", order=7, amount=1)] * 9)

ready = agent()
number = 7

def broken():
    raise KeyError("nothing")
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write(tmp_path, "desk_tools.py", TOOLS)
    write(tmp_path, "desk.py", AGENT)
    write(tmp_path, "desk.policy.yaml", POLICY)
    write(tmp_path, "asking.policy.yaml", POLICY + "  ask: {ask: refund}\n")
    return tmp_path


def test_the_answer_is_on_stdout_and_the_calls_on_stderr(here: Path) -> None:
    done = process(here, "run", "desk:agent", "Please.", "--state", "state.json")
    assert (done.code, done.out) == (0, "Done.\n")
    assert done.err.splitlines() == [
        "turn 1",
        "  ● allowed   look",
        "  ⊘ denied    refund        look has to succeed first [refund-late] (look: 0 ok calls; refund: 0 ok calls)",
        "  ⊘ denied    final_answer  look has to succeed first [answer-late] (look: 0 ok calls)",
        '  ⊘ refund("order": 7, "amount": 1) refused: not now: look has to succeed first; you may call: look',
        "turn 2",
        '  ✓ look("order": 7) order 7: paid 20',
        "turn 3",
        "  ● allowed   refund",
        "  ● allowed   final_answer",
        "    1 as before",
        '  ✓ refund("order": 7, "amount": 1) refunded',
        "turn 4",
        "  ⊘ denied    refund  refund was already called 1 time (limit 1) [refund-late] (look: 1 ok call; refund: 1 ok call)",
        "    2 as before",
        "ended: final_answer after 4 turns",
    ]
    quiet = process(here, "run", "desk:ready", "-", "--quiet", stdin="Please.")
    assert (quiet.out, quiet.err) == ("Done.\n", "")


def test_explain_reads_the_state_of_a_run(here: Path) -> None:
    process(here, "run", "desk:agent", "Please.", "--state", "state.json")
    done = command(here, "explain", "state.json", "--step", "1", "--tool", "refund")
    # A machine that is busy is told what is going on.
    assert (done.code, done.err.removeprefix("maymust: explaining …\n")) == (0, "")
    assert done.out.startswith("turn 1 at the start\n\n⊘ refund is denied\n  refund-late: look has to succeed first\n")
    assert "  refund opens after look\n" in done.out
    whole = command(here, "explain", "state.json").out
    assert whole.startswith("turn 4 after refund!refused, look, refund\n")
    assert "⊘ denied    refund        refund was already called 1 time (limit 1) [refund-late]" in whole
    assert "→ nothing can open refund any more in this run" in whole
    data = json.loads(command(here, "explain", "state.json", "--step", "2", "--json").out)
    assert (data["schema"], data["turn"], data["after"]) == ("maymust.explain/1", 2, [{"tool": "refund", "outcome": "refused"}])
    assert command(here, "explain", "state.json", "--policy", "desk.policy.yaml", "--step", "1").code == 0


def test_explain_says_what_is_no_trace(here: Path) -> None:
    process(here, "run", "desk:agent", "Please.", "--state", "state.json")
    for arguments, says in (
        (("desk.policy.yaml",), "desk.policy.yaml is neither a trace nor the state of a run"),
        (("nowhere",), "there is no such file"),
        ((".",), "this is no file"),
        (("state.json", "--step", "9"), "this run has 4 steps"),
        (("state.json", "--tool", "rfund"), "did you mean refund?"),
    ):
        done = command(here, "explain", *arguments)
        assert (done.code, done.out) == (2, "")
        assert says in done.err


def test_a_question_without_a_terminal_pauses_the_run(here: Path) -> None:
    done = process(here, "run", "desk:asking", "Please.", "--json", "--state", "paused.json")
    data = json.loads(done.out)
    assert (done.code, data["exit_code"], data["stop_reason"]) == (3, 3, "paused")
    assert [call["tool"] for call in data["pending"]] == ["refund"]
    assert "refund waits for a person's yes (call c3), and standard input is no terminal" in done.err
    assert (here / "paused.json").exists()


def test_a_run_without_an_answer_is_a_finding(here: Path) -> None:
    done = process(here, "run", "desk:stubborn", "Please.", "--max-turns", "4", "--quiet")
    assert (done.code, done.out) == (1, "")
    assert "maymust: error: the run ended without an answer" in done.err


def test_an_error_ends_a_run_with_words_and_keeps_its_state(here: Path) -> None:
    write(here, "short.py", AGENT + "\ndef short():\n    return agent('desk.policy.yaml', call('look', order=1))\n")
    done = process(here, "run", "short:short", "Please.", "--state", "kept.json", "--quiet")
    assert done.code == 1
    assert done.err.startswith("maymust: error: ")
    assert "Traceback" not in done.err
    assert json.loads((here / "kept.json").read_text(encoding="utf-8"))["history"][0]["tool"] == "look"


def test_what_is_no_agent_is_told(here: Path) -> None:
    for name, says in (
        ("desk:number", "desk:number is int: give an Agent"),
        ("desk:agnt", "there is no agnt in desk; did you mean agent or Agent?"),
        ("desk:broken", "raised KeyError: 'nothing'"),
        ("dsk:agent", "there is no module dsk"),
        ("desk.policy.yaml", "--tools MODULE"),
        ("nowhere.policy.yaml", "there is no policy file nowhere.policy.yaml"),
        ("desk", "an agent in Python is written module:name"),
    ):
        done = process(here, "run", name, "Please.")
        assert (done.code, done.out) == (2, "")
        assert says in done.err
        assert "Traceback" not in done.err
    assert "--model goes with a policy file" in process(here, "run", "desk:agent", "x", "--model", "local").err


def test_a_policy_file_finds_its_tools_in_a_module(here: Path) -> None:
    done = process(here, "run", "desk.policy.yaml", "--tools", "desk_tools", "--model", "nobody:x", "Please.")
    assert done.code == 2
    assert "unknown provider 'nobody'" in done.err
    write(here, "more.policy.yaml", "version: 1\ntools: [look, refund, lok]\nrules: {}\n")
    done = process(here, "run", "more.policy.yaml", "--tools", "desk_tools", "Please.")
    assert done.code == 2
    assert "--> more.policy.yaml:2:23" in done.err
    assert "desk_tools has no tool called lok" in done.err
    assert "did you mean look?" in done.err


def test_verify_takes_a_policy_or_an_agent_from_python(here: Path) -> None:
    done = process(here, "verify", "desk:agent", "desk:ready", "desk.policy.yaml")
    assert done.code == 0
    assert done.out.count(": ok\n") == 3
    assert "give a Policy, an Agent, or a function" in process(here, "verify", "desk:number").err


def test_a_module_that_fails_to_import_is_told_with_its_line(here: Path) -> None:
    write(here, "bad.py", "print('loading')\n1 / 0\n")
    done = process(here, "verify", "bad:policy", "--json")
    # What the module prints is not in the document.
    assert (done.code, json.loads(done.out)["files"]) == (2, [])
    assert "importing bad failed: ZeroDivisionError: division by zero (bad.py:2)" in done.err
    write(here, "bad.py", "def broken(:\n")
    assert process(here, "verify", "bad:policy").err.rstrip().endswith("SyntaxError: invalid syntax (bad.py, line 1)")


def test_a_policy_file_with_tools_and_a_model_is_an_agent(here: Path) -> None:
    pytest.importorskip("openai")
    script = [call("look", order=7), call("refund", order=7, amount=1), call("final_answer", answer="Done.")]
    with PickyServer(script) as server:
        settings = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none"}
        words = ("run", "desk.policy.yaml", "--tools", "desk_tools", "--model", "openai:gpt-5", "--instructions", "Be brief.", "Please.")
        done = process(here, *words, **settings)
    assert (done.code, done.out) == (0, "Done.\n")
    assert "✓ look" in done.err
    assert "Be brief." in json.dumps(server.bodies[0]["messages"])

"""`maymust run --trace`, `replay`, `diff` and `explain` on traces."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import command, process, write
from tests.cli.test_run import AGENT, POLICY, TOOLS

STRICTER = POLICY + "  never: {conditional: refund, max_invocations: 0}\n"
PYTHON = """
from maymust import Rule, requirement

@requirement(name="mood", targets=["refund"])
def mood(history):
    yield Rule("refund", allowed=len(history) > 1)

def moody():
    turns = [call("look", order=7), call("look", order=8), call("final_answer", answer="Done.")]
    return Agent(ScriptedModel(turns), tools=[look, refund], requirements=[mood])
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write(tmp_path, "desk_tools.py", TOOLS)
    write(tmp_path, "desk.py", AGENT + PYTHON)
    write(tmp_path, "desk.policy.yaml", POLICY)
    write(tmp_path, "asking.policy.yaml", POLICY + "  ask: {ask: refund}\n")
    write(tmp_path, "stricter.policy.yaml", STRICTER)
    done = process(tmp_path, "run", "desk:agent", "Please.", "--trace", "run.jsonl", "--state", "state.json", "--quiet")
    assert (done.code, done.err) == (0, "")
    return tmp_path


def test_replay_under_the_same_policy_finds_nothing(here: Path) -> None:
    for arguments in (("run.jsonl",), ("run.jsonl", "--policy", "desk.policy.yaml"), ("state.json",)):
        done = command(here, "replay", *arguments)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"✓ {arguments[0]} under ")
        assert done.out.endswith("nothing differs in 4 turns\n")


def test_replay_under_another_policy_says_where_and_why(here: Path) -> None:
    done = command(here, "replay", "run.jsonl", "--policy", "stricter.policy.yaml")
    assert done.code == 1
    assert done.out.splitlines()[:3] == [
        "step 3 (turn 3): refund is allowed in the record, denied now",
        "    why: refund may not be called at all (limit 0)",
        "    rule: never",
    ]
    data = json.loads(command(here, "replay", "run.jsonl", "--policy", "stricter.policy.yaml", "--json").out)
    assert (data["schema"], data["exit_code"], data["turns"], data["torn"]) == ("maymust.replay/1", 1, 4, False)
    assert data["differences"][0]["rules"] == ["never"]


def test_replay_of_rules_in_python_is_undecided(here: Path) -> None:
    assert process(here, "run", "desk:moody", "Please.", "--trace", "moody.jsonl", "--quiet").code == 0
    done = command(here, "replay", "moody.jsonl")
    assert done.code == 3
    assert "  - mood: its rules are taken as they were recorded" in done.out
    assert process(here, "replay", "moody.jsonl", "--policy", "desk:moody").code == 3


def test_what_cannot_be_replayed_is_told(here: Path) -> None:
    write(here, "bare.jsonl", '{"trace":1,"at":1,"run":"r","kind":"TraceStarted","data":{}}\n')
    write(here, "odd.jsonl", '{"trace":1,"at":1,"run":"r","kind":"TraceStarted","data":{}}\nodd\n')
    write(here, "empty.jsonl", "")
    for arguments, says in (
        (("empty.jsonl",), "empty.jsonl is empty"),
        (("bare.jsonl",), "does not say what the policy was"),
        (("odd.jsonl",), "odd.jsonl:2: this line is damaged"),
        (("nowhere.jsonl",), "there is no such file"),
        (("desk.policy.yaml",), "desk.policy.yaml is neither a trace nor the state of a run"),
        (("-", "--policy", "-"), "only one of"),
    ):
        done = command(here, "replay", *arguments)
        assert (done.code, done.out) == (2, "")
        assert says in done.err


def test_a_damaged_trace_is_told_whatever_is_wrong_with_it(here: Path) -> None:
    lines = (here / "run.jsonl").read_text(encoding="utf-8").splitlines()
    damaged = [line.replace('"tools":["look",', '"tools":[["look"],') for line in lines]
    assert damaged != lines
    write(here, "bad.jsonl", "\n".join(damaged) + "\n")
    for arguments in (("replay", "bad.jsonl"), ("explain", "bad.jsonl"), ("diff", "run.jsonl", "bad.jsonl")):
        done = command(here, *arguments)
        assert (done.code, done.out) == (2, "")
        assert "damaged" in done.err


def test_a_torn_line_is_told(here: Path) -> None:
    content = (here / "run.jsonl").read_bytes()
    (here / "run.jsonl").write_bytes(content[:-20])
    done = command(here, "replay", "run.jsonl")
    assert (done.code, done.err) == (0, "maymust: the last line of run.jsonl is torn, and left out\n")


def test_a_pause_is_in_one_trace(here: Path) -> None:
    assert process(here, "run", "desk:asking", "Please.", "--trace", "paused.jsonl", "--quiet").code == 3
    assert command(here, "replay", "paused.jsonl").code == 0


def test_diff_compares_two_traces(here: Path) -> None:
    same = command(here, "diff", "run.jsonl", "run.jsonl")
    assert (same.code, same.out) == (0, "✓ run.jsonl and run.jsonl: nothing differs\n")
    process(here, "run", "desk:asking", "Please.", "--trace", "other.jsonl", "--quiet")
    done = command(here, "diff", "run.jsonl", "other.jsonl")
    assert done.code == 1
    assert done.out.startswith("step 3 (turn 3): refund is allowed in A, ask in B\n    rule: ask\n")
    data = json.loads(command(here, "diff", "run.jsonl", "other.jsonl", "--json").out)
    assert (data["schema"], data["differences"][0]["after"]) == ("maymust.diff-traces/1", "ask")
    for arguments, says in (
        (("run.jsonl", "desk.policy.yaml"), "give two policies, or two traces"),
        (("run.jsonl", "run.jsonl", "--format", "sarif"), "for traces it is text or json"),
    ):
        done = command(here, "diff", *arguments)
        assert (done.code, done.out) == (2, "")
        assert says in done.err


def test_explain_says_the_same_of_trace_and_state(here: Path) -> None:
    for arguments in (("--step", "1", "--tool", "refund"), (), ("--step", "2", "--json"), ("--policy", "desk.policy.yaml")):
        told = command(here, "explain", "run.jsonl", *arguments)
        assert (told.code, told.err) == (0, "")
        assert told.out == command(here, "explain", "state.json", *arguments).out

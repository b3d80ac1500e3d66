"""check, diff, graph, schema, completion and version."""

import json
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from maymust.policyfile.schema import schema_text
from tests.cli.commands import command, process, write

RESEARCH = """\
version: 1
tools: [think, search, fetch]
rules:
  think-first: {conditional: think, force_at_step: 1}
  must-search: {conditional: search, min_invocations: 1, max_invocations: 2}
  fetch-later: {conditional: fetch, only_after: search}
  ask-fetch: {ask: fetch}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write(tmp_path, "r.policy.yaml", RESEARCH)
    return tmp_path


def test_check_prints_the_permit_after_some_calls(here: Path) -> None:
    done = command(here, "check", "r.policy.yaml", "--calls", "think,search!failed")
    assert done.code == 0
    assert done.out == (
        "✓ 1. think\n"
        "✓ 2. search!failed\n"
        "\n"
        "r.policy.yaml after think, search!failed\n"
        "\n"
        "● allowed   think\n"
        "● allowed   search\n"
        "⊘ denied    fetch         search has to succeed first [fetch-later]\n"
        "                          → fetch opens after search\n"
        "⊘ denied    final_answer  search has to succeed before the end [must-search]\n"
        "                          → final_answer opens after search\n"
        "tool_choice: required; the run may not stop\n"
    )


def test_check_stops_at_the_first_refused_call_with_the_reason(here: Path) -> None:
    done = command(here, "check", "r.policy.yaml", "--calls", "think,fetch,search")
    assert done.code == 1
    assert "✗ 2. fetch: not now: search has to succeed first; you may call: think, search" in done.out
    data = json.loads(command(here, "check", "r.policy.yaml", "--calls", "think,fetch", "--json").out)
    assert data["schema"] == "maymust.check/1"
    assert [call["admitted"] for call in data["calls"]] == [True, False]
    assert data["permit"]["tools"][2]["opens_after"] == ["search"]


def test_check_knows_questions_the_end_and_dead_ends(here: Path) -> None:
    assert (
        "? ask       fetch         a person is asked [ask-fetch]" in command(here, "check", "r.policy.yaml", "--calls", "think,search").out
    )
    assert "the run has ended" in command(here, "check", "r.policy.yaml", "--calls", "think,search,final_answer").out
    assert command(here, "check", "r.policy.yaml", "--calls", "think,search,fetch!denied").code == 0
    assert command(here, "check", "r.policy.yaml", "--calls", "think!denied").code == 1
    rules = "  one: {conditional: a, max_invocations: 1}\n  two: {conditional: b, min_invocations: 1, only_before: a}\n"
    write(here, "d.policy.yaml", f"version: 1\ntools: [a, b]\nrules:\n{rules}")
    done = command(here, "check", "d.policy.yaml", "--calls", "a")
    assert done.code == 1
    assert "no next step: nothing may be called and the run may not end" in done.out
    assert json.loads(command(here, "check", "d.policy.yaml", "--calls", "a", "--json").out)["error"]["name"] == "dead_end"


def test_check_refuses_words_it_does_not_know(here: Path) -> None:
    done = command(here, "check", "r.policy.yaml", "--calls", "serch")
    assert (done.code, done.out) == (2, "")
    assert done.err == "maymust: error: --calls: there is no tool called serch; did you mean search or fetch?\n"
    assert "did you mean failed?" in command(here, "check", "r.policy.yaml", "--calls", "search!faild").err


def test_diff_says_what_the_second_policy_allows_more_for_each_reason(here: Path) -> None:
    write(here, "n.policy.yaml", RESEARCH.replace("max_invocations: 2", "max_invocations: 3").replace(", force_at_step: 1", ""))
    done = command(here, "diff", "r.policy.yaml", "n.policy.yaml", "--json")
    data = json.loads(done.out)
    assert (done.code, data["exit_code"], data["schema"]) == (1, 1, "maymust.diff/1")
    gains = [(gain["tool"], gain["witness"], gain["rules"]) for gain in data["gains"]]
    assert ("search", [], ["think-first"]) in gains
    assert ("search", ["think", "search", "search"], ["must-search"]) in gains
    text = command(here, "diff", "r.policy.yaml", "n.policy.yaml").out
    assert "search may be called, and r.policy.yaml refuses it: think has to be called now" in text
    assert "= witness: think, search, search, search" in text
    assert command(here, "diff", "n.policy.yaml", "r.policy.yaml").code == 0


def test_diff_sees_that_nobody_is_asked_any_more_and_that_a_tool_is_new(here: Path) -> None:
    write(here, "n.policy.yaml", RESEARCH.replace("  ask-fetch: {ask: fetch}\n", "").replace("fetch]", "fetch, delete]"))
    done = command(here, "diff", "r.policy.yaml", "n.policy.yaml", "--json")
    gains = {(gain["tool"], gain["kind"]): gain["witness"] for gain in json.loads(done.out)["gains"]}
    assert gains == {("fetch", "unasked"): ["think", "search"], ("delete", "allowed"): ["think"]}


def test_diff_is_undecided_where_it_cannot_look(here: Path) -> None:
    write(here, "n.policy.yaml", RESEARCH.replace("{ask: fetch}", "{ask: fetch, when: {size: {minimum: 9}}}"))
    done = command(here, "diff", "r.policy.yaml", "n.policy.yaml")
    assert done.code == 3
    assert "not compared: when a person is asked about fetch" in done.out
    assert command(here, "diff", "r.policy.yaml", "r.policy.yaml", "--limit", "2").code == 3
    assert command(here, "diff", "-", "-").code == 2


def test_diff_tells_a_question_that_depends_on_outputs_from_one_that_is_always_asked(here: Path) -> None:
    write(here, "n.policy.yaml", RESEARCH)
    write(here, "o.policy.yaml", RESEARCH + "  outside: {after_untrusted: think, untrusted: search}\n")
    done = command(here, "diff", "o.policy.yaml", "n.policy.yaml")
    assert done.code == 1
    assert "after think, search, think may be called without a person's yes" in done.out
    assert "not compared: when a person is asked about think" in done.out
    assert command(here, "diff", "n.policy.yaml", "o.policy.yaml").code == 0


def test_diff_tells_a_limit_of_any_height_in_a_few_words(here: Path) -> None:
    rules = "version: 1\ntools: [a, b]\nrules:\n  limit: {conditional: a, max_invocations: 1000000}\n"
    write(here, "o.policy.yaml", rules)
    write(here, "n.policy.yaml", rules.replace("1000000", "1000001"))
    done = command(here, "diff", "o.policy.yaml", "n.policy.yaml")
    assert done.code == 1
    assert "after a ×1000000, a may be called, and o.policy.yaml refuses it" in done.out
    assert "there may be more" not in done.out
    (flow,) = json.loads(command(here, "diff", "o.policy.yaml", "n.policy.yaml", "--format", "sarif").out)["runs"][0]["results"][0][
        "codeFlows"
    ]
    places = [step["location"] for step in flow["threadFlows"][0]["locations"]]
    assert [place["message"]["text"] for place in places[:2]] == ["step 1: a ×1000000", "step 2: a comes back ok"]
    assert places[0]["physicalLocation"]["region"]["startLine"] == 2
    assert command(here, "diff", "n.policy.yaml", "o.policy.yaml").code == 0


def test_diff_says_that_there_may_be_more_where_it_gave_up(here: Path) -> None:
    rules = "version: 1\ntools: [a, b]\nrules:\n  limit: {conditional: a, max_invocations: 1}\n  rest: {conditional: b, cooldown: 5}\n"
    write(here, "o.policy.yaml", rules)
    write(here, "n.policy.yaml", rules.replace("max_invocations: 1", "max_invocations: 2"))
    done = command(here, "diff", "o.policy.yaml", "n.policy.yaml", "--limit", "3")
    assert done.code == 1
    assert "there may be more: not every pair of states was looked at; --limit N looks at more" in done.out
    assert "there may be more" not in command(here, "diff", "o.policy.yaml", "n.policy.yaml").out


def test_diff_says_where_values_of_arguments_may_have_become_freer(here: Path) -> None:
    write(here, "o.policy.yaml", RESEARCH + "  small: {arguments: fetch, param: size, maximum: 5}\n")
    write(here, "n.policy.yaml", RESEARCH + "  small: {arguments: fetch, param: size, maximum: 9}\n")
    done = command(here, "diff", "o.policy.yaml", "n.policy.yaml")
    assert (done.code, "not compared: the arguments of fetch" in done.out) == (3, True)
    assert command(here, "diff", "r.policy.yaml", "n.policy.yaml").code == 0


def test_diff_reads_one_side_from_stdin(here: Path) -> None:
    done = process(
        here, "diff", "-", "r.policy.yaml", "--format", "github", stdin=RESEARCH.replace("max_invocations: 2", "max_invocations: 1")
    )
    assert done.code == 1
    assert done.out.startswith("::error file=r.policy.yaml,line=2,col=16,title=MD001 allows more,endColumn=22::after think, search, search")


def test_graph_in_three_formats(here: Path) -> None:
    assert command(here, "graph", "r.policy.yaml").out == (
        "flowchart LR\n"
        "  %% doubled: the run may end here; a failed call that is not drawn changes nothing\n"
        '  start(("start")) --> s0\n'
        '  s0(["0 must think"])\n'
        '  s1(["1"])\n'
        '  s2((("2")))\n'
        '  s3((("3")))\n'
        '  s0 -->|"think"| s1\n'
        '  s1 -->|"think"| s1\n'
        '  s1 -->|"search"| s2\n'
        '  s2 -->|"think, fetch"| s2\n'
        '  s2 -->|"search"| s3\n'
        '  s3 -->|"think, fetch"| s3\n'
    )
    dot = command(here, "graph", "r.policy.yaml", "--format", "dot").out
    assert '  s1 -> s2 [label="search"];' in dot
    assert command(here, "graph", "r.policy.yaml", "--format", "svg", "-o", "r.svg").out == ""
    root = ElementTree.parse(here / "r.svg").getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "must think" in texts
    assert texts.count("think, fetch") == 4  # each with its halo


def test_names_cannot_break_out_of_a_graph(here: Path) -> None:
    write(here, "x.policy.yaml", 'version: 1\ntools: ["<script>", "a\\"|b", "\\\\"]\nrules: {}\n')
    for form in ("mermaid", "dot", "svg"):
        assert "<script>" not in command(here, "graph", "x.policy.yaml", "--format", form).out or form == "dot"
    assert 'label="<script>, a\\"|b, \\\\"' in command(here, "graph", "x.policy.yaml", "--format", "dot").out


def test_a_graph_nobody_can_look_at_is_undecided(here: Path) -> None:
    rules = "".join(f"  r{n}: {{conditional: t{n}, max_invocations: 1}}\n" for n in range(14))
    write(here, "big.policy.yaml", f"version: 1\ntools: [{', '.join(f't{n}' for n in range(14))}]\nrules:\n{rules}")
    done = command(here, "graph", "big.policy.yaml")
    assert (done.code, done.out) == (3, "")
    assert "more than 5000 states" in done.err


def test_schema_and_version_are_printed(here: Path) -> None:
    assert command(here, "schema").out == schema_text()
    assert command(here, "version").out == command(here, "--version").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_completion_is_a_script_the_shell_takes(here: Path, shell: str) -> None:
    done = command(here, "completion", shell)
    assert done.code == 0
    assert "verify" in done.out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.out, text=True, check=True)


def test_words_that_are_nearly_right_are_suggested(here: Path) -> None:
    assert "there is no 'vrify'; did you mean verify?" in command(here, "vrify").err
    done = command(here, "verify", "r.policy.yaml", "--format", "sarfi")
    assert (done.code, "did you mean sarif?" in done.err) == (2, True)


@pytest.mark.parametrize(("arguments", "name"), [(("verify",), "verify"), (("runs", "decide"), "runs decide"), (("models",), "models")])
def test_an_error_of_usage_begins_with_the_command_as_it_is_typed(here: Path, arguments: tuple[str, ...], name: str) -> None:
    done = command(here, *arguments)
    assert done.code == 2
    assert f"\nmaymust {name}: error: the following arguments are required" in done.err


def test_tools_that_may_fail_can_be_named_one_at_a_time_or_together(here: Path) -> None:
    rules = "{pay: {conditional: hold, followed_by: pay}, once: {conditional: pay, max_attempts: 1}}"
    write(here, "seat.policy.yaml", f"version: 1\ntools: [hold, pay]\nrules: {rules}\n")
    apart = command(here, "verify", "seat.policy.yaml", "--may-fail", "pay", "--may-fail", "hold")
    assert apart.code == 1
    assert "assumed: hold and pay may fail" in apart.out
    assert apart == command(here, "verify", "seat.policy.yaml", "--may-fail", "pay,hold")
    calls = command(here, "check", "seat.policy.yaml", "--calls", "hold", "--calls", "pay")
    assert calls == command(here, "check", "seat.policy.yaml", "--calls", "hold,pay")
    assert "✓ 2. pay" in calls.out


def test_an_option_that_is_not_there_is_an_error_of_its_command_with_the_one_that_was_meant(here: Path) -> None:
    done = command(here, "check", "r.policy.yaml", "--call", "think")
    assert done.code == 2
    assert "usage: maymust check" in done.err
    assert "unrecognized arguments: --call think; did you mean --calls?" in done.err
    assert "did you mean" not in command(here, "schema", "x").err
    assert "did you mean --tenant?" in command(here, "runs", "submit", "a:b", "hello", "--tenent=x").err


def test_a_path_of_python_code_is_answered_with_the_name_to_write(here: Path) -> None:
    for arguments in (("verify", "./app/agents.py:desk"), ("run", "app/agents.py:desk", "hello")):
        done = command(here, *arguments)
        assert (done.code, "what is in Python is named by its module, app.agents:desk" in done.err) == (2, True)
    assert "agents:NAME" in command(here, "check", "agents.py").err


def test_who_types_no_command_is_told_where_they_are_listed(here: Path) -> None:
    assert "`maymust --help` lists them" in command(here).err
    assert "`maymust runs --help` lists them" in command(here, "runs").err
    assert "lists them" not in command(here, "verify").err


def test_verify_names_every_argument_that_is_wrong_and_tells_what_came_of_the_others(here: Path) -> None:
    write(here, "other.policy.yaml", "version: 1\ntools: [think]\nrules: {}\n")
    wrong = (".", "dsk:agent", "desk.py", "os:path", "other.policy.yaml", "nowhere.policy.yaml")
    done = command(here, "verify", *wrong, "r.policy.yaml", "--may-fail", "search")
    assert done.code == 2
    for said in (
        "error[MF001]: this is a directory\n  --> .:1:1\n",
        "maymust: error: dsk:agent: there is no module dsk here or on the path",
        "maymust: error: desk.py: what is in Python is named by its module, desk:NAME\n",
        "maymust: error: os:path is module: give a Policy",
        "maymust: error: other.policy.yaml: may_fail: the policy has no tool called search\n",
        "nowhere.policy.yaml:1:1\n",
    ):
        assert said in done.err
    assert "r.policy.yaml: " in done.out
    told = json.loads(command(here, "verify", "dsk:agent", "r.policy.yaml", "--json").out)
    assert (told["exit_code"], [file["path"] for file in told["files"]]) == (2, ["r.policy.yaml"])


def test_verify_says_of_a_single_wrong_argument_what_is_wrong_and_no_more(here: Path) -> None:
    assert command(here, "verify", "dsk:agent").err.startswith("maymust: error: there is no module dsk here or on the path; ")

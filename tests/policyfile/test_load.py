"""Policy files: what a good one says, and how a bad one is refused."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from maymust import Agent, AskPermissionRequirement, ConditionalRequirement, History, Policy, PolicyError, load_policy, tool
from maymust.models import ScriptedModel, call
from maymust.policyfile import PolicyFileError, Position, parse_policy, read_policy_file
from maymust.policyfile.cases import read_case_file
from maymust.policyfile.source import as_source
from tests.policyfile.bad_files import BAD_FILES, BadFile

RESEARCH = """\
# What our researcher may do.
version: 1
description: think, look, answer
tools: [think, search, fetch]
rules:
  think-first: {conditional: think, force_at_step: 1}
  must-search:
    conditional: search
    min_invocations: 1
    max_invocations: 5
    priority: 20
  fetch-later: {conditional: fetch, only_after: [search], reason: search first}
  ask-to-fetch: {ask: fetch, when: {size: {minimum: 100}}, remember_choices: true}
may_fail: search
max_turns: 12
"""


def test_a_file_says_the_same_as_the_requirements_in_python(tmp_path: Path) -> None:
    path = tmp_path / "research.policy.yaml"
    path.write_text(RESEARCH, encoding="utf-8")
    in_python = Policy(
        [
            ConditionalRequirement("think", name="think-first", force_at_step=1),
            ConditionalRequirement("search", name="must-search", min_invocations=1, max_invocations=5, priority=20),
            ConditionalRequirement("fetch", name="fetch-later", only_after=["search"], reason="search first"),
            AskPermissionRequirement(["fetch"], name="ask-to-fetch", when={"size": {"minimum": 100}}, remember_choices=True),
        ],
        tools=["think", "search", "fetch"],
    )
    policy = load_policy(path)
    assert policy.describe() == in_python.describe()
    assert policy.permit(History().add("think")) == in_python.permit(History().add("think"))


def test_what_verify_is_to_assume_stands_in_the_file() -> None:
    file = parse_policy(RESEARCH)
    assert (file.may_fail, file.may_be_denied, file.max_turns) == (("search",), (), 12)
    assert file.description == "think, look, answer"


def test_every_key_has_a_position_and_an_absent_one_that_of_the_key_around_it() -> None:
    file = parse_policy(RESEARCH)
    assert file.position_of("rules", "must-search", "max_invocations") == Position(10, 5, 10, 20)
    assert file.position_of("rules", "must-search", "only_after") == file.position_of("rules", "must-search") == Position(7, 3, 7, 14)
    assert file.position_of("nothing") == Position(1, 1, 1, 1)


def test_words_that_older_yaml_takes_for_something_else_are_names_like_any_other() -> None:
    policy = parse_policy("version: 1\ntools: [on, no, y, 1e, 2026-01-01]\nrules:\n  no: {conditional: on, only_after: [no, y]}\n").policy
    assert policy.tools == ("on", "no", "y", "1e", "2026-01-01")
    assert policy.describe()["requirements"][0]["only_after"] == ["no", "y"]


def test_a_policy_may_have_no_rules_and_answer_in_text() -> None:
    policy = parse_policy("version: 1\ntools: []\nrules: {}\nfinal_answer_as_tool: false\n").policy
    assert policy.permit().tool_choice == "final_answer"
    assert not policy.final_answer_as_tool


def test_asking_about_every_tool_is_true() -> None:
    policy = parse_policy("version: 1\ntools: [a, b]\nrules:\n  all: {ask: true, exclude: a}\n").policy
    assert policy.permit().asks == ("b",)


def test_an_agent_refuses_a_policy_over_other_tools(tmp_path: Path) -> None:
    @tool
    def think(thought: str) -> str:
        """Think."""
        return thought

    path = tmp_path / "p.policy.yaml"
    path.write_text("version: 1\ntools: [think, search]\nrules: {}\n", encoding="utf-8")
    with pytest.raises(PolicyError, match="the policy knows search, which the agent has not"):
        Agent(ScriptedModel([]), tools=[think], policy=load_policy(path))


def test_an_agent_runs_under_a_policy_from_a_file(tmp_path: Path) -> None:
    @tool
    def look(what: str) -> str:
        """Look something up."""
        return what

    path = tmp_path / "p.policy.yaml"
    path.write_text("version: 1\ntools: [look]\nrules:\n  first: {conditional: final_answer, only_after: look}\n", encoding="utf-8")
    model = ScriptedModel([call("look", what="x"), call("final_answer", answer="done")])
    result = Agent(model, tools=[look], policy=load_policy(path)).run_sync("go")
    assert result.answer == "done"
    assert [permit.may_stop for permit in result.permits] == [False, True]


@pytest.mark.parametrize("bad", BAD_FILES, ids=[bad.name for bad in BAD_FILES])
def test_a_bad_file_is_refused_with_a_code_a_place_and_words(bad: BadFile) -> None:
    content = bad.text if isinstance(bad.text, bytes) else bad.text.encode()
    with pytest.raises(PolicyFileError) as caught:
        parse_policy(as_source("bad.policy.yaml", content))
    problem = caught.value.problems[0]
    assert (problem.code, (caught.value.line, caught.value.column)) == (bad.code, bad.place)
    assert str(caught.value).startswith(f"bad.policy.yaml:{bad.place[0]}:{bad.place[1]}: ")
    assert bad.says in str(caught.value)


def test_there_are_sixty_bad_files_and_each_is_told_apart() -> None:
    assert len(BAD_FILES) >= 60
    assert len({bad.name for bad in BAD_FILES}) == len(BAD_FILES)


def test_all_problems_of_a_file_are_told_in_its_order() -> None:
    text = "version: 3\ntools: [a]\nrules:\n  x: {conditional: b}\n  y: {conditional: a, cooldow: 1}\nmay_fail: c\n"
    with pytest.raises(PolicyFileError) as caught:
        parse_policy(text)
    assert [(problem.code, problem.position.line) for problem in caught.value.problems] == [
        ("MF009", 1),
        ("MF010", 4),
        ("MF008", 5),
        ("MF010", 6),
    ]


def test_a_file_full_of_problems_is_given_up_after_twenty() -> None:
    rules = "".join(f"  r{n}: {{conditional: nowhere{n}}}\n" for n in range(500))
    with pytest.raises(PolicyFileError) as caught:
        parse_policy(f"version: 1\ntools: [a]\nrules:\n{rules}")
    assert len(caught.value.problems) == 20


def test_what_cannot_be_read_at_all_is_told_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(PolicyFileError, match=r"nowhere\.policy\.yaml:1:1: the file cannot be read: No such file"):
        load_policy(tmp_path / "nowhere.policy.yaml")
    (tmp_path / "refund.policy.yaml").write_text("version: 1\n", encoding="utf-8")
    with pytest.raises(PolicyFileError) as caught:
        load_policy(tmp_path / "refund.polcy.yml")
    assert caught.value.problems[0].help == f"did you mean {tmp_path / 'refund.policy.yaml'}?"
    with pytest.raises(PolicyFileError) as caught:
        load_policy(tmp_path / "elsewhere" / "refund.policy.yaml")
    assert caught.value.problems[0].help == ""
    with pytest.raises(PolicyFileError, match="this is a directory"):
        load_policy(tmp_path)
    with pytest.raises(PolicyFileError, match=r"cannot be read: .*embedded null"):
        load_policy("a\0b")


def test_a_policy_and_its_tests_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(PolicyFileError) as caught:
        parse_policy("policy: a.policy.yaml\ncases: {}\n")
    told = {problem.message: problem.help for problem in caught.value.problems if problem.code == "MF007"}
    assert told["the key version is missing"] == "begin with version: 1"
    assert told["the key rules is missing"] == "this is a policy test: maymust test runs it"
    (tmp_path / "a.policy.yaml").write_text("version: 1\ntools: [a]\nrules: {}\n", encoding="utf-8")
    with pytest.raises(PolicyFileError) as caught:
        read_case_file(tmp_path / "a.policy.yaml")
    helps = {problem.help for problem in caught.value.problems if problem.code == "MF007"}
    assert helps == {"this is a policy; its tests are a file of their own, *.policy-test.yaml"}


def test_the_error_can_be_sent_to_another_process() -> None:
    with pytest.raises(PolicyFileError) as caught:
        parse_policy("version: 1\n")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.problems, again.text) == (str(caught.value), caught.value.problems, caught.value.text)


def test_without_pyyaml_the_error_says_what_to_install(tmp_path: Path) -> None:
    path = tmp_path / "p.policy.yaml"
    path.write_text(RESEARCH, encoding="utf-8")
    lines = (
        "import sys, maymust",
        "sys.modules['yaml'] = None",
        f"try: maymust.load_policy({str(path)!r})",
        "except ValueError as error: print(error)",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert done.stdout == "policy files need PyYAML, which is not installed: pip install 'maymust[yaml]'\n"


def test_a_read_file_names_its_path(tmp_path: Path) -> None:
    path = tmp_path / "p.policy.yaml"
    path.write_text(RESEARCH, encoding="utf-8")
    assert read_policy_file(path).path == str(path)

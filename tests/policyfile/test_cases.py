"""Policy tests in YAML: what a case says, when it fails, and how a bad file is refused."""

from pathlib import Path

import pytest

from maymust.policyfile import PolicyFileError
from maymust.policyfile.cases import read_case_file
from maymust.policyfile.judge import judge

POLICY = """\
version: 1
tools: [think, search, pay]
rules:
  think-first: {conditional: think, force_at_step: 1}
  search-twice: {conditional: search, only_after: think, max_attempts: 2}
  answer-last: {conditional: final_answer, only_after: search}
  pay-asked: {ask: pay}
  no-rest: {conditional: think, max_invocations: 1}
"""
GOOD = """\
  thinking comes first:
    forces: think
    withholds: pay
    denies: {search: think has to succeed first, final_answer: }
    may_stop: false
    tool_choice: think
  search opens after think:
    after: [think]
    allows: search
    allows_only: [search, pay]
    asks: pay
    forces: null
  two attempts and no more:
    after: [think, search!failed, {call: search, outcome: failed, arguments: {q: x}}, pay!denied]
    denies: {search: [limit 2]}
"""


def results(directory: Path, cases: str, policy: str = POLICY) -> dict[str, list[str]]:
    (directory / "p.policy.yaml").write_text(policy, encoding="utf-8")
    (directory / "p.policy-test.yaml").write_text(f"version: 1\npolicy: p.policy.yaml\ncases:\n{cases}", encoding="utf-8")
    file = read_case_file(directory / "p.policy-test.yaml")
    return {case.name: [str(failure) for failure in judge(file.policy.policy, case)] for case in file.cases}


def test_cases_that_hold_have_no_failures(tmp_path: Path) -> None:
    assert results(tmp_path, GOOD) == {
        "thinking comes first": [],
        "search opens after think": [],
        "two attempts and no more": [],
    }


def test_a_case_that_does_not_hold_says_why(tmp_path: Path) -> None:
    found = results(tmp_path, "  x: {after: [think], denies: {search: too late}, may_stop: true}\n")
    assert found == {
        "x": [
            "search is ● allowed, and should be denied\n    search-twice lets search be (think: 1 ok call; search: 0 ok or failed calls)",
            "the run may not stop, and should\n    answer-last denies final_answer: search has to succeed first (search: 0 ok calls)",
        ]
    }


def test_a_history_that_cannot_happen_fails_the_case_unless_it_says_so(tmp_path: Path) -> None:
    found = results(
        tmp_path,
        "  refused: {after: [think, think], allows: search}\n"
        "  not asked: {after: [think, search!denied], allows: search}\n"
        "  not refused: {after: [think, search!refused], allows: search}\n"
        "  said so: {after: [search], lawful: false, allows: think}\n"
        "  a refused step: {after: [search!refused], forces: think}\n",
    )
    assert found["refused"] == [
        "step 2 cannot happen: think is refused (not now: think was already called 1 time (limit 1); you may call: search, pay)"
    ]
    assert found["not asked"] == ["step 2 cannot happen: nobody is asked about search here, so nobody says no"]
    assert found["not refused"] == ["step 2 cannot happen: search is allowed here, so it is not refused"]
    assert found["said so"] == found["a refused step"] == []


def test_a_dead_end_can_be_expected(tmp_path: Path) -> None:
    rules = "  one: {conditional: a, max_invocations: 1}\n  two: {conditional: b, min_invocations: 1, only_before: a}\n"
    policy = f"version: 1\ntools: [a, b]\nrules:\n{rules}"
    found = results(
        tmp_path, "  end: {after: a, raises: dead_end}\n  none: {raises: conflict}\n  other: {after: a, raises: conflict}\n", policy
    )
    assert found["end"] == []
    assert found["none"][0].startswith("there is a next step, and should be none (conflict)")
    assert found["other"][0].startswith("this is dead_end, and should be conflict")
    assert results(tmp_path, "  end: {after: a, allows: a}\n", policy)["end"][0].startswith("there is no next step (dead_end)")


@pytest.mark.parametrize(
    ("cases", "code", "place", "says"),
    [
        ("  x: {allow: search}\n", "MF008", (4, 7), "did you mean allows"),
        ("  x: {after: []}\n", "MF007", (4, 3), "expects nothing"),
        ("  x: {after: [serch], allows: search}\n", "MF010", (4, 15), "did you mean search"),
        ("  x: {after: [search!fail], allows: search}\n", "MF009", (4, 15), "did you mean failed?"),
        ("  x: {after: [final_answer], allows: search}\n", "MF009", (4, 15), "ends the run"),
        ("  x: {denies: {serch: why}}\n", "MF010", (4, 16), "did you mean search"),
        ("  x: {denies: {search: {}}}\n", "MF009", (4, 24), "a name or a list of names"),
        ("  x: {raises: panic}\n", "MF009", (4, 15), "dead_end, conflict, force_unmet"),
        ("  x: {raises: dead_end, may_stop: true}\n", "MF009", (4, 7), "split the case"),
        ("  x: {may_stop: maybe}\n", "MF009", (4, 17), "true or false"),
        ("  x: [search]\n", "MF009", (4, 6), "has to be a mapping"),
        ("  x: {after: [{call: think, arguments: 5}], allows: search}\n", "MF009", (4, 40), "arguments has to be a mapping"),
        ("  x: {after: [{outcome: ok}], allows: search}\n", "MF007", (4, 15), "what is called"),
        ("  x: {after: [{call: think, outcom: ok}], allows: search}\n", "MF008", (4, 29), "did you mean outcome?"),
        ("  {}\n", "MF009", (4, 3), "cases has to map"),
    ],
)
def test_a_bad_file_is_refused_with_a_place(tmp_path: Path, cases: str, code: str, place: tuple[int, int], says: str) -> None:
    with pytest.raises(PolicyFileError) as caught:
        results(tmp_path, cases)
    assert (caught.value.problems[0].code, (caught.value.line, caught.value.column)) == (code, place)
    assert says in str(caught.value)


def test_a_missing_policy_is_told_where_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.policy-test.yaml"
    path.write_text("version: 1\npolicy: nowhere.yaml\ncases: {x: {allows: a}}\n", encoding="utf-8")
    with pytest.raises(PolicyFileError, match=r"t\.policy-test\.yaml:2:9: there is no file nowhere\.yaml beside this one"):
        read_case_file(path)


def test_a_bad_policy_is_told_with_its_own_path(tmp_path: Path) -> None:
    with pytest.raises(PolicyFileError, match=r"p\.policy\.yaml:1:1: the key tools is missing"):
        results(tmp_path, GOOD, "version: 1\nrules: {}\n")

"""The composite action in examples/ci: its shell steps do what they say."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

CI = Path(__file__).parent.parent.parent / "examples" / "ci"
ACTION: dict[str, Any] = yaml.safe_load((CI / "action.yml").read_text(encoding="utf-8"))
INPUTS = {name: str(given.get("default", "")) for name, given in ACTION["inputs"].items()}
POLICY = "policies/refund.policy.yaml"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(CI / "policies", tmp_path / "policies")
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin" / "maymust"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m maymust "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    return tmp_path


def step(checkout: Path, name: str, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """Run one step as Actions does: exit code, output, and what it set."""
    found = next(step for step in ACTION["runs"]["steps"] if step.get("name") == name)
    given = {**INPUTS, **{key.replace("_", "-"): value for key, value in inputs.items()}}
    given["exit-code"] = inputs.get("exit_code", "")
    env = {key: given[value.removesuffix(" }}").rpartition(".")[2]] for key, value in found["env"].items()}
    set_by, summary = checkout / "output", checkout / "summary"
    set_by.write_text("")
    path = f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, **env, "PATH": path, "GITHUB_OUTPUT": str(set_by), "GITHUB_STEP_SUMMARY": str(summary)}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", found["run"]], cwd=checkout, env=env, capture_output=True, text=True, check=False
    )
    said = dict(line.split("=", 1) for line in set_by.read_text().splitlines())
    return done.returncode, done.stdout + done.stderr, said


def test_a_clean_policy_is_clean(checkout: Path) -> None:
    code, output, said = step(checkout, "Verify policies")
    assert (code, output, said) == (0, "", {"exit-code": "0"})
    assert (checkout / "maymust.sarif").exists()
    assert f"✓ {POLICY}: ok" in (checkout / "summary").read_text(encoding="utf-8")
    assert step(checkout, "Say what came of it", exit_code="0")[0] == 0


def test_findings_are_annotations_and_fail_the_job_at_its_end(checkout: Path) -> None:
    path = checkout / POLICY
    path.write_text(path.read_text(encoding="utf-8").replace("[lookup, escalate]}", "[lookup]}"), encoding="utf-8")
    code, output, said = step(checkout, "Verify policies")
    assert (code, said) == (0, {"exit-code": "1"})
    assert output.startswith(f"::error file={POLICY},line=")
    assert step(checkout, "Say what came of it", exit_code="1")[0] == 1


def test_no_policy_at_all_is_an_error(checkout: Path) -> None:
    code, output, said = step(checkout, "Verify policies", policies="nowhere/*.yaml")
    assert (code, said) == (0, {"exit-code": "2"})
    assert output == "::error::no policy file matches nowhere/*.yaml\n"


def test_policy_tests_run_and_fail_the_job(checkout: Path) -> None:
    code, output, _ = step(checkout, "Run policy tests")
    assert code == 0
    assert "4 of 4 cases hold" in output
    path = checkout / "policies" / "refund.policy-test.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("asks: refund", "denies: refund"), encoding="utf-8")
    code, output, _ = step(checkout, "Run policy tests")
    assert code == 1
    assert "::error file=policies/refund.policy-test.yaml" in output


def test_what_a_pull_request_allows_more_is_an_annotation(checkout: Path) -> None:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "policies"], ["commit", "-qm", "base"]):
        subprocess.run([*git, *words], cwd=checkout, check=True)
    path = checkout / POLICY
    path.write_text(path.read_text(encoding="utf-8").replace("max_invocations: 1", "max_invocations: 2"), encoding="utf-8")
    code, output, _ = step(checkout, "Compare with the base", base="HEAD")
    assert code == 0
    assert "title=MD001 allows more" in output
    assert "after lookup, refund, refund may be called, and <stdin> refuses it: refund was already called 1 time (limit 1)" in output
    assert step(checkout, "Compare with the base", base="HEAD", strict="true")[0] == 1


def test_the_workflow_uses_the_inputs_the_action_has() -> None:
    workflow = yaml.safe_load((CI / "workflow.yml").read_text(encoding="utf-8"))
    used = next(step for step in workflow["jobs"]["policies"]["steps"] if step["uses"].startswith("./"))
    assert set(used["with"]) <= set(ACTION["inputs"])

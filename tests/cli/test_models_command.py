"""`maymust models` and `maymust version`, as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

import maymust


def maymust_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "maymust", *arguments], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def test_version_is_printed_in_both_ways() -> None:
    assert maymust_command("version").stdout == maymust_command("--version").stdout == f"maymust {maymust.__version__}\n"


def test_list_names_the_weights_their_size_and_licence_and_whether_they_are_here(tmp_path: Path) -> None:
    done = maymust_command("models", "list", MAYMUST_CACHE=str(tmp_path))
    assert done.returncode == 0
    assert done.stdout.split("\t")[0] == "smollm2"
    assert "98 MB" in done.stdout
    assert "Apache-2.0" in done.stdout
    assert "not pulled" in done.stdout


def test_path_of_weights_that_are_not_pulled_says_how_to_pull_them(tmp_path: Path) -> None:
    done = maymust_command("models", "path", MAYMUST_CACHE=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "maymust models pull smollm2" in done.stderr


def test_an_unknown_name_lists_the_known_ones() -> None:
    done = maymust_command("models", "pull", "gpt-9")
    assert done.returncode == 2
    assert "'gpt-9'" in done.stderr
    assert "smollm2" in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_usage_is_exit_code_2() -> None:
    assert maymust_command().returncode == 2
    assert maymust_command("models").returncode == 2

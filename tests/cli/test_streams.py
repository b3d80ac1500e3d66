"""What goes where: results on stdout, the rest on stderr, quiet pipes, colours for terminals only."""

import json
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

from tests.cli.commands import command, process, write
from tests.cli.test_commands import RESEARCH

BAD = "version: 1\ntools: [a]\nrules:\n  x: {conditional: b}\n"


def test_results_go_to_stdout_and_problems_to_stderr(tmp_path: Path) -> None:
    write(tmp_path, "r.policy.yaml", RESEARCH)
    write(tmp_path, "b.policy.yaml", BAD)
    done = command(tmp_path, "verify", "b.policy.yaml", "r.policy.yaml")
    assert done.code == 2
    assert done.out.startswith("✓ r.policy.yaml: ok\n")
    assert done.err.startswith("error[MF010]: x: conditional: there is no tool called b\n")


def test_one_document_on_stdout_whatever_happens(tmp_path: Path) -> None:
    write(tmp_path, "r.policy.yaml", RESEARCH)
    write(tmp_path, "b.policy.yaml", BAD)
    done = command(tmp_path, "verify", "b.policy.yaml", "r.policy.yaml", "nowhere", "--json")
    data = json.loads(done.out)
    assert (data["schema"], data["exit_code"], done.err) == ("maymust.verify/1", 2, "")
    assert [file["verdict"] for file in data["files"]] == ["unusable", "ok", "unusable"]
    problem = data["files"][0]["diagnostics"][0]
    assert (problem["code"], problem["line"], problem["column"]) == ("MF010", 4, 20)


def test_exit_codes_of_verify(tmp_path: Path) -> None:
    write(tmp_path, "r.policy.yaml", RESEARCH)
    assert command(tmp_path, "verify", "r.policy.yaml").code == 0
    dead = "version: 1\ntools: [a, b]\nrules:\n  x: {conditional: a, only_after: b}\n  y: {conditional: a, only_before: b}\n"
    write(tmp_path, "w.policy.yaml", dead)
    assert command(tmp_path, "verify", "w.policy.yaml").code == 0
    assert command(tmp_path, "verify", "w.policy.yaml", "--strict").code == 1
    assert command(tmp_path, "verify", "r.policy.yaml", "--may-fail", "search", "--limit", "1").code == 3
    assert command(tmp_path, "verify", "r.policy.yaml", "--max-turns", "2").code == 1
    assert command(tmp_path, "verify", "r.policy.yaml", "--max-turns", "0").code == 2
    assert command(tmp_path, "verify", "r.policy.yaml", "--may-fail", "nowhere").code == 2
    assert command(tmp_path, "verify").code == 2


def test_a_policy_from_stdin_and_results_to_a_file(tmp_path: Path) -> None:
    done = process(tmp_path, "verify", "-", "-o", "out.txt", stdin=RESEARCH)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").startswith("✓ <stdin>: ok")
    assert "cannot be written" in process(tmp_path, "verify", "-", "-o", "no/where.txt", stdin=RESEARCH).err


def test_a_closed_pipe_ends_the_command_quietly(tmp_path: Path) -> None:
    script = f"{sys.executable} -m maymust schema | head -c 10; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout), done.stderr) == (0, 10, "")


def test_a_terminal_without_these_characters_gets_escapes(tmp_path: Path) -> None:
    write(tmp_path, "r.policy.yaml", RESEARCH)
    done = process(tmp_path, "verify", "r.policy.yaml", PYTHONIOENCODING="ascii")
    assert done.code == 0
    assert done.out.startswith("\\u2713 r.policy.yaml: ok")


def on_terminal(directory: Path, *arguments: str, **environment: str) -> str:
    """What a command prints when stdout is a terminal."""
    master, slave = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    env = {**clean, "TERM": "xterm", **environment}
    child = subprocess.Popen([sys.executable, "-m", "maymust", *arguments], cwd=directory, stdout=slave, stderr=subprocess.DEVNULL, env=env)
    os.close(slave)
    chunks: list[bytes] = []

    def read() -> None:
        while True:
            try:
                chunk = os.read(master, 4096)
            except OSError:
                return
            if not chunk:
                return
            chunks.append(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    child.wait()
    reader.join()
    os.close(master)
    return b"".join(chunks).decode()


def test_colours_are_for_terminals_and_no_color_is_obeyed(tmp_path: Path) -> None:
    write(tmp_path, "r.policy.yaml", RESEARCH)
    assert "\x1b[32m✓ r.policy.yaml: ok\x1b[0m" in on_terminal(tmp_path, "verify", "r.policy.yaml")
    assert "\x1b" not in on_terminal(tmp_path, "verify", "r.policy.yaml", NO_COLOR="1")
    assert "\x1b" not in on_terminal(tmp_path, "verify", "r.policy.yaml", TERM="dumb")
    assert "\x1b" not in process(tmp_path, "verify", "r.policy.yaml").out
    assert "\x1b[32m" in process(tmp_path, "verify", "r.policy.yaml", FORCE_COLOR="1").out


def test_texts_of_a_file_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    write(
        tmp_path,
        "e.policy.yaml",
        'version: 1\ntools: [a]\nrules:\n  "\\e[2Jx": {conditional: a, reason: "\\e]0;hi\\a", max_invocations: 0}\n',
    )
    for arguments in (("verify", "e.policy.yaml"), ("check", "e.policy.yaml")):
        done = command(tmp_path, *arguments)
        assert "\x1b" not in done.out + done.err
        assert "\\x1b[2Jx" in done.out


def test_what_takes_longer_than_a_second_says_so(tmp_path: Path) -> None:
    write(
        tmp_path,
        "slow.py",
        "import time\nfrom maymust import Policy, requirement\n\n\n@requirement\ndef slow(history):\n    time.sleep(1.3)\n",
    )
    with (tmp_path / "slow.py").open("a", encoding="utf-8") as file:
        file.write('\n\npolicy = Policy([slow], tools=["a"])\n')
    done = process(tmp_path, "check", "slow:policy")
    assert done.err == "maymust: checking slow:policy …\n"
    assert "● allowed" in done.out

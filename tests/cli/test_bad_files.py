"""Bad files through the command line: exit code 2, a place, no traceback, within two seconds and 200 MB."""

import contextlib
import io
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from maymust.cli.main import main
from tests.cli.commands import process
from tests.policyfile.bad_files import BAD_FILES, BadFile

SECONDS = 2.0
MEGABYTES = 200


def write(directory: Path, bad: BadFile) -> str:
    path = directory / "bad.policy.yaml"
    path.write_bytes(bad.text if isinstance(bad.text, bytes) else bad.text.encode())
    return path.name


def forked(directory: Path, *arguments: str) -> tuple[int, str, float, int]:
    """Exit code, output, seconds of computing and peak memory in MB of a command in a child, which need not import anything anew."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        os.close(reading)
        code = 70
        with contextlib.suppress(BaseException):
            signal.alarm(int(SECONDS) * 5)
            most = mapped() + (2 << 30)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            os.chdir(directory)
            text = io.TextIOWrapper(os.fdopen(writing, "wb"), encoding="utf-8", errors="backslashreplace")
            sys.stdout = sys.stderr = text
            try:
                code = main(list(arguments))
            except BaseException as error:
                text.write(f"Traceback: {error!r}")
            text.flush()
        os._exit(code)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        output = pipe.read()
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def mapped() -> int:
    """Bytes of addresses that this process has, which is much where a model was loaded by a test before."""
    told = Path("/proc/self/statm")
    return int(told.read_text(encoding="ascii").split()[0]) * resource.getpagesize() if told.exists() else 0


def computed() -> float:
    """Seconds that children of this process have computed."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("bad", BAD_FILES, ids=[bad.name for bad in BAD_FILES])
def test_a_bad_file_is_told_in_time_and_in_memory(tmp_path: Path, bad: BadFile) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    code, output, seconds, megabytes = forked(tmp_path, "verify", write(tmp_path, bad))
    assert code == 2
    assert f"error[{bad.code}]" in output
    assert f"--> bad.policy.yaml:{bad.place[0]}:{bad.place[1]}" in output
    assert "Traceback" not in output
    assert seconds < SECONDS
    # The child starts with what this process has; what the file costs comes on top of it.
    assert megabytes - min(before, megabytes) < MEGABYTES / 2


@pytest.mark.parametrize("name", ["a bomb", "huge", "deep lists", "latin-1", "a misspelt parameter"])
def test_a_process_of_its_own_says_the_same(tmp_path: Path, name: str) -> None:
    bad = next(bad for bad in BAD_FILES if bad.name == name)
    before = computed()
    done = process(tmp_path, "verify", write(tmp_path, bad))
    # Seconds of computing: a busy machine makes nobody's file slower to read.
    assert computed() - before < SECONDS
    assert (done.code, done.out) == (2, "")
    assert f"--> bad.policy.yaml:{bad.place[0]}:{bad.place[1]}" in done.err
    assert "Traceback" not in done.err


def test_a_directory_a_pipe_and_nothing_at_all_are_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, says in ((".", "this is a directory"), ("pipe", "no regular file"), ("nowhere", "No such file"), ("", "No such file")):
        done = process(tmp_path, "verify", name)
        assert done.code == 2
        assert says in done.err
        assert "Traceback" not in done.err


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_of_a_process_stays_below_the_limit(tmp_path: Path) -> None:
    bad = next(bad for bad in BAD_FILES if bad.name == "many values")
    # Not ru_maxrss: a new process inherits the peak of the one that started it.
    script = f"from maymust.cli.main import main\ncode = main(['verify', {write(tmp_path, bad)!r}])\n"
    script += "print(code, [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    code, kilobytes = map(int, done.stdout.split())
    assert (code, kilobytes < MEGABYTES * 1024) == (2, True)

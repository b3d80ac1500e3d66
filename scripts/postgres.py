"""A private Postgres in a folder of its own, on loopback, for tests and benchmarks. It ends with whoever started it.

    python -m scripts.postgres install        Debian's package, where root may install it and it is missing
    python -m scripts.postgres run            start one, print its address, and keep it until Ctrl-C

The system's own cluster, if there is one, is left alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

USER = "postgres"
_PATIENCE = 30.0
_QUICK = {"fsync": "off", "full_page_writes": "off"}
"""Settings for tests: the end of a process loses nothing with them, only the end of the machine does."""


class NoPostgresError(Exception):
    """There is no Postgres here, and the message says what to do."""


def binaries() -> Path:
    """The folder with `initdb` and `postgres`. Raises NoPostgresError."""
    found = shutil.which("initdb")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(place.parent.name.partition(".")[0]))
    for place in [Path(found).resolve().parent] if found else places[::-1]:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    raise NoPostgresError("there is no Postgres on this machine; on Debian `sudo python -m scripts.postgres install` installs it")


def install() -> Path:
    """Install Debian's package if it is missing, without a cluster of its own. Raises NoPostgresError where that cannot be done."""
    try:
        return binaries()
    except NoPostgresError:
        if shutil.which("apt-get") is None or os.geteuid() != 0:
            raise
    with Path(__file__).open("rb") as lock:
        # Two processes of the tests may come at once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(NoPostgresError):
            return binaries()
        _install_package()
        return binaries()


def _install_package() -> None:
    settings = Path("/etc/postgresql-common/createcluster.conf")
    if not settings.exists():
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text("create_main_cluster = false\n", encoding="utf-8")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    wanted = ["install", "-y", "-qq", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", "postgresql"]
    for command in (["update", "-qq"], wanted):
        done = subprocess.run(["apt-get", *command], env=quiet, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise NoPostgresError(f"apt-get could not install postgresql: {done.stderr.strip()[-400:]}")


class Postgres:
    """One server with its data in `folder` (a temporary one by default). Use it as a context manager."""

    def __init__(self, folder: Path | None = None, settings: Mapping[str, str] = _QUICK) -> None:
        self._bin = binaries()
        self._made = folder is None
        memory = Path("/dev/shm")
        self.folder = folder or Path(tempfile.mkdtemp(prefix="maymust-postgres-", dir=memory if os.access(memory, os.W_OK) else None))
        self.port = _free_port()
        self._password = secrets.token_hex(16)
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._copies = 0
        # Postgres refuses to run as root.
        self._as = pwd.getpwnam(USER) if os.geteuid() == 0 else None

    @property
    def data(self) -> Path:
        """The folder of the cluster."""
        return self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def database(self, name: str) -> str:
        """Make a database; gives its address."""
        self._tool("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, name)
        return self.url(name)

    def copy(self, name: str) -> str:
        """Make a database like that one, to which nobody is connected; gives its address."""
        self._copies += 1
        made = f"{name}_{self._copies}"
        self._tool("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-T", name, "--strategy=file_copy", made)
        return self.url(made)

    def __enter__(self) -> Postgres:
        self._initialise()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            # Also when whoever waits for the end is interrupted.
            if self._made:
                shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start the server, and wait until it takes connections."""
        options = [f"--{name}={value}" for name, value in {"max_connections": "200", **self._settings}.items()]
        command = [
            *self._prefix(),
            *(str(self._bin / "postgres"), "-D", str(self.data), "-p", str(self.port), "-k", str(self.folder)),
            *("-c", "listen_addresses=127.0.0.1", *options),
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + _PATIENCE
        while subprocess.run([self._bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False).returncode:
            if self._process.poll() is not None or time.monotonic() > end:
                said = (self.folder / "log").read_text(encoding="utf-8", errors="replace")[-800:]
                raise RuntimeError(f"Postgres did not start: {said}")
            time.sleep(0.05)

    def crash(self) -> None:
        """End the server as a power cut would: no process of it gets to do anything more."""
        assert self._process is not None
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, text=True, check=False)
        for pid in [self._process.pid, *map(int, children.stdout.split())]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait(_PATIENCE)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """Stop the server; connections that are open are closed."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_PATIENCE)

    def _initialise(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        words = self.folder / "password"
        words.write_text(self._password, encoding="utf-8")
        words.chmod(0o600)
        if self._as is not None:
            for path in (self.folder, words):
                os.chown(path, self._as.pw_uid, self._as.pw_gid)
        self._tool("initdb", "-D", str(self.data), "-U", USER, "-A", "scram-sha-256", f"--pwfile={words}", "-E", "UTF8", "--no-sync")

    def _prefix(self) -> list[str]:
        become = [f"--reuid={self._as.pw_uid}", f"--regid={self._as.pw_gid}", "--clear-groups"] if self._as is not None else []
        tool = shutil.which("setpriv")
        if tool is not None:
            # Ends with its starter, however that ends.
            return [tool, *become, "--pdeathsig", "INT", "--"]
        return ["runuser", "-u", USER, "--"] if self._as is not None else []

    def _tool(self, name: str, *arguments: str) -> None:
        environment = {**os.environ, "PGPASSWORD": self._password, "LC_ALL": "C.UTF-8"}
        command = [*self._prefix(), str(self._bin / name), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{name} failed: {(done.stderr or done.stdout).strip()}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    """The command line."""
    if sys.argv[1:] == ["install"]:
        print(install())
    elif sys.argv[1:] == ["run"]:
        with Postgres(settings={}) as server:
            print(server.url(), flush=True)
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            try:
                signal.pause()
            except KeyboardInterrupt:
                print("stopped", flush=True)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

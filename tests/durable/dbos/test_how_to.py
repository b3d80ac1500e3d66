"""The page's way from a file to three workers on Postgres, as a reader types it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent
PAGE = ROOT / "docs" / "how-to" / "durable.md"


def fences(kind: str) -> list[str]:
    """The blocks of a kind."""
    return re.findall(rf"(?ms)^```{re.escape(kind)}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))


def test_ten_commands_lead_from_a_file_to_three_workers(first_database: str, database: str, tmp_path: Path) -> None:
    (module,) = fences("python file=shop.py")
    (tmp_path / "shop.py").write_text(module, encoding="utf-8")
    lines = [line for block in fences("sh commands") for line in block.splitlines()]
    assert len(lines) <= 10
    script = "\n".join(lines).replace("pip install 'maymust[dbos]'", "python -m maymust version")
    assert "sqlite:///runs-dbos.db" in script
    script = re.sub(r"postgresql://\S+", database, script).replace("sqlite:///runs-dbos.db", first_database)
    (tmp_path / "run.sh").write_text(f'set -e\nmaymust() {{ python -m maymust "$@"; }}\n{script}\n', encoding="utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(tmp_path)])}
    process = subprocess.Popen(
        ["bash", "run.sh"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        out = ""
        # The workers have the stream too, so its end does not come by itself.
        for line in process.stdout:
            out += line
            if "answer: Done." in line:
                break
        assert process.wait(60) == 0
    finally:
        # Of a script that broke off nothing may be left.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()  # type: ignore[union-attr]
    assert "maymust runs decide" in out
    assert "c1 of refund: yes" in out

"""Find the browser for the tests of the page, standard library only: `chromium.py` prints its path.

`chromium.py --install` has apt-get install it when it is missing, as root on Debian and its like.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VARIABLE = "MAYMUST_CHROMIUM"


def find() -> str | None:
    """The path of a browser: what MAYMUST_CHROMIUM names, or the first one on the path."""
    return os.environ.get(VARIABLE) or next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


def may_install() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def install() -> None:
    """Raises CalledProcessError when apt-get fails."""
    settings = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
    ):
        subprocess.run(command, check=True, env=settings, stdout=sys.stderr)


def main() -> int:
    if find() is None and "--install" in sys.argv[1:] and may_install():
        install()
    found = find()
    if found is None:
        print(f"there is no browser: install chromium, or set {VARIABLE} to the path of one", file=sys.stderr)
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def processor() -> str:
    """The processor's name, as far as the system tells it."""
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        for line in listed.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def machine() -> str:
    """Processor, system and Python, in a line."""
    return f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"

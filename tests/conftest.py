"""What all tests share."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

# Tests must not depend on what the machine of whoever runs them has set.
for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "MAYMUST_LOCAL_MODEL"):
    os.environ.pop(name, None)

# A shell's background job ignores Ctrl-C, and so would every program that a test starts, sends it to and waits for.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


if "PYTEST_XDIST_WORKER" in os.environ:
    # One of several processes has one processor. Two whose threads want both wait for each other's, which takes thrice the time.
    os.environ.setdefault("OMP_THREAD_LIMIT", "1")

    import hypothesis

    # How long one example takes says little beside other work.
    hypothesis.settings.register_profile("shared", deadline=None)
    hypothesis.settings.load_profile("shared")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Which process gets which tests, when there are several."""
    from tests.sharing import Sharing

    return Sharing(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a process of several, what takes long comes first."""
    if hasattr(config, "workerinput"):
        from tests.sharing import place

        items.sort(key=lambda item: place(item.nodeid))

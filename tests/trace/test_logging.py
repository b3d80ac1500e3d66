"""What the model does against the rules is in the log, at WARNING; the library installs no handler."""

import ast
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from maymust import ConditionalRequirement
from maymust.models import call, reply
from tests.trace.test_trace import SCRIPT, desk

SOURCES = Path(__file__).parent.parent.parent / "src" / "maymust"


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition(": ")[2] for record in caplog.records if record.levelno == logging.WARNING]


def test_a_refused_call_is_logged_without_its_arguments(caplog: pytest.LogCaptureFixture) -> None:
    desk([call("refund", order=123456, amount=2), call("nosuch\n\x1b[2J"), *SCRIPT[1:]]).run_sync("Please.")
    assert warnings(caplog) == [
        "a call of 'refund' was refused",
        "a call of 'nosuch\\n\\x1b[2J' was refused",
        "a call of 'refund' was refused",
    ]
    assert "123456" not in caplog.text


def test_bad_replies_relaxations_and_coercions_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    rules = [ConditionalRequirement("look", min_invocations=1)]
    desk([reply(), reply(), reply(), call("final_answer", answer="x")], rules).run_sync("Please.")
    assert "no usable reply (1 running)" in warnings(caplog)
    caplog.clear()
    desk(["Hello."], []).run_sync("Please.")
    assert warnings(caplog) == ["a text was taken for the answer where a call of final_answer was expected"]


def test_no_handler_is_installed() -> None:
    code = "import logging, maymust.trace, maymust.cli.main; print([l for l in (None, 'maymust') if logging.getLogger(l).handlers])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_logger_belongs_to_its_module_or_package() -> None:
    for path in SOURCES.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts)
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        # Another library may be told to be quiet.
        quieted = [node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr == "setLevel"]
        for node in nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "logging.getLogger" and node not in quieted:
                named = ast.unparse(node.args[0]).strip("'")
                assert named == "__name__" or module.startswith(named), path

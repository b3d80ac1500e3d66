"""The exit codes of every command."""

from __future__ import annotations

CLEAN = 0
"""Nothing was found, or what was asked for is done."""
FINDINGS = 1
"""Something was found: an error in a policy, a refused call, a failed test, a run without an answer."""
UNUSABLE = 2
"""The command or its input cannot be used; stderr says why."""
UNDECIDED = 3
"""Nothing was found, and not everything could be looked at; or a run waits for a person."""
INTERRUPTED = 130
"""Ctrl-C."""

ABOUT = "Exit codes: 0 clean, 1 findings, 2 unusable input, 3 undecided."

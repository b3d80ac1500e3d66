"""`maymust completion`: a script that lets a shell complete commands, options and files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maymust.cli.exit_codes import CLEAN
from maymust.cli.options import add_command

if TYPE_CHECKING:
    from maymust.cli.options import Subparsers

SHELLS = ("bash", "zsh", "fish", "tcsh")
ABOUT = "Prints a script for a shell, which then completes commands, options and files."
EXAMPLES = """\
  maymust completion bash > ~/.local/share/bash-completion/completions/maymust
  maymust completion zsh > ~/.zsh/functions/_maymust
  maymust completion fish > ~/.config/fish/completions/maymust.fish"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `completion`."""
    parser = add_command(subparsers, "completion", "print a script for completion in a shell", "[-h] SHELL", ABOUT, EXAMPLES)
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    from maymust.cli.console import UnusableError
    from maymust.cli.main import build_parser

    try:
        import shtab
    except ImportError:
        raise UnusableError("completion needs shtab, which is not installed: pip install 'maymust[cli]'") from None
    parser = build_parser()
    _mark_paths(parser, shtab.FILE)
    print(shtab.complete(parser, arguments.shell))
    return CLEAN


def _mark_paths(parser: argparse.ArgumentParser, files: Any) -> None:
    """Tell shtab which arguments are paths."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                _mark_paths(sub, files)
        elif getattr(action, "is_path", False):
            action.complete = files  # type: ignore[attr-defined]

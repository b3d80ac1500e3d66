"""`maymust`: the entry point, and what all subcommands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import maymust
from maymust.cli import models
from maymust.errors import MaymustError

SUBCOMMANDS = (models,)


def build_parser() -> argparse.ArgumentParser:
    """The parser with all subcommands. Each sets `run`, a function of the parsed arguments that returns the exit code."""
    parser = argparse.ArgumentParser(prog="maymust", description="Rules for what an agent may call, must call, and when it may stop.")
    parser.add_argument("--version", action="version", version=f"maymust {maymust.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for subcommand in SUBCOMMANDS:
        subcommand.add_parser(subparsers)
    version = subparsers.add_parser("version", help="print the version", description="Print the version.")
    version.set_defaults(run=print_version)
    return parser


def print_version(arguments: argparse.Namespace) -> int:
    """Print the version."""
    print(f"maymust {maymust.__version__}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit codes: 0 done, 1 it failed and stderr says why, 2 wrong usage."""
    arguments = build_parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except MaymustError as error:
        print(f"maymust: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader has seen enough (`| head`). What is still buffered would raise again when the interpreter shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("maymust: interrupted", file=sys.stderr)
        return 130

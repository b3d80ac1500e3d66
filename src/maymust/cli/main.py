"""`maymust`: the entry point, and what all commands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from maymust.cli import (
    check,
    completion,
    difference,
    explain,
    gateway,
    graph,
    mcp_proxy,
    models,
    policy_test,
    replay,
    run,
    runs,
    schema,
    serve,
    verify,
    view,
    worker,
)
from maymust.cli.exit_codes import ABOUT, CLEAN, FINDINGS, INTERRUPTED, UNUSABLE
from maymust.cli.options import Parser, add_command
from maymust.errors import MaymustError, PolicyError

COMMANDS = (
    run,
    runs,
    worker,
    verify,
    explain,
    replay,
    view,
    serve,
    check,
    difference,
    graph,
    policy_test,
    gateway,
    mcp_proxy,
    schema,
    models,
    completion,
)


def build_parser() -> Parser:
    """The parser with all commands. Each sets `run`, a function of the parsed arguments that returns the exit code."""
    parser = Parser(
        prog="maymust",
        usage="maymust [-h] [--version] COMMAND ...",
        description="Rules for what an agent may call, must call, and when it may stop.",
        epilog=f"{ABOUT}\n`maymust COMMAND --help` says more of a command.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(title="commands", prog="maymust", metavar="COMMAND", required=True, parser_class=Parser)
    for command in COMMANDS:
        command.add_parser(subparsers)
    version = add_command(subparsers, "version", "print the version", "[-h]", "Prints the version.")
    version.set_defaults(run=print_version)
    return parser


class _Version(argparse.Action):
    """`--version`, which reads the version only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> None:
        print_version(argparse.Namespace())
        parser.exit(CLEAN)


def print_version(arguments: argparse.Namespace) -> int:
    """Print the version."""
    import maymust

    print(f"maymust {maymust.__version__}")
    return CLEAN


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, see `exit_codes`."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its escape, instead of a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    arguments = build_parser().parse_args(argv)
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
    except MaymustError as error:
        return _failed(error)
    except BrokenPipeError:
        # The reader has seen enough (`| head`). What is still buffered would raise again when the interpreter shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLEAN
    except KeyboardInterrupt:
        print("maymust: interrupted", file=sys.stderr)
        return INTERRUPTED
    return code


def _failed(error: MaymustError) -> int:
    from maymust.cli.console import Console, UnusableError
    from maymust.policyfile.problem import PolicyFileError

    console = Console()
    if isinstance(error, PolicyFileError):
        from maymust.reports.diagnostic import of_file_error
        from maymust.reports.text import render_result

        console.say(render_result(of_file_error(error), console.err_paint).rstrip("\n"))
    else:
        console.error(str(error))
    return UNUSABLE if isinstance(error, UnusableError | PolicyError) else FINDINGS

"""`maymust schema`: the JSON Schema of policy files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from maymust.cli.exit_codes import CLEAN
from maymust.cli.options import add_command, path_argument

if TYPE_CHECKING:
    from maymust.cli.options import Subparsers

ABOUT = """\
Prints the JSON Schema (draft-07) of policy files. Editors with the YAML language server complete and
check a policy file that begins with:

  # yaml-language-server: $schema=policy.schema.json"""
EXAMPLES = "  maymust schema -o policy.schema.json"


def add_parser(subparsers: Subparsers) -> None:
    """Add `schema`."""
    parser = add_command(subparsers, "schema", "print the JSON Schema of policy files", "[options]", ABOUT, EXAMPLES)
    path_argument(parser, "-o", "--output", metavar="FILE", help="write to a file instead of stdout")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the schema."""
    from maymust.cli.console import Console
    from maymust.policyfile.schema import schema_text

    Console(arguments.output).result(schema_text())
    return CLEAN

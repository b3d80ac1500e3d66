"""`maymust models`: the weights of small local models."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from maymust.cli.exit_codes import CLEAN, FINDINGS
from maymust.cli.options import add_command

if TYPE_CHECKING:
    from maymust.cli.options import Parser, Subparsers
    from maymust.models.weights import Weights


def add_parser(subparsers: Subparsers) -> None:
    """Add `models` with `list`, `pull` and `path`."""
    about = "Weights of small models that run on this machine."
    parser = add_command(subparsers, "models", "list, pull or find weights of small local models", "COMMAND ...", about)
    commands: Subparsers = parser.add_subparsers(title="commands", prog="maymust models", metavar="COMMAND", required=True)
    listing = _add(commands, "list", "what there is, and what is already here", "[-h]", "Lists the known weights.")
    listing.set_defaults(run=list_models)
    about = "Fetches weights into the user's cache, and checks them. Does nothing when they are there."
    pulling = _add(commands, "pull", "fetch weights into the user's cache", "[-h] [NAME]", about)
    about = "Prints the path of pulled weights. Fails when they are not pulled yet."
    finding = _add(commands, "path", "print where pulled weights are", "[-h] [NAME]", about)
    for command, run in ((pulling, pull_model), (finding, print_path)):
        command.add_argument("name", nargs="?", metavar="NAME", help="a name from `maymust models list` (default: its first)")
        command.set_defaults(run=run)


def _add(commands: Subparsers, name: str, help: str, usage: str, about: str) -> Parser:
    return commands.add_parser(name, help=help, usage=f"maymust models {name} {usage}", description=about)


def list_models(arguments: argparse.Namespace) -> int:
    """Print one line for each known file of weights."""
    from maymust.models import weights

    for known in weights.KNOWN.values():
        where = str(known.path) if known.is_pulled() else "not pulled"
        print(f"{known.name}\t{known.title}\t{known.size / 1e6:.0f} MB\t{known.license}\t{where}")
    return CLEAN


def pull_model(arguments: argparse.Namespace) -> int:
    """Pull, with progress on stderr; the path goes to stdout."""
    from maymust.models import weights

    print(weights.pull(_known(arguments.name or weights.DEFAULT)))
    return CLEAN


def print_path(arguments: argparse.Namespace) -> int:
    """Print the path of pulled weights."""
    from maymust.cli.console import Console
    from maymust.models.weights import DEFAULT

    known = _known(arguments.name or DEFAULT)
    if not known.is_pulled():
        Console().error(f"{known.name} is not pulled yet; run `maymust models pull {known.name}`")
        return FINDINGS
    print(known.path)
    return CLEAN


def _known(name: str) -> Weights:
    """The weights of a name. Raises UnusableError for an unknown one."""
    from maymust.cli.console import UnusableError
    from maymust.errors import MaymustError
    from maymust.models import weights

    try:
        return weights.known(name)
    except MaymustError as error:
        raise UnusableError(str(error)) from error

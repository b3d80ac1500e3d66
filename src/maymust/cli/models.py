"""`maymust models`: the weights of small local models."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from maymust.models import weights

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(subparsers: Subparsers) -> None:
    """Add `models` with `list`, `pull` and `path`."""
    about = "Weights of small models that run on this machine."
    parser = subparsers.add_parser("models", help="list, pull or find weights of small local models", description=about)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    listing = commands.add_parser("list", help="what there is, and what is already here", description="List the known weights.")
    listing.set_defaults(run=list_models)

    pulling = commands.add_parser(
        "pull",
        help="fetch weights into the user's cache",
        description="Fetch weights into the user's cache, and check them. Does nothing when they are there.",
    )
    finding = commands.add_parser(
        "path", help="print where pulled weights are", description="Print the path of pulled weights. Fails when they are not pulled yet."
    )
    for command, run in ((pulling, pull_model), (finding, print_path)):
        command.add_argument(
            "name", nargs="?", default=weights.DEFAULT, help=f"a name from `maymust models list` (default: {weights.DEFAULT})"
        )
        command.set_defaults(run=run)


def list_models(arguments: argparse.Namespace) -> int:
    """Print one line for each known file of weights."""
    for known in weights.KNOWN.values():
        where = str(known.path) if known.is_pulled() else "not pulled"
        print(f"{known.name}\t{known.title}\t{known.size / 1e6:.0f} MB\t{known.license}\t{where}")
    return 0


def pull_model(arguments: argparse.Namespace) -> int:
    """Pull, with progress on stderr; the path goes to stdout."""
    print(weights.pull(arguments.name))
    return 0


def print_path(arguments: argparse.Namespace) -> int:
    """Print the path of pulled weights."""
    known = weights.known(arguments.name)
    if not known.is_pulled():
        print(f"maymust: {known.name} is not pulled yet; run `maymust models pull {known.name}`", file=sys.stderr)
        return 1
    print(known.path)
    return 0

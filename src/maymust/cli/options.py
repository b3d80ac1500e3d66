"""What the parsers of the commands share."""

from __future__ import annotations

import argparse
import functools
from typing import TYPE_CHECKING, Any, NoReturn

from maymust.cli.exit_codes import ABOUT
from maymust.core.tool_spec import did_you_mean

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction["Parser"]

WIDTH = 100


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help of one width and one form, whatever the terminal and the version of Python."""

    def add_argument(self, action: argparse.Action) -> None:
        """Take note of an action, commands of a group by their own indent, as Python 3.13 does."""
        super().add_argument(action)
        for command in self._iter_indented_subactions(action):
            length = len(self._format_action_invocation(command)) + self._current_indent
            self._action_max_length = max(self._action_max_length, length)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        # Python 3.13 writes `-o, --output FILE`, older ones repeat the FILE.
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class Parser(argparse.ArgumentParser):
    """A parser whose errors suggest what was meant."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", functools.partial(HelpFormatter, width=WIDTH, max_help_position=28))
        # An abbreviated option would change its meaning when another one is added.
        settings.setdefault("allow_abbrev", False)
        super().__init__(**settings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What argparse makes of the arguments. What this parser does not know is its own error: nobody else may know it."""
        known, rest = super().parse_known_args(args, namespace)
        if rest:
            first = next((part.partition("=")[0] for part in rest if part.startswith("-")), "")
            self.error(f"unrecognized arguments: {' '.join(rest)}{did_you_mean(first, self._option_string_actions)}")
        return known, rest

    def error(self, message: str) -> NoReturn:
        """What argparse does, with where the commands are listed for who has typed none."""
        more = f"; `{self.prog} --help` lists them" if message.endswith("required: COMMAND") else ""
        super().error(message + more)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            near = did_you_mean(str(value), names) or f"; choose from {', '.join(names)}"
            raise argparse.ArgumentError(action, f"there is no {value!r}{near}")


def add_command(subparsers: Subparsers, name: str, help: str, usage: str, about: str, examples: str = "") -> Parser:
    """Add a command. `usage` is what follows its name, `about` its description, `examples` go to the end of its help."""
    epilog = f"{ABOUT}\n" if not examples else f"examples:\n{examples}\n\n{ABOUT}"
    return subparsers.add_parser(name, help=help, usage=f"maymust {name} {usage}", description=about, epilog=epilog)


def path_argument(parser: Any, *names: str, **settings: Any) -> None:
    """An argument that is a path, which shell completion knows."""
    parser.add_argument(*names, **settings).is_path = True


def add_format(parser: Any, formats: tuple[str, ...]) -> None:
    """`--format`, `--json` and `--output`."""
    parser.add_argument("--format", choices=formats, default="text", metavar="FORMAT", help=f"one of {', '.join(formats)} (default: text)")
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    path_argument(parser, "-o", "--output", metavar="FILE", help="write the results to a file instead of stdout")


def names(text: str) -> tuple[str, ...]:
    """`a,b` as a tuple of names."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def whole(text: str) -> int:
    """A whole number above 0."""
    number = int(text) if text.isdecimal() and len(text) < 10 else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"it has to be a whole number above 0, not {text!r}")
    return number

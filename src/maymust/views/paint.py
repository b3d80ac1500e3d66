"""Colours for a terminal, and texts that are safe to print there."""

from __future__ import annotations

import os
import re
import unicodedata
from typing import TextIO

# Control characters could move the cursor or fake a line; marks of direction could show a text in another order; halves of a
# character cannot be written; tags are seen by nobody but a model.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_CODES = {"error": "1;31", "warning": "1;33", "note": "1;36", "help": "1;32", "bold": "1", "dim": "2", "good": "32", "bad": "31"}


def clean(text: str) -> str:
    """The text with control characters written out, on one line."""
    return _UNSAFE.sub(_written_out, text.replace("\n", " ").replace("\t", " "))


def _written_out(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def width(text: str) -> int:
    """How many columns a text takes on a terminal."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 0 if unicodedata.combining(char) else 1 for char in text)


def wants_colours(stream: TextIO) -> bool:
    """True for a terminal that may be coloured: `NO_COLOR` and `TERM=dumb` say no, `FORCE_COLOR` says yes."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class Paint:
    """Puts colours around texts, or does not. Nothing is told by colour alone."""

    def __init__(self, colours: bool) -> None:
        self.colours = colours

    def __call__(self, style: str, text: str) -> str:
        """The text in a style: error, warning, note, help, bold, dim, good, bad."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colours and text else text

"""Whether the values of a call were named by somebody who is trusted: the user, or a tool whose output is not from outside.

Values are looked up as they are, word by word and without regard to case; nothing here understands language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from maymust.errors import PolicyError

Part: TypeAlias = Literal["all", "said", "links"]
"""What of an argument has to be named, and by whom.

all    all of its values, by the user or by a trusted tool
said   all of its values, by the user
links  only the addresses in it (of the web, of mail, of bank accounts), by the user or by a trusted tool
"""

_LINK = re.compile(
    r"""(?:https?://|www\.)[^\s<>"'()\[\]]+          # of the web
      | [\w.+-]+@[\w-]+(?:\.[\w-]+)+                  # of mail
      | \b(?:[\w-]+\.)+[a-z]{2,}\b(?:/[^\s<>"'()\[\]]*)?  # of the web, without its beginning; names of files read the same
      | \b[A-Z]{2}\d{2}[A-Z0-9]{8,30}\b               # of bank accounts (IBAN)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TRAILING = ".,;:!?"


def links_in(text: str) -> list[str]:
    """The addresses in a text."""
    return [found.group().rstrip(_TRAILING) for found in _LINK.finditer(text)]


def parts_of(given: Any, label: str) -> dict[str, Part]:
    """What an author wrote for one tool: a parameter, a list of them, or `{parameter: part}`. Raises PolicyError."""
    if isinstance(given, str):
        given = (given,)
    if not isinstance(given, Mapping):
        given = dict.fromkeys(given, "all") if isinstance(given, Iterable) else {None: None}
    for parameter, part in given.items():
        if not isinstance(parameter, str) or part not in ("all", "said", "links"):
            raise PolicyError(
                f"{label} has to be a list of parameters or {{parameter: 'all', 'said' or 'links'}}, got {parameter!r}: {part!r}"
            )
    if not given:
        raise PolicyError(f"{label} names no parameter; leave the tool out, and every call of it is asked about")
    return dict(given)


def wanted(arguments: Mapping[str, Any], parts: Mapping[str, Part]) -> Iterator[tuple[str | None, bool]]:
    """The values that have to be named, as text (None for one that has none), each with whether only the user can have named it."""
    for parameter, part in parts.items():
        for value in _leaves(arguments.get(parameter)):
            if part == "links":
                yield from ((link, False) for link in (links_in(value) if isinstance(value, str) else ()))
            else:
                yield _text(value), part == "said"


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for part in (*value.keys(), *value.values()):
            yield from _leaves(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part)
    elif value is not None and value != "":
        yield value


def is_named(value: str | None, texts: Iterable[str]) -> bool:
    """Whether the value occurs in one of the texts, as a whole: not inside of a longer word, address or number."""
    if value is None or not value.strip():
        return False
    look = re.compile(rf"(?<![\w@])(?<!\w[.\-/]){re.escape(value.strip())}(?![\w@]|[.\-/]\w)", re.IGNORECASE)
    return any(look.search(text) for text in texts)

"""Texts of a run within limits: a page has to stay something that a browser opens."""

from __future__ import annotations

import json
from typing import Any

TOTAL = 16_000_000
"""How many characters of texts a page holds."""
EACH = 2_000_000
"""How many characters a single text may have."""
ALWAYS = 2_000
"""How many characters of a text are kept where the page is full."""


class Texts:
    """Takes texts as long as there is room; what is cut says how long it was."""

    def __init__(self, total: int = TOTAL) -> None:
        self._left = total

    def take(self, text: str) -> str | dict[str, Any]:
        """The text, or `{"cut": its beginning, "of": its length}`."""
        room = min(EACH, max(self._left, ALWAYS))
        self._left -= min(len(text), room)
        return text if len(text) <= room else {"cut": text[:room], "of": len(text)}

    def take_value(self, value: Any) -> str | dict[str, Any]:
        """The JSON text of a value, a text as it is."""
        return self.take(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=str))


def shortened(text: str, most: int = 400) -> str:
    """A text of a rule, which is long only by accident."""
    return text if len(text) <= most else f"{text[: most - 40]} … {text[-30:]}"

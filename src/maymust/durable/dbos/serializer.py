"""How DBOS writes what it keeps: as its portable JSON. Nothing is pickled, so reading a database runs no code."""

from __future__ import annotations

import json
from typing import Any

from dbos import DBOSPortableJSONSerializer

from maymust.tools.output import json_text


class _Json(DBOSPortableJSONSerializer):
    """DBOS's portable JSON, from plain data only; lone surrogates are escaped, so that Postgres takes them."""

    def serialize(self, value: Any) -> str:
        return json_text(value)


SERIALIZER = _Json()


def of_text(text: str | None) -> Any:
    """What was kept."""
    return None if text is None else json.loads(text)

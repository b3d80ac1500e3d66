"""Long texts are kept once, under the hash of what they say, however many runs, steps and messages hold them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from typing import Any

from maymust.tools.output import json_text

LONG = 2_048
"""Characters from which on a text is kept apart."""
_BLOB, _PLAIN = "$blob", "$plain"


def pack(value: Any, blobs: dict[str, str]) -> Any:
    """The value with a reference in the place of each long text; the texts go to `blobs` by hash."""
    if isinstance(value, str):
        if len(value) < LONG:
            return value
        name = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
        blobs[name] = value
        return {_BLOB: name}
    if isinstance(value, dict):
        packed = {key: pack(part, blobs) for key, part in value.items()}
        # What looks like a reference of ours is marked as none.
        return {_PLAIN: packed} if len(value) == 1 and (_BLOB in value or _PLAIN in value) else packed
    return [pack(part, blobs) for part in value] if isinstance(value, list | tuple) else value


def unpack(value: Any, connection: sqlite3.Connection) -> Any:
    """What was packed. Raises LookupError for a text that is gone."""
    if isinstance(value, dict):
        if len(value) == 1 and _BLOB in value:
            row = connection.execute("SELECT data FROM blobs WHERE hash = ?", (value[_BLOB],)).fetchone()
            if row is None:
                raise LookupError(f"the text {value[_BLOB]} is missing")
            return json.loads(row[0])
        inner = value[_PLAIN] if len(value) == 1 and _PLAIN in value else value
        return {key: unpack(part, connection) for key, part in inner.items()}
    return [unpack(part, connection) for part in value] if isinstance(value, list) else value


def dumps(value: Any, blobs: dict[str, str]) -> str:
    """JSON of a value, with long texts apart. The first character tells whether there may be any."""
    text = json_text(value)
    return text if len(text) < LONG else "*" + json_text(pack(value, blobs))


def loads(text: str, connection: sqlite3.Connection) -> Any:
    """The value whose `dumps` gave `text`."""
    return unpack(json.loads(text[1:]), connection) if text.startswith("*") else json.loads(text)


def keep(connection: sqlite3.Connection, run_id: str, blobs: dict[str, str]) -> None:
    """Write the texts that are not there yet, and that this run uses them."""
    connection.executemany("INSERT OR IGNORE INTO blob_uses(run_id, hash) VALUES(?, ?)", [(run_id, name) for name in blobs])
    rows = [(name, json.dumps(text)) for name, text in blobs.items()]
    connection.executemany("INSERT OR IGNORE INTO blobs(hash, data) VALUES(?, ?)", rows)

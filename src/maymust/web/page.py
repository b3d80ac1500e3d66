"""The page as one text: markup, style, scripts and data, under a policy that lets no request out."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib import resources
from typing import Any

from maymust.views.paint import clean

_SHOWING = ("dom.js", "run.js", "matrix.js", "why.js", "graph.js", "browse.js")
_STARTING = ("keys.js", "theme.js", "main.js")
FILE = (*_SHOWING, "file.js", *_STARTING)
SERVED = (*_SHOWING, "api.js", "editor.js", "playground.js", "served.js", *_STARTING)
"""The parts of the script, each behind those that it imports."""

_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_COMMENT = re.compile(r"^\s*//.*\n|^\s+", re.MULTILINE)
_EXPORT = re.compile(r"^export (\{.*\};\n)?", re.MULTILINE)
# In JSON these stand in texts only, where they may be written out; so nothing can end the element, or open a comment in it.
_WRITTEN_OUT = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def page(data: dict[str, Any], *, title: str, served: bool = False) -> str:
    """The whole page. From a server it may talk to that server; as a file to nobody."""
    style, layout, script = _parts(served)
    meta = "" if served else f'<meta http-equiv="Content-Security-Policy" content="{content_policy()}">\n'
    filled = {
        "csp": meta,
        "title": html.escape(clean(title)),
        "mode": "served" if served else "file",
        "style": style,
        "layout": layout,
        "script": script,
        "data": embedded(data),
    }
    return re.sub(r"\{(\w+)\}", lambda found: filled[found[1]], _asset("page.html"))


def content_policy(*, served: bool = False) -> str:
    """The Content-Security-Policy: nothing but the scripts and the style of the page, known by their hashes."""
    style, layout, script = _parts(served)
    rules = [
        "default-src 'none'",
        f"script-src {_hash(layout)} {_hash(script)}",
        f"style-src {_hash(style)}",
        "img-src data:",
        f"connect-src {chr(39)}{'self' if served else 'none'}{chr(39)}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    # A <meta> cannot say it.
    return "; ".join([*rules, "frame-ancestors 'none'"] if served else rules)


def embedded(data: Any) -> str:
    """Data as JSON that may stand in a script element, whatever its texts are."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).translate(_WRITTEN_OUT)


@cache
def _parts(served: bool) -> tuple[str, str, str]:
    """Style, layout library and script. Whoever passes on a page passes on the library, so its licence goes with it."""
    modules = SERVED if served else FILE
    script = "".join(_EXPORT.sub("", _COMMENT.sub("", _IMPORT.sub("", _asset(name)))) for name in modules)
    script = re.sub(r" (=>|===) ", r"\1", script)
    layout = f"/*\n{_asset('dagre.LICENSE.txt')}*/\n{_asset('dagre.min.js')}"
    return _asset("page.css"), layout, f"{script}start({'openServed' if served else 'openFile'});\n"


def _asset(name: str) -> str:
    return (resources.files("maymust.web") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

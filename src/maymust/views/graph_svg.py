"""A policy's graph as one SVG, laid out in columns by the number of calls. Nothing but text and shapes, no script."""

from __future__ import annotations

from collections import deque
from xml.sax.saxutils import escape

from maymust.views.automaton import Edge, PolicyGraph
from maymust.views.paint import clean, width

_RADIUS = 26
_ROW = 110
_MARGIN = 60
_CHAR = 7
_STYLE = (
    "text{font:13px sans-serif;text-anchor:middle;fill:#1a1a1a}"
    "text.call{font-size:12px;fill:#333}text.halo{font-size:12px;fill:#fff;stroke:#fff;stroke-width:4px}"
    "circle{fill:#fff;stroke:#1a1a1a;stroke-width:1.5}path{fill:none;stroke:#666;stroke-width:1.3}"
    ".stuck{stroke:#b00020;stroke-dasharray:5 3;stroke-width:2.5}"
)
_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">'
    '<path d="M0 0 8 4 0 8z" style="fill:#666;stroke:none"/></marker></defs>'
)


def svg(graph: PolicyGraph, *, title: str) -> str:
    """The graph as the text of an SVG file. A doubled frame says that the run may end, a dashed one that there is no next step."""
    places, size = _layout(graph)
    parts = [_edge(edge, places) for edge in graph.edges]
    parts.extend(_node(graph, number, places[number]) for number in range(len(graph.verdicts)))
    start = places[0]
    parts.append(f'<path d="M{start[0] - _RADIUS - 28} {start[1]}h26" marker-end="url(#arrow)"/>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" role="img">'
    background = f'<rect width="{size[0]}" height="{size[1]}" style="fill:#fff"/>'
    body = "\n".join((f"<title>{escape(clean(title))}</title>", f"<style>{_STYLE}</style>", _ARROW, background, *parts))
    return f"{head}\n{body}\n</svg>\n"


Place = tuple[int, int]


def _layout(graph: PolicyGraph) -> tuple[list[Place], Place]:
    """A place for each situation: the column is its distance from the start, the row its turn there."""
    after: dict[int, list[int]] = {}
    for edge in graph.edges:
        after.setdefault(edge.source, []).append(edge.target)
    distance = {0: 0}
    queue = deque([0])
    while queue:
        number = queue.popleft()
        for target in after.get(number, ()):
            if target not in distance:
                distance[target] = distance[number] + 1
                queue.append(target)
    longest = max((width(", ".join(edge.calls)) for edge in graph.edges if edge.source != edge.target), default=8)
    column = max(150, min(longest, 40) * _CHAR + 3 * _RADIUS)
    rows: dict[int, int] = {}
    places = []
    for number in range(len(graph.verdicts)):
        row = rows.get(distance[number], 0)
        rows[distance[number]] = row + 1
        places.append((_MARGIN + 30 + distance[number] * column, _MARGIN + _RADIUS + row * _ROW))
    right = max(place[0] for place in places) + _RADIUS + _MARGIN + 40
    return places, (right, _MARGIN + max(rows.values()) * _ROW)


def _node(graph: PolicyGraph, number: int, place: Place) -> str:
    x, y = place
    style = ' class="stuck"' if graph.is_stuck(number) else ""
    circles = [f'<circle cx="{x}" cy="{y}" r="{_RADIUS}"{style}/>']
    if graph.may_stop(number):
        circles.append(f'<circle cx="{x}" cy="{y}" r="{_RADIUS - 4}"/>')
    first, *rest = graph.label(number)
    lines = [f'<text x="{x}" y="{y + 5}">{first}</text>']
    lines.extend(f'<text x="{x}" y="{y + _RADIUS + 16}">{escape(clean(line))}</text>' for line in rest)
    return "".join((*circles, *lines))


def _edge(edge: Edge, places: list[Place]) -> str:
    (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
    text = clean(", ".join(edge.calls))
    text = escape(text if len(text) <= 40 else f"{text[:39]}…")
    if edge.source == edge.target:
        path = f"M{x1 - 10} {y1 - _RADIUS + 2}C{x1 - 34} {y1 - 70} {x1 + 34} {y1 - 70} {x1 + 10} {y1 - _RADIUS + 2}"
        return _drawn(path, x1, y1 - 60, text)
    # The way there bends up, the way back down, so that they never lie on each other.
    dx, dy = x2 - x1, y2 - y1
    length = max(1.0, (dx * dx + dy * dy) ** 0.5)
    bend = 18 + length * 0.06
    middle = ((x1 + x2) / 2 + dy / length * bend, (y1 + y2) / 2 - dx / length * bend)
    start, end = _rim(places[edge.source], middle), _rim(places[edge.target], middle)
    path = f"M{start[0]:.1f} {start[1]:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    # Nearer to the source than to the target: at the middle the texts of crossing ways would lie on each other.
    x, y = (0.46 * a + 0.44 * b + 0.1 * c for a, b, c in zip(start, middle, end, strict=True))
    return _drawn(path, x, y - 4, text)


def _rim(center: Place, towards: tuple[float, float]) -> tuple[float, float]:
    dx, dy = towards[0] - center[0], towards[1] - center[1]
    length = max(1.0, (dx * dx + dy * dy) ** 0.5)
    return center[0] + dx / length * (_RADIUS + 1), center[1] + dy / length * (_RADIUS + 1)


def _drawn(path: str, x: float, y: float, text: str) -> str:
    at = f'x="{x:.1f}" y="{y:.1f}"'
    # Not every viewer knows paint-order, so the halo is a text of its own.
    return f'<path d="{path}" marker-end="url(#arrow)"/><text class="halo" {at}>{text}</text><text class="call" {at}>{text}</text>'

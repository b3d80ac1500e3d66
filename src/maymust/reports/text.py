"""Diagnostics as a compiler prints them."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.reports.diagnostic import Diagnostic, FileResult, Place
from maymust.views.paint import Paint, clean, width

_LINE = 110
_GUTTER = 5
_MARKS = {"ok": ("✓", "good"), "undecided": ("?", "warning")}


def render_result(result: FileResult, paint: Paint) -> str:
    """Everything that came of one file."""
    blocks = ["\n".join(_diagnostic(diagnostic, paint)) for diagnostic in result.diagnostics]
    blocks.append("\n".join(_summary(result, paint)))
    return "\n\n".join(blocks) + "\n"


def render_diagnostic(diagnostic: Diagnostic, paint: Paint) -> str:
    """One diagnostic."""
    return "\n".join(_diagnostic(diagnostic, paint)) + "\n"


def _diagnostic(diagnostic: Diagnostic, paint: Paint) -> Iterator[str]:
    head = f"{diagnostic.severity}[{diagnostic.code}]"
    yield f"{paint(diagnostic.severity, head)}{paint('bold', f': {clean(diagnostic.message)}')}"
    if diagnostic.place is not None:
        yield from _excerpt(diagnostic.place, diagnostic.severity, paint)
    bar = paint("dim", f"{'=':>{_GUTTER}}")
    for related in diagnostic.related:
        where = related.place
        yield f"{bar} {clean(related.label)}: {clean(where.path)}:{where.position.line}:{where.position.column}"
    if diagnostic.witness is not None:
        yield f"{bar} {paint('note', 'witness')}: {clean(', '.join(diagnostic.witness)) or 'at the start'}"
    for note in diagnostic.notes:
        yield f"{bar} {paint('note', 'note')}: {clean(note)}"
    if diagnostic.help:
        yield f"{bar} {paint('help', 'help')}: {clean(diagnostic.help)}"


def _excerpt(place: Place, style: str, paint: Paint) -> Iterator[str]:
    position = place.position
    yield f"{paint('dim', '-->'.rjust(_GUTTER))} {clean(place.path)}:{position.line}:{position.column}"
    line = place.line_text or ""
    if not line.strip():
        return
    start = position.column - 1
    end = position.end_column - 1 if position.end_line == position.line else len(line)
    # A window on long lines, so that what is meant is seen.
    left = max(0, start - _LINE // 2) if len(line) > _LINE else 0
    before = ("…" if left else "") + clean(line[left:start])
    marked = max(1, width(clean(line[start : min(end, left + _LINE)])))
    bar = paint("dim", "|".rjust(_GUTTER + 1))
    yield bar
    yield f"{paint('dim', f'{str(position.line).rjust(_GUTTER - 1)} |')} {before}{clean(line[start : left + _LINE])}".rstrip()
    yield f"{bar} {' ' * width(before)}{paint(style, '^' * marked)}"


def _summary(result: FileResult, paint: Paint) -> Iterator[str]:
    counts = [(result.count(severity), severity) for severity in ("error", "warning", "note")]
    words = ", ".join(f"{count} {severity}{'' if count == 1 else 's'}" for count, severity in counts if count)
    mark, style = _MARKS.get(result.verdict, ("✗", "bad"))
    head = f"{mark} {clean(result.path)}: {result.verdict.replace('_', ' ')}"
    yield paint(style, head) + (f" ({words})" if words else "")
    for fact in result.facts:
        yield f"  - {clean(fact)}"

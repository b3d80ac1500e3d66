"""A policy's graph as Mermaid and as DOT."""

from __future__ import annotations

from maymust.views.automaton import PolicyGraph

_LEGEND = "doubled: the run may end here; a failed call that is not drawn changes nothing"


def mermaid(graph: PolicyGraph) -> str:
    """The graph for Mermaid, which Markdown renders on many sites."""
    lines = ["flowchart LR", f"  %% {_LEGEND}", '  start(("start")) --> s0']
    for number in range(len(graph.verdicts)):
        text = _mermaid_text(" ".join(graph.label(number)))
        shape = f'((("{text}")))' if graph.may_stop(number) else f'(["{text}"])'
        lines.append(f"  s{number}{shape}{':::stuck' if graph.is_stuck(number) else ''}")
    lines.extend(f'  s{edge.source} -->|"{_mermaid_text(", ".join(edge.calls))}"| s{edge.target}' for edge in graph.edges)
    if any(map(graph.is_stuck, range(len(graph.verdicts)))):
        lines.append("  classDef stuck stroke:#b00020,stroke-width:3px,stroke-dasharray:4")
    return "\n".join(lines) + "\n"


def dot(graph: PolicyGraph) -> str:
    """The graph for Graphviz."""
    lines = [
        "digraph policy {",
        f"  // {_LEGEND}",
        "  rankdir=LR;",
        '  node [fontname="sans-serif"];',
        "  start [shape=point];",
        "  start -> s0;",
    ]
    for number in range(len(graph.verdicts)):
        shape = "doublecircle" if graph.may_stop(number) else "box" if graph.is_stuck(number) else "circle"
        style = ', color="#b00020", style=dashed' if graph.is_stuck(number) else ""
        label = "\\n".join(_quoted(line) for line in graph.label(number))
        lines.append(f'  s{number} [shape={shape}, label="{label}"{style}];')
    lines.extend(f'  s{edge.source} -> s{edge.target} [label="{_quoted(", ".join(edge.calls))}"];' for edge in graph.edges)
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _mermaid_text(text: str) -> str:
    """Mermaid has entities for what would end a text or begin a tag."""
    for char, name in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("|", "#124;"), ("\n", " ")):
        text = text.replace(char, name)
    return text

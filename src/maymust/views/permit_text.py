"""A permit as a table for people: glyph, verdict, tool and why, with what would change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from maymust.core.permit import Permit, Verdict
from maymust.explanation import Explanation, explain
from maymust.views.paint import Paint, clean, width

_STYLES = {Verdict.FORCED: "help", Verdict.ALLOWED: "good", Verdict.ASK: "warning", Verdict.DENIED: "bad"}
_CLOSED = (Verdict.DENIED, Verdict.HIDDEN)


def permit_text(permit: Permit, explanations: Mapping[str, Explanation], paint: Paint) -> str:
    """The whole permit, a line for each tool and more where there is more to say."""
    column = max(width(clean(tool)) for tool in permit.tools)
    lines = [line for tool in permit.tools for line in _tool(permit, tool, explanations.get(tool), column, paint)]
    stop = "may stop" if permit.may_stop else "may not stop"
    lines.append(f"tool_choice: {clean(permit.tool_choice)}; the run {stop}")
    return "\n".join(lines) + "\n"


def explain_all(permit: Permit) -> dict[str, Explanation]:
    """The explanation of every tool."""
    return {tool: explain(permit, tool) for tool in permit.tools}


def _tool(permit: Permit, tool: str, explained: Explanation | None, column: int, paint: Paint) -> Iterator[str]:
    verdict = permit.verdict(tool)
    name = clean(tool)
    head = f"{verdict.glyph} {verdict.word:<8}  {name}{' ' * (column - width(name))}"
    said = [clean(line) for line in _why(permit, tool, explained)]
    yield f"{paint(_STYLES.get(verdict, 'dim'), head)}  {said[0] if said else ''}".rstrip()
    for line in said[1:]:
        yield f"{' ' * (column + 14)}{line}"


def _why(permit: Permit, tool: str, explained: Explanation | None) -> Iterator[str]:
    verdict = permit.verdict(tool)
    if verdict is Verdict.WITHHELD:
        yield f"{permit.forced} has to be called first"
        return
    for spoken in permit.why(tool):
        rule = spoken.rule
        if verdict is Verdict.FORCED and rule.forced:
            yield f"{rule.reason or 'it has to be called now'} [{spoken.requirement}]"
        elif verdict in _CLOSED and (not rule.allowed or rule.hidden or rule.prevent_stop):
            yield f"{rule.reason or 'closed'} [{spoken.requirement}]"
        elif verdict is Verdict.ASK and rule.ask:
            yield f"a person is asked {_when(rule.ask)}[{spoken.requirement}]"
    yield from (f"only with {parameter} within {list(map(dict, fragments))}" for parameter, fragments in permit.arguments(tool).items())
    if explained is not None and verdict in _CLOSED:
        yield f"→ {explained.outlook}"


def _when(ask: Any) -> str:
    return "" if ask is True else f"when {' and '.join(f'{name} is within {dict(part)}' for name, part in ask.items())} "


def permit_to_dict(permit: Permit, explanations: Mapping[str, Explanation]) -> dict[str, Any]:
    """The permit as JSON, with the explanations."""
    tools = []
    for tool in permit.tools:
        said: dict[str, Any] = {"tool": tool, "verdict": permit.verdict(tool).word, "reasons": list(permit.reasons.get(tool, ()))}
        said["rules"] = [{"name": spoken.requirement, **spoken.rule.to_dict(), "evidence": spoken.evidence} for spoken in permit.why(tool)]
        explained = explanations.get(tool)
        if explained is not None:
            said["outlook"] = explained.outlook
            said["opens_after"] = None if explained.change is None else list(explained.change)
        tools.append(said)
    return {"tools": tools, "forced": permit.forced, "tool_choice": permit.tool_choice, "may_stop": permit.may_stop}

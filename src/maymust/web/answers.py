"""What the playground asks: a policy text folded, verified, explained. Runs in a process of its own, since the text may be anybody's.

`python -m maymust.web.answers` reads requests as JSON lines, and answers each with a line. A policy text is data: nothing is imported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.step import Outcome, Step
from maymust.core.tool_spec import FINAL_ANSWER, did_you_mean
from maymust.errors import DeadEndError, MaymustError, PermitError, PolicyError
from maymust.explanation import explain
from maymust.policyfile.load import PolicyFile, parse_policy
from maymust.policyfile.problem import PolicyFileError
from maymust.policyfile.source import as_source
from maymust.reports.diagnostic import Diagnostic, Locator, of_file_error
from maymust.trace.recording import RecordedTurn
from maymust.verify.prove import verify
from maymust.web.as_test import case_text
from maymust.web.board import Board
from maymust.web.cell import cell_of, facts_of, outlook_of
from maymust.web.known import Known

NAME = "playground.policy.yaml"
MOST_STEPS = 300
LIMIT = 50_000
"""How many states of a policy are looked at for findings."""
_EXPLAINING = 0.3
_MEMORY = 2 * 1024**3


def read(text: str) -> PolicyFile:
    """Read a policy text. Raises PolicyFileError with all that is wrong, each with its place."""
    return parse_policy(as_source(NAME, text.encode("utf-8", "surrogatepass")))


def play(request: Mapping[str, Any]) -> dict[str, Any]:
    """A composed history, folded: the run as the matrix shows it, with one more column for what comes next."""
    file = read(request["policy"])
    board = Board(file.description or "playground", Known(file.policy), seconds=_EXPLAINING)
    history, kept, cut = History(), [], ""
    for number, word in enumerate([*_words(request), None], 1):
        try:
            permit = file.policy.permit(history)
        except PermitError as fault:
            board.add_fault(number, history, str(fault), _known_cells(fault))
            cut = "the rules leave no next step" if word is not None else ""
            break
        step = None if word is None else _step(word, permit)
        if isinstance(step, str):
            cut, step = step, None
        board.add(RecordedTurn(number, permit, history, len(history)), () if step is None else (step,))
        if step is None:
            break
        kept.append(_word(step))
        history = history.add(step)
        if step.tool == FINAL_ANSWER and step.outcome is Outcome.OK:
            break
    return {"run": board.snapshot(), "history": kept, "cut": cut, "ended": bool(kept) and kept[-1] == FINAL_ANSWER}


def why(request: Mapping[str, Any]) -> dict[str, Any]:
    """More about one cell: the facts, and what would change it."""
    policy = read(request["policy"]).policy
    permit = policy.permit(_history(policy, request))
    tool = str(request["tool"])
    return facts_of(permit, tool) | outlook_of(explain(permit, tool))


def findings(request: Mapping[str, Any]) -> dict[str, Any]:
    """What `verify` finds, with places and witnesses."""
    file = read(request["policy"])
    report = verify(file.policy, max_turns=file.max_turns, may_fail=file.may_fail, may_be_denied=file.may_be_denied, limit=LIMIT)
    locator = Locator(file)
    found = [_finding(locator.diagnostic(finding)) for finding in report.findings]
    return {"verdict": report.verdict, "findings": found, "facts": list(report.facts[1:]), "assumptions": list(report.assumptions)}


def test(request: Mapping[str, Any]) -> dict[str, Any]:
    """A policy test that says what holds after the history."""
    policy = read(request["policy"]).policy
    history = _history(policy, request)
    try:
        permit: Permit | PermitError = policy.permit(history)
    except PermitError as fault:
        permit = fault
    return {"text": case_text(NAME, [_word(step) for step in history], permit)}


_ANSWERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"play": play, "why": why, "findings": findings, "test": test}


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one request; what is wrong with the text is `problems`, anything else `error`."""
    try:
        return _ANSWERS[request["do"]](request)
    except PolicyFileError as fault:
        return {"problems": [_finding(one) for one in of_file_error(fault).diagnostics]}
    except PolicyError as fault:
        return {"problems": [{"code": "", "severity": "error", "message": str(fault), "line": 1, "column": 1}]}
    except MaymustError as fault:
        return {"error": str(fault)}
    except (MemoryError, RecursionError) as fault:
        return {"error": f"this policy takes more than the playground has ({type(fault).__name__})"}


def _words(request: Mapping[str, Any]) -> list[str]:
    words = request.get("history", [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise PolicyError("the history has to be a list of texts")
    if len(words) > MOST_STEPS:
        raise PolicyError(f"the playground composes at most {MOST_STEPS} steps, got {len(words)}")
    return words


def _step(word: str, permit: Permit) -> Step | str:
    """The step a word stands for; a call that may not run is refused. A text says why there is none."""
    tool, mark, outcome = word.partition("!")
    if tool not in permit.tools:
        return f"the policy has no tool called {tool}{did_you_mean(tool, permit.tools)}"
    if tool not in permit.allowed or outcome == Outcome.REFUSED:
        return Step(tool, Outcome.REFUSED)
    known = [one.value for one in Outcome if one is not Outcome.REFUSED]
    came = outcome if mark and outcome in known else "ok"
    return Step(tool, Outcome("ok" if came == "denied" and tool not in permit.asks else came))


def _word(step: Step) -> str:
    return step.tool if step.outcome is Outcome.OK else f"{step.tool}!{step.outcome.value}"


def _history(policy: Policy, request: Mapping[str, Any]) -> History:
    """The steps that the words of a request stand for. Raises PolicyError for a name that is no tool."""
    history = History()
    for word in _words(request):
        step = _step(word, policy.permit(history))
        if isinstance(step, str):
            raise PolicyError(step)
        history = history.add(step)
    return history


def _known_cells(fault: PermitError) -> dict[str, dict[str, Any]]:
    permit = fault.permit if isinstance(fault, DeadEndError) else None
    return {} if permit is None else {tool: cell_of(permit, tool) for tool in permit.tools}


def _finding(found: Diagnostic) -> dict[str, Any]:
    return {key: value for key, value in found.to_dict().items() if key not in ("file", "related")}


def serve(lines: Iterable[str], out: TextIO) -> None:
    """Answer requests until there are no more."""
    for line in lines:
        out.write(json.dumps(answer(json.loads(line)), default=str) + "\n")
        out.flush()


def main() -> None:
    """The process: within a limit of memory, where there is one."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    except (ImportError, ValueError, OSError):
        pass
    serve(sys.stdin, sys.stdout)


if __name__ == "__main__":
    main()

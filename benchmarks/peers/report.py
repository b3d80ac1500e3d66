"""docs/benchmarks.md, made from benchmarks/results.json and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.brain import WAYS
from benchmarks.peers.targets import NOT_MEASURED, targets
from benchmarks.peers.versions import AGENTS, MAYMUST, PEERS, ROOT
from benchmarks.peers.words import cell, ending, find, made, memory, micro, rate, table, title_of
from benchmarks.peers.world import KINDS

RESULTS: Path = ROOT / "benchmarks" / "results.json"
PAGE: Path = ROOT / "docs" / "benchmarks.md"
EXPLAINED: Path = ROOT / "docs" / "explanation" / "prompt-cache.md"

HEAD = """\
# Benchmarks

Made by `make bench-peers` from `benchmarks/results.json`; written by `benchmarks/peers/report.py`, so edit that instead. `make bench`
measures maymust alone in a few minutes.

Every framework runs in a virtualenv of its own and gets the same work from the same script: a model without latency, tools that do
nothing, telemetry off, the plainest form of tool that its documentation has. Time is processor time (`time.process_time`, all threads),
measured in a fresh process each time, framework after framework in turns; given are medians, and the least and the greatest in brackets.
What takes more than 5 seconds is measured once. Processor time suffers less than a clock from other work on the machine, but it does
suffer: compare within a table, and read single figures as upper bounds.
"""

WAY_TITLES = {"one": "one call a turn", "batch": "several calls a turn", "text": "answers in between", "unoffered": "tools not on offer"}


def versions(parts: dict[str, Any]) -> str:
    """What was compared."""
    rows = [[peer.title, f"`{peer.pin}`", peer.released] for peer in PEERS.values()]
    return "## Versions\n\n" + table(["", "version", "released"], rows)


def permit(parts: dict[str, Any]) -> str:
    """The grid."""
    part = parts["permit"]
    histories = sorted({row["history"] for row in part["rows"]})
    rows = []
    for name in (MAYMUST, "beeai"):
        for tools, rules in sorted({(row["tools"], row["requirements"]) for row in part["rows"]}):
            found = [find(part["rows"], peer=name, tools=tools, requirements=rules, history=history) for history in histories]
            rows.append([title_of(name), f"{tools:,}", str(rules), *(cell(row, "us") for row in found)])
    head = ["", "tools", "requirements", *(f"history {history:,}" for history in histories)]
    scale = parts["one_tool"]
    decided = [[title_of(row["peer"]), f"{micro(row['us']['median'])} ({micro(row['us']['low'])} – {micro(row['us']['high'])})"]
               for row in sorted(scale["rows"], key=lambda row: row["us"]["median"])]  # fmt: skip
    return "\n\n".join(
        [
            "## The pass",
            "One full decision: which of the tools may be called, which must, and whether the run may end. Limits, orders, forces and "
            "minima in turns; both sides have the same ones. Each decision of maymust is about a history that is one step longer than "
            "the one before it. BeeAI's decision is `create_request`, without the system prompt that it renders from it. It walks the "
            f"history once for each requirement; where one decision would take more than {part['longest_decision']:g} s it is left out. "
            f"{made(part)}",
            table(head, rows),
            "For scale, one decision about one tool by libraries that know nothing of agents, with policies parsed and machines built "
            f"beforehand. {made(scale)}",
            table(["", "one decision"], decided),
        ]
    )


def loop(parts: dict[str, Any]) -> str:
    """Runs of 10 to 10,000 steps, and many at once."""
    part, many = parts["loop"], parts["many"]
    steps = sorted({row["steps"] for row in part["rows"]})
    rows = []
    for name, given in [(MAYMUST, {}), (MAYMUST, {"rules": 10}), *((peer, {}) for peer in AGENTS)]:
        found = [find(part["rows"], peer=name, steps=count, **given) for count in steps]
        rows.append([title_of(name) + (", 10 requirements" if given else ""), *(cell(row, "us_per_step") for row in found), *more(found)])
    head = ["", *(f"{count:,} steps" for count in steps), "growth", "memory"]
    crowd = [[title_of(row["peer"]), cell(row, "us_per_step"), memory(row)] for row in many["rows"]]
    return "\n\n".join(
        [
            "## The loop",
            "Processor time of a step: one model call that asks for one call of one tool, and that call. Growth: a step of the longest run "
            "over one of 100 steps. Memory: the peak of the longest run, and what of it came during the run. smolagents has no async tools "
            f"and gets a sync one. Where a run would take more than {part['longest_run']:g} s of the processor, as the time a step has "
            f"grown so far, it is left out. {made(part)}",
            table(head, rows),
            f"1,000 runs of 3 steps at once in one process, each in a turn of the event loop (smolagents: each in a thread). {made(many)}",
            table(["", "a step", "memory"], crowd),
        ]
    )


def more(found: Sequence[dict[str, Any] | None]) -> list[str]:
    """Growth and memory of the longest run."""
    good = [row for row in found if row is not None and "us_per_step" in row and row["steps"] >= 100]
    if not good:
        return ["-", "-"]
    growth = good[-1]["us_per_step"]["median"] / good[0]["us_per_step"]["median"]
    return [f"{growth:.1f} × at {good[-1]['steps']:,}" if len(good) > 1 else "-", memory(good[-1])]


def imports(parts: dict[str, Any]) -> str:
    """What is loaded and installed."""
    part = parts["imports"]
    rows = [
        [
            f"**{row['title']}**" if row["peer"] == MAYMUST else row["title"],
            f"{row['ms']:.0f} ms ({row['low']:.0f} – {row['high']:.0f})",
            f"{row['modules']:,}",
            str(row["distributions"]),
            f"{row['mb']:.1f}",
        ]
        for row in part["rows"]
    ]
    register = part["register_1000"]["ms"]
    return "\n\n".join(
        [
            "## Import and install",
            "Processor time and modules of the first import in a fresh interpreter; distributions that an install brings by its metadata, "
            f"itself included, and their size without compiled files. {made(part)}",
            table(["", "import", "modules", "distributions", "MB"], rows),
            f"1,000 plain functions with five parameters and a docstring each, from nothing to the first request that offers them all: "
            f"{register['median']:.0f} ms ({register['low']:.0f} – {register['high']:.0f}), pydantic loaded.",
        ]
    )


def prompt_bytes(parts: dict[str, Any]) -> str:
    """Bytes read anew, by way and run."""
    runs = parts["prompt"]["runs"]
    rows = []
    for place, first in enumerate(runs[0]["rows"]):
        found = [run["rows"][place] for run in runs]
        rows.append([first["way"], *(f"{row['anew']:,} of {row['sent']:,} ({row['anew'] / row['sent']:.0%})" for row in found)])
    return table(["", *(run["run"] for run in runs)], rows)


def prompt_seconds(parts: dict[str, Any]) -> str:
    """Seconds a turn with the local model."""
    local = parts["local"]
    rows = [[f"`{layout}`", f"{local[layout]:.2f}", f"{local[layout + '_processor']:.2f}"] for layout in ("stable", "classic")]
    rows.append(["classic ÷ stable", f"{local['ratio']:.1f}", f"{local['ratio_processor']:.1f}"])
    return table(["", "seconds a turn", "processor seconds a turn"], rows)


def prompt(parts: dict[str, Any]) -> str:
    """Bytes and seconds."""
    return "\n\n".join(
        [
            "## The prompt",
            "Bytes that a provider has to read anew in a run of twenty turns, because they come after the first change in the prompt; "
            f"more on that in [the prompt and the cache](explanation/prompt-cache.md). {made(parts['prompt'])}",
            prompt_bytes(parts),
            f"With the small local model and a prefix of {parts['local']['prefix_tokens']:,} tokens, medians over the turns after the "
            f"first. {made(parts['local'])}",
            prompt_seconds(parts),
        ]
    )


def explained(page: str, results: dict[str, Any]) -> str:
    """The page on the prompt and the cache, with its tables made anew."""
    for name, text in (("bytes", prompt_bytes(results["parts"])), ("local", prompt_seconds(results["parts"]))):
        before, mark, rest = page.partition(f"<!-- {name} -->\n")
        page = f"{before}{mark}\n{text}\n\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    return page


def behaviour(parts: dict[str, Any]) -> str:
    """Adversaries, odd replies, and a model at random."""
    part, chance = parts["behaviour"], parts["supervised"]
    peers = {name: found for name, found in part["peers"].items() if "table" in found}
    by_way = [[title_of(name), *(rate(found, way, list(KINDS)) for way in WAYS), str(len(found["table"]))] for name, found in peers.items()]
    by_kind = []
    for name, found in peers.items():
        cells = ["n/a" if kind not in found["table"] else " / ".join(rate(found, way, [kind]) for way in WAYS) for kind in KINDS]
        by_kind.append([title_of(name), *cells])
    odd = []
    for name, found in peers.items():
        seen = found["oddities"]
        odd.append([title_of(name), *(ending(seen[kind], seen["usual"]["calls"]) for kind in ("text", "unknown", "empty"))])
    idioms = [[title_of(name), *(found["idioms"].get(kind, "n/a").replace("|", "\\|") for kind in KINDS)] for name, found in peers.items()]
    return "\n\n".join(
        [
            "## Behaviour",
            "One rule a run, seven kinds of rules, and a model that tries its way around them. Each framework holds the rule by what its "
            "own documentation offers for it (linked below); what has no such thing is n/a and is not counted. Counted are runs, of 1,000, "
            "in which something was executed, or an answer came out, that the rule forbids. In the first two ways the provider holds the "
            f"model to a tool that the request names; in the others it does not. BeeAI is told to take several calls in a turn, which "
            f"is an error there by default. {part['runs_per_cell']} runs for each kind and way, so a share of one run is coarse. "
            f"{made(part)}",
            table(["", *(WAY_TITLES[way] for way in WAYS), "kinds of 7"], by_way),
            "By kind, in the same order of ways: " + "; ".join(f"*{kind}*: {text}" for kind, text in KINDS.items()) + ".",
            table(["", *KINDS], by_kind),
            "How each rule is held:",
            table(["", *KINDS], idioms),
            "Model calls spent beyond the two that a call and an answer take, and how the run ended. *Text*: the model answers in "
            "plain text. *Unknown*: it first calls a tool that does not exist. *Empty*: it says nothing once. After 24 calls a run is "
            "broken off.",
            table(["", "text", "unknown", "empty"], odd),
            f"A model that calls any tool on offer, at random, under {chance['policies']} policies in which it can paint itself into a "
            f"corner: of {chance['runs']:,} runs it finishes {chance['plain']:,} plain, and {chance['supervised']:,} with "
            f"`Agent(supervise=True)`. {made(chance)}",
        ]
    )


def verdicts(parts: dict[str, Any]) -> str:
    """Every target, and whether it was met."""
    aims = targets(parts)
    rows = [[aim.what, aim.wanted, aim.got, "met" if aim.met else "-" if aim.got == NOT_MEASURED else "**missed**"] for aim in aims]
    missed: dict[str, list[str]] = {}
    for aim in aims:
        if not aim.met and aim.got != NOT_MEASURED:
            missed.setdefault(aim.why, []).append(aim.what)
    blocks = ["## Targets", table(["", "target", "measured", ""], rows)]
    if missed:
        blocks += ["What was missed, and why:", "\n".join(f"- {'; '.join(names)}: {why}" for why, names in missed.items())]
    part = parts["profile"]
    shares = part["rows"]["files"]
    blocks += [
        f"Where a step of the loop spends its time, by a profile of 2,000 steps ({part['rows']['calls_per_step']} calls of functions a "
        f"step; own time of each file in percent; a profile makes calls dearer than they are). {made(part)}",
        table(["file", "%"], [[f"`{name}`" if name.endswith(".py") else name, f"{share:.1f}"] for name, share in shares]),
    ]
    return "\n\n".join(blocks)


SECTIONS: tuple[Callable[[dict[str, Any]], str], ...] = (verdicts, permit, loop, imports, prompt, behaviour, versions)


def written(results: dict[str, Any]) -> str:
    """The page."""
    return "\n\n".join([HEAD.rstrip(), *(section(results["parts"]) for section in SECTIONS)]) + "\n"

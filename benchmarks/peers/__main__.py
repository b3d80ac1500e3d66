"""`python -m benchmarks.peers [PART ...]`: measure maymust beside its peers, and write benchmarks/results.json and docs/benchmarks.md.

Without parts, all of them: about half an hour on two processors, most of it the peers'. `--fast` does with less what fits into six
minutes. Parts that are not named keep the results they have, with their own date. `--page` only writes the page.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys

from benchmarks.peers.machine import machine
from benchmarks.peers.parts import FAST, PARTS, How, again, commit, dumped, quiet_loads
from benchmarks.peers.report import EXPLAINED, PAGE, RESULTS, explained, written
from benchmarks.peers.versions import HOMES, python_of


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--fast", action="store_true", help="two processes at once, fewer repetitions, no run of more than a minute")
    parser.add_argument("--again", nargs="+", metavar="NAME", help="of the parts loop and many, measure only these anew and keep the rest")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    quiet_loads()
    how = FAST if asked.fast else How()
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"parts": {}}
    for home in [] if asked.page else HOMES:
        sys.stderr.write(f"virtualenv of {home}\n")
        python_of(home)
    for name in [] if asked.page else asked.parts or PARTS:
        sys.stderr.write(f"{name}\n")
        if asked.again:
            results["parts"][name] = again(results["parts"][name], name, asked.again, how)
            RESULTS.write_text(dumped(results), encoding="utf-8")
            continue
        found = PARTS[name](how)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        results["parts"][name] = {"date": today, "commit": commit(), "machine": machine(), **found}
        RESULTS.write_text(dumped(results), encoding="utf-8")
    text = written(results)
    PAGE.write_text(text, encoding="utf-8")
    EXPLAINED.write_text(explained(EXPLAINED.read_text(encoding="utf-8"), results), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

"""Makes `agentdojo.json.xz` from the recorded ground truth of AgentDojo. Run: python tests/data/make_agentdojo.py RECORDS"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

KEPT = ("suite", "kind", "id", "prompt", "calls", "results")


def main(records: str) -> None:
    """Keep the tools, and of each task what is asked, the calls of the ground truth and what they returned."""
    whole = json.loads(Path(records).read_text(encoding="utf-8"))
    data = {"tools": whole["tools"], "tasks": [{key: record[key] for key in KEPT} for record in whole["records"] if record["calls"]]}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    (Path(__file__).parent / "agentdojo.json.xz").write_bytes(lzma.compress(text))


if __name__ == "__main__":
    main(*sys.argv[1:])

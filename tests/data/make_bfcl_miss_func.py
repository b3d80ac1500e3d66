"""Makes `bfcl_miss_func.json.xz` from the two files of BFCL. Run: python tests/data/make_bfcl_miss_func.py QUESTIONS ANSWERS"""

from __future__ import annotations

import ast
import json
import lzma
import sys
from pathlib import Path
from typing import Any


def call_of(source: str) -> list[Any]:
    """`sort('a.txt', reverse=True)` as name and arguments; those without a name are numbered."""
    node = ast.parse(source, mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"no call: {source}")
    arguments = {f"argument_{place}": ast.literal_eval(value) for place, value in enumerate(node.args, 1)}
    arguments |= {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
    return [node.func.id, arguments]


def main(questions: str, answers: str) -> None:
    """Keep what a replay needs: what the user says, the calls of the answer, and from which turn on the functions are there."""
    gold = {row["id"]: row["ground_truth"] for row in map(json.loads, Path(answers).read_text(encoding="utf-8").splitlines())}
    tasks = [
        {
            "id": row["id"],
            "turns": [" ".join(message["content"] for message in turn) for turn in row["question"]],
            "withheld": {name: int(turn) for turn, names in row["missed_function"].items() for name in names},
            "calls": [[call_of(source) for source in turn] for turn in gold[row["id"]]],
        }
        for row in map(json.loads, Path(questions).read_text(encoding="utf-8").splitlines())
    ]
    data = json.dumps(tasks, ensure_ascii=False, separators=(",", ":")).encode()
    (Path(__file__).parent / "bfcl_miss_func.json.xz").write_bytes(lzma.compress(data))


if __name__ == "__main__":
    main(*sys.argv[1:])

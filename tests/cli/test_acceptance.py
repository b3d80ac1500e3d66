"""The acceptance policies through the command line: verdicts, witnesses, and the outputs as they were looked at once.

`sarif-schema-2.1.0.json` is the schema of OASIS (SARIF 2.1.0, errata 01), unchanged; its `id` says where it is published.
"""

import json
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from tests.cli.acceptance import FORMATS, GOLDEN, output, policy_text, rows
from tests.cli.commands import command, write

SARIF = fastjsonschema.compile(json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("format", FORMATS)
def test_the_output_is_the_golden_one(tmp_path: Path, format: str) -> None:
    code, text = output(tmp_path, format)
    assert code == 2  # one of the policies is refused at construction
    assert text == (GOLDEN / FORMATS[format]).read_text(encoding="utf-8"), "look at it, then run: python -m tests.cli.acceptance"


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row["id"]))
def test_a_row_has_its_verdict_and_witness(tmp_path: Path, row: dict[str, Any]) -> None:
    done = command(tmp_path, "verify", write(tmp_path, "p.policy.yaml", policy_text(row)), "--json")
    file = json.loads(done.out)["files"][0]
    if "refused_at" in row:
        assert (done.code, file["verdict"]) == (2, "unusable")
        return
    assert (done.code, file["verdict"]) == (0 if row["verdict"] == "ok" else 1, row["verdict"])
    report = file["report"]
    if "witness" in row and row["verdict"] != "ok":
        wanted = row["witness"] if row["witness"] and isinstance(row["witness"][0], list) else [row["witness"]]
        assert report["witness"] in wanted
    for key in ("min_steps", "dead_tools"):
        if key in row:
            assert report[key] == row[key]
    if "supervisor" in row:
        assert report["supervisor_exists"] == row["supervisor"]
    if "warning" in row:
        assert row["warning"] in [diagnostic["name"] for diagnostic in file["diagnostics"]]


def test_sarif_is_valid_and_its_code_flows_are_the_witnesses(tmp_path: Path) -> None:
    log = json.loads(output(tmp_path, "sarif")[1])
    SARIF(log)
    assert log["version"] == "2.1.0"
    results = log["runs"][0]["results"]
    for result in results:
        assert result["locations"]
        for flow in result.get("codeFlows", ()):
            steps = [place["location"]["message"]["text"] for place in flow["threadFlows"][0]["locations"]]
            assert steps[-1] == result["message"]["text"].partition(".")[0] or steps[-1] in result["message"]["text"]
    twice = next(result for result in results if "verify!failed" in result["message"]["text"])
    texts = [place["location"]["message"]["text"] for place in twice["codeFlows"][0]["threadFlows"][0]["locations"]]
    assert texts[:2] == ["step 1: verify comes back failed", "step 2: verify comes back failed"]


def test_every_position_is_that_of_what_is_meant(tmp_path: Path) -> None:
    for result in json.loads(output(tmp_path, "sarif")[1])["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        line = (tmp_path / place["artifactLocation"]["uri"]).read_text(encoding="utf-8").splitlines()[place["region"]["startLine"] - 1]
        marked = line[place["region"]["startColumn"] - 1 : place["region"]["endColumn"] - 1]
        assert marked in result["message"]["text"] or marked in ("tools", "only_after") or line.strip().startswith(marked)

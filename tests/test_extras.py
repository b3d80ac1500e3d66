"""Without any extra every module loads, or says which extra to install."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
PROJECT = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["project"]

BARE = """
import importlib, importlib.abc, json, sys

class Bare(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

allowed = {*sys.stdlib_module_names, "maymust", *sys.argv[1].split(",")}
for name in [name for name in sys.modules if name.partition(".")[0] not in allowed]:
    del sys.modules[name]
sys.meta_path.insert(0, Bare())
told = {}
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        told[name] = [type(error).__name__, str(error)]
print(json.dumps(told))
"""
OF_THE_BASE = "pydantic,pydantic_core,annotated_types,typing_extensions,typing_inspection,fastjsonschema"
OF_OTHERS = {"maymust.pytest_plugin"}  # loaded by pytest, and by nobody else


def modules() -> list[str]:
    """Every module of the package."""
    paths = (path.relative_to(SOURCE).with_suffix("") for path in SOURCE.glob("maymust/**/*.py"))
    names = {".".join(path.parts).removesuffix(".__init__") for path in paths if path.name != "__main__"}
    return sorted(names - OF_OTHERS)


def test_a_module_behind_an_extra_names_the_extra_and_what_to_type() -> None:
    done = subprocess.run([sys.executable, "-c", BARE, OF_THE_BASE, *modules()], capture_output=True, text=True, check=True)
    told: dict[str, tuple[str, str]] = json.loads(done.stdout)
    extras = "|".join(map(re.escape, PROJECT["optional-dependencies"]))
    says = re.compile(rf".+ needs .+: pip install 'maymust\[({extras})\]' \(No module named '[\w.]+'\)")
    assert {name: said for name, said in told.items() if said[0] != "ModuleNotFoundError" or not says.fullmatch(said[1])} == {}
    behind = {found.group(1) for said in told.values() if (found := says.fullmatch(said[1]))}
    assert behind >= {"gateway", "mcp", "dbos", "otel", "web", "langchain", "openai-agents"}

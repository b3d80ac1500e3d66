"""Every adapter has what the others have: an extra, pins, tests, a page, and a row in the table."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def pins() -> dict[str, list[str]]:
    spec = importlib.util.spec_from_file_location("check_adapters", ROOT / "scripts" / "check_adapters.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, list[str]] = module.PINS
    return found


@pytest.mark.parametrize("name", pins())
def test_an_adapter_is_complete(name: str) -> None:
    page = name.replace("_", "-")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert (ROOT / f"src/maymust/adapters/{name}.py").exists()
    assert (ROOT / f"tests/adapters/test_{name}.py").exists()
    assert (ROOT / f"docs/how-to/adapters/{page}.md").exists()
    assert f"(../how-to/adapters/{page}.md)" in (ROOT / "docs/reference/adapters.md").read_text(encoding="utf-8")
    distribution, _, version = pins()[name][0].partition("==")
    (extra,) = [one for one in extras[page] if one.startswith(distribution)]
    assert version, "pinned"
    assert version.split(".")[0] in extra, "the extra admits the version that is tested"

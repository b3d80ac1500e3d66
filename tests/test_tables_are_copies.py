"""The tables in this repository are copies; where their originals lie next to the checkout, the two must be equal."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ORIGINALS = ROOT.parent / "shared"
COPIES = {"tests/tables": "conformance", "tests/verify": "verify"}


@pytest.mark.skipif(not (ORIGINALS / "conformance").is_dir(), reason="the originals are not next to this checkout")
@pytest.mark.parametrize(("copy", "original"), COPIES.items(), ids=COPIES.values())
def test_every_table_is_a_copy_of_its_original(copy: str, original: str) -> None:
    originals = {path.name: path.read_bytes() for path in (ORIGINALS / original).iterdir() if path.suffix in {".yaml", ".md"}}
    copies = {path.name: path.read_bytes() for path in (ROOT / copy).iterdir() if path.suffix in {".yaml", ".md"}}
    assert copies.keys() == originals.keys()
    assert [name for name in originals if copies[name] != originals[name]] == []

"""Which tests go to one process together, and which come first."""

from pathlib import Path

from tests.sharing import FIRST, TOGETHER, place, unit

ROOT = Path(__file__).resolve().parent.parent


def test_a_file_stays_together_and_so_does_a_folder_that_shares_a_server() -> None:
    assert unit("tests/core/test_fold.py::test_a[x::y]") == unit("tests/core/test_fold.py::test_b") == "tests/core/test_fold.py"
    assert unit("tests/durable/dbos/test_index.py::test_a") == unit("tests/durable/dbos/test_workers.py::test_b")
    assert unit("tests/durable/test_claims.py::test_a") != unit("tests/durable/dbos/test_index.py::test_a")


def test_what_takes_long_comes_first() -> None:
    assert place(f"{FIRST[0]}::test_a") < place(f"{FIRST[-1]}::test_a") < place("tests/core/test_fold.py::test_a")


def test_what_is_named_is_there() -> None:
    assert [name for name in (*TOGETHER, *FIRST) if not (ROOT / name).exists()] == []

"""The check of the package finds what is missing from it, and what does not belong into it."""

from scripts.check_package import NEEDED, VERSION, archive_faults, package_files, wheel_faults


def test_the_package_has_its_types_marker_and_its_data() -> None:
    files = package_files()
    assert {"maymust/py.typed", "maymust/policyfile/schema.json", "maymust/__init__.py"} <= files
    assert not [name for name in files if "__pycache__" in name]


def test_a_file_that_is_missing_or_too_much_is_told() -> None:
    names = ["maymust/__init__.py", "tests/conftest.py", f"maymust-{VERSION}.dist-info/METADATA"]
    assert wheel_faults(names, {"maymust/__init__.py", "maymust/py.typed"}) == [
        "the wheel lacks maymust/py.typed",
        "the wheel has tests/conftest.py, which is no part of the package",
    ]


def test_a_source_archive_has_what_it_takes_to_test_it() -> None:
    folders = ("src/maymust", "tests", "examples", "docs", "scripts", "benchmarks")
    whole = [*(f"maymust-1/{name}" for name in NEEDED), *(f"maymust-1/{folder}/x" for folder in folders)]
    assert archive_faults(whole) == []
    assert archive_faults([name for name in whole if "LICENSE" not in name]) == ["the source archive lacks LICENSE"]
    assert archive_faults([*whole, "maymust-1/src/__pycache__/x.pyc"]) == ["the source archive has src/__pycache__/x.pyc"]

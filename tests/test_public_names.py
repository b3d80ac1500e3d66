"""The public surface: complete, sorted, and free to import."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import maymust


def typed_imports() -> dict[str, str]:
    """Name -> module of the imports that type checkers see."""
    tree = ast.parse(Path(maymust.__file__).read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {name.name: str(node.module).removeprefix("maymust.") for node in imports for name in node.names if name.asname == name.name}


def test_all_is_sorted_and_every_name_resolves() -> None:
    assert list(maymust.__all__) == sorted(maymust.__all__)
    for name in maymust.__all__:
        assert getattr(maymust, name) is not None, name
        assert name in dir(maymust)


def test_type_checkers_see_the_names_that_are_there_at_run_time() -> None:
    assert typed_imports() == maymust._HOMES


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    assert not hasattr(maymust, "Agnet")


def test_star_import_brings_exactly_the_public_names() -> None:
    namespace: dict[str, object] = {}
    exec("from maymust import *", namespace)
    namespace.pop("__builtins__")
    assert sorted(namespace) == maymust.__all__


def test_the_version_is_that_of_the_package() -> None:
    assert maymust.__version__[0].isdigit()


PROBE = """
import json, sys, time
before = set(sys.modules)
start = time.process_time()
import maymust
seconds = time.process_time() - start
print(json.dumps({"seconds": seconds, "modules": sorted({name.partition(".")[0] for name in set(sys.modules) - before})}))
"""


def test_importing_the_package_loads_no_third_party_module_and_takes_at_most_30_ms() -> None:
    runs = [json.loads(subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    loaded = {name for name in runs[0]["modules"] if name not in sys.stdlib_module_names} - {"maymust"}
    assert not loaded
    assert min(run["seconds"] for run in runs) <= 0.030

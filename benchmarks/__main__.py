"""`python -m benchmarks`: every benchmark in this directory, one after another."""

import runpy
from pathlib import Path

for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
    print(f"\n--- {path.stem}", flush=True)
    runpy.run_module(f"benchmarks.{path.stem}", run_name="__main__")

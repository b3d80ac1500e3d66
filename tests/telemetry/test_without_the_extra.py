"""Where OpenTelemetry is not installed."""

import subprocess
import sys

BLOCKED = """
import sys
sys.modules["opentelemetry"] = None
try:
    import maymust.telemetry
except ImportError as error:
    print(error)
"""


def test_the_error_names_the_extra() -> None:
    told = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=True).stdout
    assert "pip install 'maymust[otel]'" in told

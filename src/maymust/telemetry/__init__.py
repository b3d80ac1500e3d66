"""Runs in OpenTelemetry: spans, events and metrics (extra `otel`).

Names follow the GenAI semantic conventions 1.41, the last release of OpenTelemetry's semantic conventions that they are a part of
(https://github.com/open-telemetry/semantic-conventions/tree/v1.41.0/docs/gen-ai), and OpenInference
(https://arize-ai.github.io/openinference/spec/) for `openinference.span.kind`, `graph.node.*` and what goes with them.
"""

from maymust.errors import missing

try:
    import opentelemetry.metrics
    import opentelemetry.trace  # noqa: F401
except ImportError as _fault:
    raise missing("maymust.telemetry needs OpenTelemetry", "otel", _fault) from _fault

from maymust.telemetry.telemetry import Telemetry

__all__ = ["Telemetry"]

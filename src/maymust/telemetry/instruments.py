"""The metrics."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry import metrics

from maymust.models.chat_model import Usage
from maymust.telemetry import names

# As the conventions advise for tokens and seconds.
_TOKENS = [4.0**power for power in range(14)]
_SECONDS = [0.01 * 2**power for power in range(14)]
_FOLD_SECONDS = [0.000_005 * 2**power for power in range(14)]
_WAIT_SECONDS = [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0, 604_800.0]

Attributes = Mapping[str, str | bool | int | float]


class Instruments:
    """What is counted and measured. Safe to use from any number of runs."""

    def __init__(self, meter: metrics.Meter) -> None:
        self._tokens = meter.create_histogram(
            names.TOKEN_USAGE,
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._duration = meter.create_histogram(
            names.OPERATION_DURATION, unit="s", description="GenAI operation duration.", explicit_bucket_boundaries_advisory=_SECONDS
        )
        self._fold = meter.create_histogram(
            names.FOLD_DURATION,
            unit="s",
            description="What it took the rules to decide a turn.",
            explicit_bucket_boundaries_advisory=_FOLD_SECONDS,
        )
        self._refused = meter.create_counter(names.REFUSED_CALLS, unit="{call}", description="Calls that were not let through.")
        self._wait = meter.create_histogram(
            names.APPROVAL_WAIT,
            unit="s",
            description="How long a call waited for a person's decision.",
            explicit_bucket_boundaries_advisory=_WAIT_SECONDS,
        )

    def tokens(self, usage: Usage, attributes: Attributes) -> None:
        """Note what a model call used. Nothing is noted where the model does not tell."""
        if usage.total_tokens:
            self._tokens.record(usage.input_tokens, {**attributes, names.TOKEN_TYPE: "input"})
            self._tokens.record(usage.output_tokens, {**attributes, names.TOKEN_TYPE: "output"})

    def duration(self, seconds: float, attributes: Attributes) -> None:
        """Note how long a run, a model call or a tool took."""
        self._duration.record(seconds, attributes)

    def fold(self, seconds: float, attributes: Attributes) -> None:
        """Note how long it took to decide a turn."""
        self._fold.record(seconds, attributes)

    def refused(self, attributes: Attributes) -> None:
        """Note a call that was not let through."""
        self._refused.add(1, attributes)

    def waited(self, seconds: float, attributes: Attributes) -> None:
        """Note how long a decision was waited for."""
        self._wait.record(seconds, attributes)

"""Proving a policy before it runs, and keeping a run where it can still end."""

from __future__ import annotations

from maymust.verify.finding import Finding
from maymust.verify.prove import verify
from maymust.verify.report import Report
from maymust.verify.supervise import supervise

__all__ = ["Finding", "Report", "supervise", "verify"]

# SPDX-License-Identifier: Apache-2.0
"""The cost of a finding: time in which a transfer waited or bytes that it carried because of it; severity follows from it.

A cost is never a sum of all that was sent or waited. What the removal of the problem saves may be less or more (saving_ns). Bytes
are converted to time by the transfer's mean rate, so that costs in both units can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

SECONDS, BYTES = "seconds", "bytes"
#: of the transfer's time and of its bytes: a problem that costs less in both is a note, from it on a warning
NOTE_SHARE = 0.01
BY_COST = "warning from 1% of the transfer's time or bytes, else info"


class Concern(NamedTuple):
    """A transfer that a finding is about."""

    duration_ns: float  # 0 without timestamps
    wire_bytes: float

    def share(self, cost: float, unit: str | None) -> float | None:
        """Returns the share of its time or bytes, 0 to 1; None for other units, or if either is unknown."""
        total = {SECONDS: self.duration_ns / 1e9, BYTES: self.wire_bytes}.get(unit or "", 0.0)
        return min(cost / total, 1.0) if total > 0 else None

    def time_ns(self, cost: float, unit: str | None) -> float | None:
        """Returns the cost as time; None if it is none."""
        if unit == SECONDS:
            return cost * 1e9
        share = self.share(cost, unit)
        return None if share is None else share * self.duration_ns


class Saved(NamedTuple):
    """What an advice saves."""

    cost: float
    unit: str
    waited_ns: float | None = None  # time of the transfer; None: that of the cost, if it is time
    bytes: int | None = None  # None: those of the cost, if it is bytes


def larger(concern: Concern, *costs: Saved | None) -> Saved | None:
    """Returns the cost with the largest share of a transfer; the first if no share is known."""
    measured = [estimate for estimate in costs if estimate and estimate.cost > 0]
    return max(measured, key=lambda estimate: concern.share(estimate.cost, estimate.unit) or 0.0, default=None)


def severity_by_cost(severity: str, share: float | None) -> str:
    """Returns the severity of a problem that costs this share; `severity` stays if no share is known, or if it is not a
    warning."""
    return "info" if severity == "warning" and share is not None and share < NOTE_SHARE else severity


class Span(NamedTuple):
    """A time in which somebody waited."""

    start_ns: float
    end_ns: float

    @property
    def ns(self) -> float:
        """Its length."""
        return self.end_ns - self.start_ns


def union_ns(spans: Iterable[Span]) -> float | None:
    """Returns the time in which at least one of these waits went on; None if there is none."""
    total, until = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(end - max(start, until), 0.0)
        until = max(until, end)
    return total or None

# SPDX-License-Identifier: Apache-2.0
"""How values spread: what rules about series and gaps compute with.

The standard library's statistics would do, but takes longer to import than a small capture to analyze.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def mean(values: Sequence[float]) -> float:
    """0 without values."""
    return math.fsum(values) / len(values) if values else 0.0


def variation(values: Sequence[float]) -> float:
    """Standard deviation over mean; 0 without values or with a mean of 0."""
    middle = mean(values)
    return math.sqrt(mean([(value - middle) ** 2 for value in values])) / middle if middle else 0.0


def median_of(values: Sequence[float]) -> float:
    """Median of what is no NaN; NaN without any."""
    known = sorted(value for value in values if not math.isnan(value))
    half = len(known) // 2
    if not known:
        return math.nan
    return known[half] if len(known) % 2 else (known[half - 1] + known[half]) / 2

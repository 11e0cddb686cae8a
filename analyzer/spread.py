# SPDX-License-Identifier: Apache-2.0
"""How values spread: what rules about series and gaps compute with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median


def variation(values: Sequence[float]) -> float:
    """Standard deviation over mean; 0 without values or with a mean of 0."""
    mean = fmean(values) if values else 0.0
    return math.sqrt(fmean([(value - mean) ** 2 for value in values])) / mean if mean else 0.0


def median_of(values: Sequence[float]) -> float:
    """Median of what is no NaN; NaN without any."""
    known = [value for value in values if not math.isnan(value)]
    return median(known) if known else math.nan

# SPDX-License-Identifier: Apache-2.0
"""Means of the trials of each case with their confidence intervals: a line of summary.csv per case and measure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import NormalDist, fmean, stdev
from typing import Any

Row = dict[str, Any]
CASE = ("group", "session", "protocol", "header_bytes", "block_bytes", "offered_mbit_s", "streams", "settings")
MEASURES = (
    *("throughput_mbit_s", "receiving_rate_mbit_s", "percent_received", "packets_lost", "jitter_ns", "elapsed_s"),
    "throughput_with_rtt_mbit_s",
)
SUMMARY = (*CASE, "measure", "trials", "mean", "standard_deviation", "ci95_low", "ci95_high", "least", "largest")
# Two-sided 95% quantiles of Student's t for 1 to 30 degrees of freedom.
T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


def t95(freedom: int) -> float:
    """Returns the quantile; beyond the table by two terms of the expansion of Cornish and Fisher, within 0.001."""
    if freedom <= len(T95):
        return T95[freedom - 1]
    z = NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Returns the 95% confidence interval of the mean, for trials that are independent and near a normal distribution; None of
    a single trial."""
    if len(values) < 2:
        return None
    half = t95(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def summary(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields the lines; a measure that no trial has is left out."""
    cases: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        cases.setdefault(tuple(row[name] for name in CASE), []).append(row)
    for case, trials in cases.items():
        for measure in MEASURES:
            values = [float(row[measure]) for row in trials if row[measure] is not None]
            if not values:
                continue
            low, high = interval(values) or (None, None)
            yield {
                **dict(zip(CASE, case, strict=True)),
                "measure": measure,
                "trials": len(values),
                "mean": fmean(values),
                "standard_deviation": stdev(values) if len(values) > 1 else None,
                "ci95_low": low,
                "ci95_high": high,
                "least": min(values),
                "largest": max(values),
            }

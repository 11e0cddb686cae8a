# SPDX-License-Identifier: Apache-2.0
"""Trials of an experiment brought together: mean, least and greatest of what was measured the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """The trials of one case."""

    x: float
    trials: tuple[tuple[int, float], ...]  # trial, value

    @property
    def values(self) -> list[float]:
        """Of the trials."""
        return [value for _, value in self.trials]

    @property
    def mean(self) -> float:
        """Of the trials."""
        return fmean(self.values)


def alone(rows: Iterable[Row]) -> list[Row]:
    """Rows of tests with a single session."""
    listed = list(rows)
    counts: dict[str, int] = {}
    for row in listed:
        counts[row["test"]] = counts.get(row["test"], 0) + 1
    return [row for row in listed if counts[row["test"]] == 1]


def names(rows: Sequence[Row], by_rate: bool) -> Callable[[Row], str]:
    """How a row's line is called: by its group, and by its rate where a group has several."""
    rates: dict[str, set[Any]] = {}
    for row in rows:
        rates.setdefault(row["group"], set()).add(row["offered_mbit_s"])

    def name(row: Row) -> str:
        several = by_rate and len(rates[row["group"]]) > 1
        rate = f"{row['offered_mbit_s']:g} Mbit/s" if row["offered_mbit_s"] else "as fast as it goes"
        return f"{row['group']}, {rate}" if several else str(row["group"])

    return name


def points(
    rows: Sequence[Row], x: Callable[[Row], float | None], y: str, by_rate: bool = True
) -> dict[str, list[Point]]:
    """Lines by name: a point for each x, of all trials that gave a value."""
    name = names(rows, by_rate)
    found: dict[str, dict[float, list[tuple[int, float]]]] = {}
    for row in rows:
        where = x(row)
        if where is not None and row[y] is not None:
            found.setdefault(name(row), {}).setdefault(where, []).append((row["trial"], row[y]))
    return {
        line: [Point(where, tuple(trials)) for where, trials in sorted(cases.items())] for line, cases in found.items()
    }


def longest(lines: dict[str, list[Point]]) -> int:
    """How many points the longest line has."""
    return max(map(len, lines.values()), default=0)


def mix_counts(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """How many sessions of each protocol a test has."""
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        counts = found.setdefault(row["test"], {"tcp": 0, "udp": 0})
        counts[row["protocol"]] += 1
    return found


def mix_points(rows: Sequence[Row]) -> dict[str, list[Point]]:
    """Of the single session of a protocol: its rate by the number of sessions of the other."""
    counts = mix_counts(rows)
    found: dict[str, list[Point]] = {}
    for protocol, other in (("tcp", "udp"), ("udp", "tcp")):
        cases: dict[float, list[tuple[int, float]]] = {}
        for row in rows:
            if row["protocol"] != protocol or counts[row["test"]][protocol] != 1 or row["throughput_mbit_s"] is None:
                continue
            cases.setdefault(counts[row["test"]][other], []).append((row["trial"], row["throughput_mbit_s"]))
        found[protocol] = [Point(x, tuple(trials)) for x, trials in sorted(cases.items())]
    return found

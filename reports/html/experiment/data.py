# SPDX-License-Identifier: Apache-2.0
"""Results of an experiment for its report, and the trials of each case with mean and range."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

Row = dict[str, Any]

#: The six published studies (docs/experiments.md).
STUDY_NAMES = {
    "S1": "PCATTCP",
    "S2": "PCATTCP Controller",
    "S3": "File Transfer",
    "S4": "TCP/UDP Benchmark",
    "S5": "TCP and UDP sessions",
    "S6": "One UDP flow",
}


def study_title(study: str) -> str:
    """Returns the code of a study with its name."""
    return f"{study}: {STUDY_NAMES[study]}" if study in STUDY_NAMES else study


@dataclass(frozen=True)
class Outcome:
    """Plan and results of an experiment."""

    folder: str
    plan: Row
    rows: list[Row]  # of results.csv
    together: list[Row]  # rates over time of tests with several sessions
    courses: list[Row]  # of each case with one session, in the captures of its trials
    published: dict[str, list[Row]]
    failures: list[tuple[str, str]]  # test, error
    started_ns: int
    tracer: str | None  # the program that captured
    missing: int  # tests that were not run yet
    summary: list[Row]  # of summary.csv
    latency: list[Row]  # of latency.csv
    programs: list[Row]  # beside the sessions: test, label, exit_code, error
    other_flows: list[Row]  # of these programs, in the captures
    tcp_losses: list[Row]  # of tests over TCP: test, retransmissions, congestion (None: not known), certainty, sentence
    hosts: list[Row]  # facts of hosts.json


@dataclass(frozen=True)
class Point:
    """The trials of one case."""

    x: float
    trials: tuple[tuple[int, float], ...]  # trial, value

    @property
    def values(self) -> list[float]:
        """The values without the numbers of the trials."""
        return [value for _, value in self.trials]

    @property
    def median(self) -> float:
        """The median of the values."""
        return median(self.values)


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the least value that a share of all does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def alone(rows: Iterable[Row]) -> list[Row]:
    """Returns the rows of tests with a single session."""
    listed = list(rows)
    counts = Counter(row["test"] for row in listed)
    return [row for row in listed if counts[row["test"]] == 1]


def names(rows: Sequence[Row]) -> Callable[[Row], str]:
    """Returns a function that names the line of a row: its group, and its rate and options if the group has several."""
    rates: dict[str, set[Any]] = {}
    settings: dict[str, set[Any]] = {}
    for row in rows:
        rates.setdefault(row["group"], set()).add(row["offered_mbit_s"])
        settings.setdefault(row["group"], set()).add((row["settings"], row["streams"]))

    def name(row: Row) -> str:
        rate = f"{row['offered_mbit_s']:g} Mbit/s" if row["offered_mbit_s"] else "as fast as it goes"
        parts = [row["group"], *([rate] if len(rates[row["group"]]) > 1 else [])]
        if len(settings[row["group"]]) > 1:
            parts += [row["settings"] or "no options", *([f"{row['streams']} streams"] if row["streams"] > 1 else [])]
        return ", ".join(parts)

    return name


def points(
    rows: Sequence[Row], x: Callable[[Row], float], y: str, name: Callable[[Row], str] | None = None
) -> dict[str, list[Point]]:
    """Returns lines by name: a point for each x, with all trials that have a value."""
    name = name or names(rows)
    lines: dict[str, dict[float, list[tuple[int, float]]]] = {}
    for row in rows:
        if row[y] is not None:
            lines.setdefault(name(row), {}).setdefault(x(row), []).append((row["trial"], row[y]))
    return {
        line: [Point(where, tuple(trials)) for where, trials in sorted(cases.items())] for line, cases in lines.items()
    }


def longest(lines: dict[str, list[Point]]) -> int:
    """Returns the number of points of the longest line."""
    return max(map(len, lines.values()), default=0)


def mix_counts(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Returns the number of sessions per protocol of each test."""
    by_test: dict[str, dict[str, int]] = {}
    for row in rows:
        counts = by_test.setdefault(row["test"], {"tcp": 0, "udp": 0})
        counts[row["protocol"]] += 1
    return by_test


def mix_points(rows: Sequence[Row]) -> dict[str, list[Point]]:
    """Returns the rate of the single session of a protocol by the number of sessions of the other protocol."""
    counts = mix_counts(rows)
    single = [row for row in rows if counts[row["test"]][row["protocol"]] == 1]
    return points(
        sorted(single, key=lambda row: str(row["protocol"])),
        lambda row: sum(counts[row["test"]].values()) - 1,
        "throughput_mbit_s",
        lambda row: str(row["protocol"]),
    )

# SPDX-License-Identifier: Apache-2.0
"""How long packets took from one capture point to the next: distribution, and over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.compare.clock_offset import Clock

if TYPE_CHECKING:
    from wiretale.analyzer.compare.comparison import Vantage

SERIES_BINS = 500
HISTOGRAM_BINS = 120

# jitter: the mean difference to the packet before (the mean of what RFC 3550's estimator follows).
SUMMARY = """
SELECT count(d) AS packets, min(d) AS min, avg(d) AS mean, quantile_cont(d, [0.5, 0.9, 0.99]) AS q, max(d) AS max,
    stddev_pop(d) AS deviation, avg(abs(d - before)) AS jitter, count(*) FILTER (d < 0) AS negative
FROM (SELECT d, lag(d) OVER (PARTITION BY flow ORDER BY moment) AS before FROM delays)
"""
SERIES = """
SELECT min(moment) AS moment, count(*) AS packets, min(d) AS min, median(d) AS median,
    quantile_cont(d, 0.99) AS p99, max(d) AS max
FROM delays GROUP BY (moment - {start}) // {width} ORDER BY 1
"""
HISTOGRAM = """
SELECT least(greatest(floor((d - {low}) / {width}), 0), {bins} - 1)::INTEGER AS bin, count(*) AS packets FROM delays
GROUP BY 1 ORDER BY 1
"""


@dataclass
class Hop:
    """From one point to a later one, with the clocks between."""

    start: int
    end: int
    clocks: list[Clock]

    @property
    def known(self) -> bool:
        """Whether delays are absolute."""
        return all(clock.known for clock in self.clocks)

    @property
    def error_ns(self) -> float | None:
        """By how much they may be off."""
        return sum(clock.error_ns or 0 for clock in self.clocks) if self.known else None

    def offset(self) -> str:
        """SQL: the offset of the end's clock against the start's, at a packet's time at the start."""
        text, time = "0", f"t{self.start}"
        for clock in self.clocks:
            text = f"{text} + {clock.sql(time)}"
            time = f"(t{self.start} + {text})"
        return text


@dataclass
class Delay:
    """One hop, one way."""

    start: str
    end: str
    #: whether the numbers are delays, or only what exceeds the least one
    absolute: bool
    error_ns: float | None
    #: packets, min, mean, median, p90, p99, max, deviation, jitter; ns
    summary: dict[str, Any] = field(default_factory=dict)
    series: list[dict[str, Any]] = field(default_factory=list)
    #: edge of the first bin, width, counts
    histogram: tuple[float, float, list[int]] = (0.0, 0.0, [])


def hops_of(clocks: Mapping[tuple[int, int], Clock], count: int) -> list[Hop]:
    """Each hop, and the whole way; where the clocks of the hops are known, the whole way is their sum."""
    hops = [Hop(n, n + 1, [clocks[n, n + 1]]) for n in range(count - 1)]
    if count == 3:
        chain = [clocks[0, 1], clocks[1, 2]]
        hops.append(Hop(0, 2, chain if all(clock.known for clock in chain) else [clocks[0, 2]]))
    return hops


def delays_sql(vantage: Vantage, hop: Hop, heading: int) -> str:
    """SQL: flow, time and delay of each packet that both points saw; the time by the first point's clock."""
    a, b = hop.start, hop.end
    difference = f"t{b} - t{a} - ({hop.offset()})"
    moment = f"t{a if heading > 0 else b}"
    first = next((clock for clock in vantage.clocks if (clock.earlier, clock.later) == (0, a)), None)
    if heading < 0:  # sent by the end, whose clock is the start's and the offset
        moment = f"{moment} - ({hop.offset()})"
    if first and first.known:
        moment = f"{moment} - {first.sql(f't{a}')}"
    return (
        f"SELECT flow, round({moment})::BIGINT AS moment, {heading} * ({difference}) AS d FROM outcomes "
        f"WHERE heading = {heading} AND NOT copy AND w{a} AND w{b} AND t{a} IS NOT NULL AND t{b} IS NOT NULL"
    )


def measure(vantage: Vantage, hop: Hop, heading: int) -> Delay | None:
    """The delays of one hop, one way; None when no packet was seen at both ends."""
    ends = [vantage.points[number].role for number in (hop.start, hop.end)]
    if heading < 0:
        ends.reverse()
    vantage.connection.execute(f"CREATE OR REPLACE TEMP TABLE delays AS {delays_sql(vantage, hop, heading)}")
    (row,) = vantage.rows(SUMMARY)
    if not row["packets"]:
        return None
    median, p90, p99 = row.pop("q")
    summary = {
        "packets": row["packets"],
        "min": row["min"],
        "mean": row["mean"],
        "median": median,
        "p90": p90,
        "p99": p99,
        "max": row["max"],
        "deviation": row["deviation"],
        "jitter": row["jitter"],
        "negative": row["negative"],
    }
    delay = Delay(ends[0], ends[1], hop.known, hop.error_ns, summary)
    (span,) = vantage.rows("SELECT min(moment) AS start, max(moment) AS stop FROM delays")
    width = max((span["stop"] - span["start"]) // SERIES_BINS, 1)
    delay.series = vantage.rows(SERIES.format(start=span["start"], width=width))
    low, high = summary["min"], summary["p99"] * 1.2 - summary["min"] * 0.2
    step = max((high - low) / HISTOGRAM_BINS, 1.0)
    counts = [0] * HISTOGRAM_BINS
    for one in vantage.rows(HISTOGRAM.format(low=low, width=step, bins=HISTOGRAM_BINS)):
        counts[one["bin"]] = one["packets"]
    delay.histogram = (low, step, counts)
    return delay


def find_delays(vantage: Vantage, hops: list[Hop]) -> list[Delay]:
    """Every hop, both ways."""

    def each() -> Iterator[Delay | None]:
        for hop in hops:
            for heading in (1, -1):
                yield measure(vantage, hop, heading) if hop.clocks[0].stretches else None

    return [delay for delay in each() if delay]

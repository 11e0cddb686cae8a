# SPDX-License-Identifier: Apache-2.0
"""One-way delay between capture points (RFC 7679): distribution and time series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.compare.clock_offset import Clock

if TYPE_CHECKING:
    from wiretale.analyzer.compare.comparison import Comparison
    from wiretale.analyzer.compare.rows import DelayBin, DelaySummary

SERIES_BINS = 500
HISTOGRAM_BINS = 120

# jitter: the mean difference from the previous packet, which RFC 3550's estimator follows.
SUMMARY = """
SELECT count(d) AS packets, min(d) AS min, avg(d) AS mean, median(d) AS median, quantile_cont(d, 0.9) AS p90,
    quantile_cont(d, 0.99) AS p99, max(d) AS max, stddev_pop(d) AS deviation, avg(abs(d - before)) AS jitter,
    count(*) FILTER (d < 0) AS negative
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
    """The path from one point to a later one, with its clocks."""

    start: int
    end: int
    clocks: list[Clock]

    @property
    def is_known(self) -> bool:
        """Whether delays are absolute."""
        return all(clock.is_known for clock in self.clocks)

    @property
    def error_ns(self) -> float | None:
        """Error of the delays."""
        return sum(clock.error_ns or 0 for clock in self.clocks) if self.is_known else None

    def offset(self) -> str:
        """Returns SQL: the offset of the end's clock against the start's, at a packet's time at the start."""
        text, time = "0", f"t{self.start}"
        for clock in self.clocks:
            text = f"{text} + {clock.sql(time)}"
            time = f"(t{self.start} + {text})"
        return text


@dataclass
class Delay:
    """The delays of one hop in one direction.

    >>> import wiretale
    >>> comparison = wiretale.compare("sender.pcap", "receiver.pcap")
    >>> delay = comparison.delays[0]
    >>> delay.start, delay.end, delay.summary["packets"], delay.summary["median"]
    ('sender', 'receiver', 213, 0.0)
    """

    start: str
    end: str
    #: whether the delays are absolute, or relative to the least
    absolute: bool
    error_ns: float | None
    summary: DelaySummary
    series: list[DelayBin] = field(default_factory=list)
    #: all delays are within the error that both tracers recorded of their clocks
    below_error: bool = False
    #: edge of the first bin, width, counts
    histogram: tuple[float, float, list[int]] = (0.0, 0.0, [])


def hops_of(clocks: Mapping[tuple[int, int], Clock], count: int) -> list[Hop]:
    """Returns each hop and the whole path; if the clocks of all hops are known, those of the path are their sum."""
    hops = [Hop(n, n + 1, [clocks[n, n + 1]]) for n in range(count - 1)]
    if count == 3:
        chain = [clocks[0, 1], clocks[1, 2]]
        hops.append(Hop(0, 2, chain if all(clock.is_known for clock in chain) else [clocks[0, 2]]))
    return hops


def delays_sql(comparison: Comparison, hop: Hop, heading: int) -> str:
    """Returns SQL: flow, time (of the first point's clock) and delay of each packet that both points captured."""
    a, b = hop.start, hop.end
    difference = f"t{b} - t{a} - ({hop.offset()})"
    moment = f"t{a if heading > 0 else b}"
    first = next((clock for clock in comparison.clocks if (clock.earlier, clock.later) == (0, a)), None)
    if heading < 0:  # the end sent it, whose clock is the start's plus the offset
        moment = f"{moment} - ({hop.offset()})"
    if first and first.is_known:
        moment = f"{moment} - {first.sql(f't{a}')}"
    return (
        f"SELECT flow, round({moment})::BIGINT AS moment, {heading} * ({difference}) AS d FROM outcomes "
        f"WHERE heading = {heading} AND NOT copy AND w{a} AND w{b} AND t{a} IS NOT NULL AND t{b} IS NOT NULL"
    )


def measure(comparison: Comparison, hop: Hop, heading: int) -> Delay | None:
    """Returns the delays of one hop in one direction; None if no packet was captured at both ends."""
    ends = [comparison.points[number].role for number in (hop.start, hop.end)]
    if heading < 0:
        ends.reverse()
    comparison.connection.execute(f"CREATE OR REPLACE TEMP TABLE delays AS {delays_sql(comparison, hop, heading)}")
    summary: Any = comparison.rows(SUMMARY)[0]
    row: DelaySummary = summary
    if not row["packets"]:
        return None
    delay = Delay(ends[0], ends[1], hop.is_known, hop.error_ns, row)
    is_stated = any(clock.evidence == "stated" for clock in hop.clocks)
    delay.below_error = is_stated and max(abs(row["min"]), abs(row["max"])) <= (hop.error_ns or 0.0)
    (span,) = comparison.rows("SELECT min(moment) AS start, max(moment) AS stop FROM delays")
    width = max((span["stop"] - span["start"]) // SERIES_BINS, 1)
    series: list[Any] = comparison.rows(SERIES.format(start=span["start"], width=width))
    delay.series = series
    low, high = row["min"], row["p99"] * 1.2 - row["min"] * 0.2
    step = max((high - low) / HISTOGRAM_BINS, 1.0)
    counts = [0] * HISTOGRAM_BINS
    for bin_row in comparison.rows(HISTOGRAM.format(low=low, width=step, bins=HISTOGRAM_BINS)):
        counts[bin_row["bin"]] = bin_row["packets"]
    delay.histogram = (low, step, counts)
    return delay


def find_delays(comparison: Comparison, hops: list[Hop]) -> list[Delay]:
    """Returns the delays of every hop in both directions; its clocks must have an estimate."""
    usable = [hop for hop in hops if hop.clocks[0].stretches]
    delays = (measure(comparison, hop, heading) for hop in usable for heading in (1, -1))
    return [delay for delay in delays if delay]

# SPDX-License-Identifier: Apache-2.0
"""How the clock of one capture point differs from that of another: offset, skew, and steps.

What a packet seems to take from one point to the other is its delay and the offset of the clocks; on the way back it is the
delay less the offset. No delay is below that of an idle path, so the true line lies under all points (Moon, Skelly and
Towsley, Estimation and Removal of Clock Skew from Network Delay Measurements, INFOCOM 1999): that line is sought which
fits closest from below, both directions with one slope. That the least delays of both directions are equal is an
assumption (as in RFC 5905 section 8); however wrong it is, the offset is off by at most half the least round trip.
With packets of one direction only the offset stays unknown: delays are then told above the least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

Sample = tuple[int, int]  # time at the earlier point, difference of both times; ns
BINS = 1000
SKEW_MOST = 1e-3  # a crystal is within 100 ppm; a virtual machine's clock that is being slewed within 500
SEARCHES = 80
STEPS_MOST = 16
STEP_LEAST_NS = 20_000
BINS_BESIDE = 8  # that a step is judged by, on each side
BINS_LEAST = 3
RTT_CHANGE_MOST = (
    0.5  # of a step: a route that changes in one direction changes the round trip twice as much as the offset
)
HOLD_NS = 10**6

LEAST = """
SELECT arg_min(moment, d), min(d) FROM (SELECT t{a} AS moment, {sign} * (t{b} - t{a}) AS d FROM crossings
    JOIN headings USING (flow, direction) WHERE heading = {sign} AND w{a} AND w{b} AND NOT copy
        AND t{a} IS NOT NULL AND t{b} IS NOT NULL AND local <= {local})
GROUP BY (moment - {start}) // {width} ORDER BY 1
"""
SPAN = """
SELECT min(t{a}), max(t{a}), count(*) FILTER (heading = 1), count(*) FILTER (heading = -1) FROM crossings
JOIN headings USING (flow, direction)
WHERE w{a} AND w{b} AND NOT copy AND t{a} IS NOT NULL AND t{b} IS NOT NULL
"""
BOUNDARY = """
SELECT min(t{a}) FROM crossings JOIN headings USING (flow, direction)
WHERE w{a} AND w{b} AND NOT copy AND t{a} BETWEEN {start} AND {stop}
    AND abs(t{b} - t{a} - ({line})) > abs(t{b} - t{a} - ({next}))
"""


@dataclass
class Stretch:
    """A line of offsets, from one step of the clock to the next."""

    start_ns: int
    end_ns: int
    middle_ns: int
    #: of the later point's clock against the earlier one's, at the middle; with one direction it includes the least delay
    offset_ns: float
    slope: float
    least_forward_ns: float | None
    least_back_ns: float | None

    def at(self, time_ns: int) -> float:
        """The offset at a time of the earlier point's clock."""
        return self.offset_ns + self.slope * (time_ns - self.middle_ns)

    def sql(self, time: str) -> str:
        """The same in SQL."""
        return f"({self.offset_ns!r}::DOUBLE + {self.slope!r}::DOUBLE * ({time} - {self.middle_ns}))"


@dataclass
class Clock:
    """The clock of `later` against that of `earlier`, two capture points."""

    earlier: int
    later: int
    #: both, forward, back, same (told by the user) or none: what packets it is known by
    evidence: str
    forward: int = 0
    back: int = 0
    stretches: list[Stretch] = field(default_factory=list)
    #: half the least round trip between the points; None where the offset is not known
    error_ns: float | None = None
    skew_error_ppm: float | None = None

    @property
    def known(self) -> bool:
        """Whether the offset is known, so that delays are absolute."""
        return self.evidence in ("both", "same")

    @property
    def offset_ns(self) -> float | None:
        """In the middle of the first stretch."""
        return self.stretches[0].offset_ns if self.known else None

    @property
    def skew_ppm(self) -> float | None:
        """Of the longest stretch; None when nothing tells it."""
        if self.evidence == "none":
            return None
        longest = max(self.stretches, key=lambda stretch: stretch.end_ns - stretch.start_ns)
        return longest.slope * 1e6

    @property
    def least_rtt_ns(self) -> float | None:
        """The least round trip between the points, as if packets had crossed both ways at once."""
        pairs = [(s.least_forward_ns, s.least_back_ns) for s in self.stretches]
        sums = [a + b for a, b in pairs if a is not None and b is not None]
        return min(sums) if sums and self.evidence == "both" else None

    @property
    def steps(self) -> list[tuple[int, float]]:
        """Times at which the clock was set, and by how much."""
        return [
            (after.start_ns, after.at(after.start_ns) - before.at(after.start_ns))
            for before, after in pairwise(self.stretches)
        ]

    def sql(self, time: str) -> str:
        """The offset at a time of the earlier point, in SQL."""
        if not self.stretches:
            return "NULL::DOUBLE"
        cases = "".join(f"WHEN {time} < {s.end_ns} THEN {s.sql(time)} " for s in self.stretches[:-1])
        last = self.stretches[-1].sql(time)
        return f"(CASE {cases}ELSE {last} END)" if cases else last


def height(samples: Sequence[Sample], slope: float, middle_ns: int) -> float | None:
    """How high a line of that slope can lie under all samples, at the middle."""
    return min((d - slope * (t - middle_ns) for t, d in samples), default=None)


def excess(samples: Sequence[Sample], slope: float, middle_ns: int) -> float:
    """How far above the line the lowest tenth of the samples reaches: the line rests on those."""
    levels = sorted(d - slope * (t - middle_ns) for t, d in samples)
    return levels[len(levels) // 10] - levels[0]


def best_slope(score: Callable[[float], float], low: float, high: float) -> float:
    """Where a concave function is greatest."""
    for _ in range(SEARCHES):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if score(a) < score(b):
            low = a
        else:
            high = b
    return (low + high) / 2


def slope_doubt(score: Callable[[float], float], best: float, noise: float) -> float:
    """How far the slope can be off before the fit is worse by more than the noise."""
    low, high = 0.0, 2 * SKEW_MOST
    for _ in range(40):
        tried = (low + high) / 2
        if max(score(best - tried), score(best + tried)) >= score(best) - noise:
            low = tried
        else:
            high = tried
    return high


def fit(forward: Sequence[Sample], back: Sequence[Sample], start_ns: int, end_ns: int) -> tuple[Stretch, float]:
    """The line closest from below to both directions, and how far its slope may be off."""
    times = [t for t, _ in [*forward, *back]]
    middle = sum(times) // len(times)

    def score(slope: float) -> float:
        return (height(forward, slope, middle) or 0) + (height(back, -slope, middle) or 0)

    slope = best_slope(score, -SKEW_MOST, SKEW_MOST)
    a, b = height(forward, slope, middle), height(back, -slope, middle)
    above = [excess(samples, steepness, middle) for samples, steepness in ((forward, slope), (back, -slope)) if samples]
    doubt = slope_doubt(score, slope, sum(above) / 2)
    if abs(slope) <= doubt:  # nothing that the noise would not give
        slope = 0.0
        a, b = height(forward, slope, middle), height(back, -slope, middle)
    if a is not None and b is not None:
        stretch = Stretch(start_ns, end_ns, middle, (a - b) / 2, slope, (a + b) / 2, (a + b) / 2)
    else:
        stretch = Stretch(start_ns, end_ns, middle, a if a is not None else -(b or 0), slope, a and 0, b and 0)
    return stretch, doubt


Bin = tuple[int, int, int]  # time, least difference forward and back


def shared_bins(forward: Sequence[Sample], back: Sequence[Sample], start_ns: int, width_ns: int) -> list[Bin]:
    """Bins of time that both directions have packets in."""
    backward = {(t - start_ns) // width_ns: d for t, d in back}
    return [(t, d, backward[n]) for t, d in forward if (n := (t - start_ns) // width_ns) in backward]


def detrended(bins: Sequence[Bin]) -> list[float]:
    """The offset in each bin, less the skew."""
    offsets = [(f - b) / 2 for _, f, b in bins]
    times = [t for t, _, _ in bins]
    slopes = [
        (o2 - o1) / max(t2 - t1, 1) for (t1, t2), (o1, o2) in zip(pairwise(times), pairwise(offsets), strict=True)
    ]
    slope = max(-SKEW_MOST, min(SKEW_MOST, median(slopes))) if slopes else 0.0
    return [o - slope * (t - times[0]) for o, t in zip(offsets, times, strict=True)]


def find_step(bins: Sequence[Bin]) -> int | None:
    """Between which bins the clock was set, if it was: the offset jumps, the round trip does not."""
    level = detrended(bins)
    least = max(STEP_LEAST_NS, 6 * median([abs(b - a) for a, b in pairwise(level)] or [0.0]))
    found: list[tuple[float, float, int]] = []
    for n in range(BINS_LEAST, len(bins) - BINS_LEAST + 1):
        before, after = slice(max(0, n - BINS_BESIDE), n), slice(n, n + BINS_BESIDE)
        change = abs(median(level[after]) - median(level[before]))
        trips = [median(f + b for _, f, b in bins[part]) for part in (after, before)]
        if change >= least and abs(trips[0] - trips[1]) < RTT_CHANGE_MOST * change:
            found.append((change, abs(level[n] - level[n - 1]), n))
    if not found:
        return None
    # Medians see a step from some bins away; it is where the level jumps most.
    largest = max(change for change, _, _ in found)
    return max((jump, n) for change, jump, n in found if change >= 0.8 * largest)[1]


Cut = tuple[int, int]  # times between which a clock was set


def split(bins: Sequence[Bin], left: int = STEPS_MOST) -> list[Cut]:
    """All steps, each between two bins."""
    n = find_step(bins) if left > 0 and len(bins) >= 2 * BINS_LEAST else None
    if n is None:
        return []
    earlier = split(bins[:n], left - 1)
    return [*earlier, (bins[n - 1][0], bins[n][0]), *split(bins[n:], left - 1 - len(earlier))]


def within(samples: Sequence[Sample], start_ns: int, end_ns: int, width_ns: int) -> list[Sample]:
    """Samples of a stretch. A bin at its end can have packets of the next."""
    inner = [(t, d) for t, d in samples if start_ns <= t <= end_ns - width_ns]
    return inner or [(t, d) for t, d in samples if start_ns <= t <= end_ns]


def same_clock(earlier: int, later: int, first_ns: int) -> Clock:
    """Two points that share a clock."""
    line = Stretch(first_ns, first_ns, first_ns, 0.0, 0.0, None, None)
    return Clock(earlier, later, "same", stretches=[line], error_ns=0.0)


def least_of_bins(
    connection: duckdb.DuckDBPyConnection, names: dict[str, int], first: int, width: int, local: bool = False
) -> tuple[list[Sample], list[Sample]]:
    """The least difference in each bin of time, forward and back; with `local` also of packets to groups of the link."""
    forward, back = (
        connection.execute(LEAST.format(**names, sign=sign, start=first, width=width, local=local)).fetchall()
        for sign in (1, -1)
    )
    return [(int(t), int(d)) for t, d in forward], [(int(t), int(d)) for t, d in back]


def estimate_clock(connection: duckdb.DuckDBPyConnection, earlier: int, later: int, same: bool = False) -> Clock:
    """The clock of a later point against an earlier one, from the packets in `crossings`."""
    names = {"a": earlier, "b": later}
    first, last, forward_count, back_count = connection.execute(SPAN.format(**names)).fetchone() or (None,) * 4
    if same:
        return same_clock(earlier, later, first or 0)
    clock = Clock(earlier, later, "none", forward_count or 0, back_count or 0)
    if first is None or last is None:
        return clock
    width = max((last - first) // BINS, 1)
    forward, back = least_of_bins(connection, names, first, width)
    if not forward and not back:  # reports to groups may pass another way than packets that are forwarded
        forward, back = least_of_bins(connection, names, first, width, local=True)
    clock.evidence = "both" if forward and back else "forward" if forward else "back"
    clock.stretches, clock.skew_error_ppm = fit_all(connection, names, forward, back, (first, last, width))
    if clock.least_rtt_ns is not None:
        clock.error_ns = max(clock.least_rtt_ns, 0) / 2
    return clock


def boundary(connection: duckdb.DuckDBPyConnection, names: dict[str, int], before: Stretch, after: Stretch) -> int:
    """When the clock was set: from the first packet on that lies nearer to the line behind."""
    time = "t{a}".format(**names)
    found = connection.execute(
        BOUNDARY.format(**names, start=before.end_ns, stop=after.start_ns, line=before.sql(time), next=after.sql(time))
    ).fetchone()
    return int(found[0]) if found and found[0] is not None else after.start_ns


def fit_all(
    connection: duckdb.DuckDBPyConnection,
    names: dict[str, int],
    forward: Sequence[Sample],
    back: Sequence[Sample],
    span: tuple[int, int, int],
) -> tuple[list[Stretch], float]:
    """A line for each stretch between steps."""
    first, last, width = span
    cuts = split(shared_bins(forward, back, first, width))
    starts, ends = [first, *(after for _, after in cuts)], [*(before for before, _ in cuts), last + 1]
    lines, doubts = [], []
    for start, end in zip(starts, ends, strict=True):
        margin = width if cuts else 0
        forth, behind = within(forward, start, end, margin), within(back, start, end, margin)
        if forth or behind:
            line, doubt = fit(forth, behind, start, end)
            lines.append(line)
            doubts.append(doubt * 1e6)
    for before, after in pairwise(lines):
        before.end_ns = after.start_ns = boundary(connection, names, before, after)
    return lines, min(doubts)

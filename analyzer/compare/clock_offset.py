# SPDX-License-Identifier: Apache-2.0
"""Estimates the clock of one capture point against another: offset, skew and steps.

The time difference of a packet at two points is its delay plus the clock offset, and minus the offset in the opposite
direction. No delay is less than that of the idle path, so the true line is below all points (Moon, Skelly and Towsley,
Estimation and Removal of Clock Skew from Network Delay Measurements, INFOCOM 1999). wiretale fits the closest line from
below with one slope for both directions. It assumes equal least delays in both directions (as RFC 5905 section 8); if that
is wrong, the offset is wrong by at most half the least RTT. If packets of one direction only are captured, the offset
stays unknown, and delays are relative to the least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

Sample = tuple[int, int]  # time at the earlier point, difference of both times; ns
BINS = 1000
SKEW_MAX = 1e-3  # a crystal is within 100 ppm; a slewed clock of a virtual machine within 500
SEARCHES = 80
STEPS_MAX = 16
STEP_MIN_NS = 20_000
BINS_BESIDE = 8  # on each side of a step
BINS_MIN = 3
# Of a step: a route that changes in one direction changes the round trip twice as much as the offset.
RTT_CHANGE_MAX = 0.5

LEAST = """
SELECT arg_min(moment, (d, moment)), min(d) FROM (SELECT t{a} AS moment, {sign} * (t{b} - t{a}) AS d FROM crossings
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
    """A line of offsets between two steps of the clock."""

    start_ns: int
    end_ns: int
    middle_ns: int
    #: later point's clock minus the earlier one's, at the middle; includes the least delay if one direction is known
    offset_ns: float
    slope: float
    least_forward_ns: float | None
    least_back_ns: float | None

    def at(self, time_ns: int) -> float:
        """Returns the offset at a time of the earlier point's clock."""
        return self.offset_ns + self.slope * (time_ns - self.middle_ns)

    def sql(self, time: str) -> str:
        """Returns the offset as SQL."""
        return f"({self.offset_ns!r}::DOUBLE + {self.slope!r}::DOUBLE * ({time} - {self.middle_ns}))"


@dataclass
class Clock:
    """The clock of point `later` against point `earlier`.

    >>> import wiretale
    >>> comparison = wiretale.compare("sender.pcap", "receiver.pcap")
    >>> clock = comparison.clocks[0]
    >>> clock.evidence, clock.is_known, clock.offset_ns
    ('both', True, 0.0)
    """

    earlier: int
    later: int
    #: directions of the packets that it is estimated from: both, forward, back or none; same if the user says so; stated if both
    #: tracers recorded the greatest error of their clocks, and packets do not show the offset as closely; impossible if no clock
    #: gives a round trip that is not negative
    evidence: str
    forward: int = 0
    back: int = 0
    stretches: list[Stretch] = field(default_factory=list)
    #: half the least RTT between the points; None if the offset is unknown
    error_ns: float | None = None
    skew_error_ppm: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether the offset is known and delays are absolute."""
        return self.evidence in ("both", "same", "stated")

    @property
    def offset_ns(self) -> float | None:
        """Offset in the middle of the first stretch."""
        return self.stretches[0].offset_ns if self.is_known else None

    @property
    def skew_ppm(self) -> float | None:
        """Skew of the longest stretch; None if unknown."""
        if not self.stretches:
            return None
        longest = max(self.stretches, key=lambda stretch: stretch.end_ns - stretch.start_ns)
        return longest.slope * 1e6

    @property
    def least_rtt_ns(self) -> float | None:
        """Sum of the least delays of both directions."""
        pairs = [(s.least_forward_ns, s.least_back_ns) for s in self.stretches]
        sums = [a + b for a, b in pairs if a is not None and b is not None]
        return min(sums) if sums and self.evidence == "both" else None

    @property
    def steps(self) -> list[tuple[int, float]]:
        """Times and sizes of the clock's steps."""
        return [
            (after.start_ns, after.at(after.start_ns) - before.at(after.start_ns))
            for before, after in pairwise(self.stretches)
        ]

    def sql(self, time: str) -> str:
        """Returns SQL: the offset at a time of the earlier point."""
        if not self.stretches:
            return "NULL::DOUBLE"
        cases = "".join(f"WHEN {time} < {s.end_ns} THEN {s.sql(time)} " for s in self.stretches[:-1])
        last = self.stretches[-1].sql(time)
        return f"(CASE {cases}ELSE {last} END)" if cases else last


def height(samples: Sequence[Sample], slope: float, middle_ns: int) -> float | None:
    """Returns the highest line of that slope below all samples, at the middle."""
    return min((d - slope * (t - middle_ns) for t, d in samples), default=None)


def excess(samples: Sequence[Sample], slope: float, middle_ns: int) -> float:
    """Returns the distance of the lowest decile of samples from that line."""
    levels = sorted(d - slope * (t - middle_ns) for t, d in samples)
    return levels[len(levels) // 10] - levels[0]


def best_slope(score: Callable[[float], float], low: float, high: float) -> float:
    """Returns the maximum of a function, which must be concave (ternary search)."""
    for _ in range(SEARCHES):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if score(a) < score(b):
            low = a
        else:
            high = b
    return (low + high) / 2


def slope_doubt(score: Callable[[float], float], best: float, noise: float) -> float:
    """Returns the error of the slope at which the fit is worse by more than the noise."""
    low, high = 0.0, 2 * SKEW_MAX
    for _ in range(40):
        tried = (low + high) / 2
        if max(score(best - tried), score(best + tried)) >= score(best) - noise:
            low = tried
        else:
            high = tried
    return high


def fit(forward: Sequence[Sample], back: Sequence[Sample], start_ns: int, end_ns: int) -> tuple[Stretch, float]:
    """Returns the closest line below both directions, and the error of its slope."""
    times = [t for t, _ in [*forward, *back]]
    middle = sum(times) // len(times)

    def score(slope: float) -> float:
        return (height(forward, slope, middle) or 0) + (height(back, -slope, middle) or 0)

    slope = best_slope(score, -SKEW_MAX, SKEW_MAX)
    a, b = height(forward, slope, middle), height(back, -slope, middle)
    above = [excess(samples, steepness, middle) for samples, steepness in ((forward, slope), (back, -slope)) if samples]
    doubt = slope_doubt(score, slope, sum(above) / 2)
    if abs(slope) <= doubt:  # no more than noise
        slope = 0.0
        a, b = height(forward, slope, middle), height(back, -slope, middle)
    if a is not None and b is not None:
        stretch = Stretch(start_ns, end_ns, middle, (a - b) / 2, slope, (a + b) / 2, (a + b) / 2)
    else:
        stretch = Stretch(start_ns, end_ns, middle, a if a is not None else -(b or 0), slope, a and 0, b and 0)
    return stretch, doubt


Bin = tuple[int, int, int]  # time, least difference forward and back


def shared_bins(forward: Sequence[Sample], back: Sequence[Sample], start_ns: int, width_ns: int) -> list[Bin]:
    """Returns the time bins with packets of both directions."""
    backward = {(t - start_ns) // width_ns: d for t, d in back}
    return [(t, d, backward[n]) for t, d in forward if (n := (t - start_ns) // width_ns) in backward]


def detrended(bins: Sequence[Bin]) -> list[float]:
    """Returns the offset in each bin without the skew."""
    offsets = [(f - b) / 2 for _, f, b in bins]
    times = [t for t, _, _ in bins]
    steps = zip(pairwise(times), pairwise(offsets), strict=True)
    slopes = [(o2 - o1) / max(t2 - t1, 1) for (t1, t2), (o1, o2) in steps]
    slope = max(-SKEW_MAX, min(SKEW_MAX, median(slopes))) if slopes else 0.0
    return [o - slope * (t - times[0]) for o, t in zip(offsets, times, strict=True)]


def find_step(bins: Sequence[Bin]) -> int | None:
    """Returns the bin at which the clock was set, if it was: the offset jumps, the RTT does not."""
    level = detrended(bins)
    least = max(STEP_MIN_NS, 6 * median([abs(b - a) for a, b in pairwise(level)] or [0.0]))
    steps: list[tuple[float, float, int]] = []
    for n in range(BINS_MIN, len(bins) - BINS_MIN + 1):
        before, after = slice(max(0, n - BINS_BESIDE), n), slice(n, n + BINS_BESIDE)
        change = abs(median(level[after]) - median(level[before]))
        trips = [median(f + b for _, f, b in bins[part]) for part in (after, before)]
        if change >= least and abs(trips[0] - trips[1]) < RTT_CHANGE_MAX * change:
            steps.append((change, abs(level[n] - level[n - 1]), n))
    if not steps:
        return None
    # Medians show a step some bins around it; the step is at the greatest jump.
    largest = max(change for change, _, _ in steps)
    return max((jump, n) for change, jump, n in steps if change >= 0.8 * largest)[1]


Cut = tuple[int, int]  # times between which the clock was set


def split(bins: Sequence[Bin], left: int = STEPS_MAX) -> list[Cut]:
    """Returns all steps, each between two bins."""
    n = find_step(bins) if left > 0 and len(bins) >= 2 * BINS_MIN else None
    if n is None:
        return []
    earlier = split(bins[:n], left - 1)
    return [*earlier, (bins[n - 1][0], bins[n][0]), *split(bins[n:], left - 1 - len(earlier))]


def negative_cut(forward: Sequence[Sample], back: Sequence[Sample]) -> list[Cut]:
    """Returns where the clock was set if the least round trip over all packets is negative: no offset explains both directions.

    An offset is at most the least difference forward, and at least the negated one back. The room between them is a round trip
    before and after the step, and less if packets of one side are counted to the other: the step is where the lesser room is
    greatest.
    """
    if not forward or not back or min(d for _, d in forward) + min(d for _, d in back) >= 0:
        return []
    samples = sorted([(t, 0, d) for t, d in forward] + [(t, 1, d) for t, d in back])
    rooms = []
    for ordered in (samples, samples[::-1]):
        least, room = [math.inf, math.inf], []
        for _, side, d in ordered:
            least[side] = min(least[side], d)
            room.append(sum(least))
        rooms.append(room)
    before, after = rooms[0], rooms[1][::-1]
    best, n = max((min(before[n - 1], after[n]), n) for n in range(1, len(samples)))
    return [(samples[n - 1][0], samples[n][0])] if 0 <= best < math.inf else []


def within(samples: Sequence[Sample], start_ns: int, end_ns: int, width_ns: int) -> list[Sample]:
    """Returns the samples of a stretch, if possible without the last bin, which may include packets of the next."""
    inner = [(t, d) for t, d in samples if start_ns <= t <= end_ns - width_ns]
    return inner or [(t, d) for t, d in samples if start_ns <= t <= end_ns]


def same_clock(earlier: int, later: int, first_ns: int) -> Clock:
    """Returns the clock of two points that share one."""
    line = Stretch(first_ns, first_ns, first_ns, 0.0, 0.0, None, None)
    return Clock(earlier, later, "same", stretches=[line], error_ns=0.0)


def state_clock(clock: Clock, errors_ns: Sequence[int | None]) -> None:
    """Makes the offset 0, to the sum of the errors that both tracers recorded, if packets do not show it as closely: those of one
    direction cannot tell it from their delay, those of both only to half a round trip. Where both contradict each other, the
    records are wrong, because packets cannot be."""
    known_ns = [error for error in errors_ns if error is not None]
    if len(known_ns) < len(errors_ns) or len(clock.stretches) != 1:
        return
    (line,), stated_ns = clock.stretches, float(sum(known_ns))
    if clock.evidence == "both":
        farthest_ns = max(abs(line.at(line.start_ns)), abs(line.at(line.end_ns)))
        if clock.error_ns is None or not farthest_ns - clock.error_ns <= stated_ns < clock.error_ns:
            return
    elif clock.evidence not in ("forward", "back"):
        return
    start_ns = line.start_ns
    clock.evidence, clock.error_ns, clock.skew_error_ppm = "stated", stated_ns, None
    clock.stretches = [Stretch(start_ns, start_ns, start_ns, 0.0, 0.0, None, None)]


def least_of_bins(
    connection: duckdb.DuckDBPyConnection, names: dict[str, int], first: int, width: int, local: bool = False
) -> tuple[list[Sample], list[Sample]]:
    """Returns the least difference in each time bin, forward and back; `local` includes link-local multicast."""
    forward, back = (
        connection.execute(LEAST.format(**names, sign=sign, start=first, width=width, local=local)).fetchall()
        for sign in (1, -1)
    )
    return [(int(t), int(d)) for t, d in forward], [(int(t), int(d)) for t, d in back]


def refuse_negative(clock: Clock) -> None:
    """Makes a clock unknown whose least round trip is negative: it was set more than once, or ran unevenly."""
    if (clock.least_rtt_ns or 0) < 0:
        clock.evidence, clock.stretches, clock.error_ns, clock.skew_error_ppm = "impossible", [], None, None


def estimate_clock(connection: duckdb.DuckDBPyConnection, earlier: int, later: int, same: bool = False) -> Clock:
    """Returns the clock of a later point against an earlier one, estimated from `crossings`."""
    names = {"a": earlier, "b": later}
    first, last, forward_count, back_count = connection.execute(SPAN.format(**names)).fetchone() or (None,) * 4
    if same:
        return same_clock(earlier, later, first or 0)
    clock = Clock(earlier, later, "none", forward_count or 0, back_count or 0)
    if first is None or last is None:
        return clock
    width = max((last - first) // BINS, 1)
    forward, back = least_of_bins(connection, names, first, width)
    if not forward and not back:  # link-local multicast may take another path than forwarded packets
        forward, back = least_of_bins(connection, names, first, width, local=True)
    clock.evidence = "both" if forward and back else "forward" if forward else "back"
    clock.stretches, clock.skew_error_ppm = fit_all(connection, names, forward, back, (first, last, width))
    if clock.least_rtt_ns is not None:
        clock.error_ns = max(clock.least_rtt_ns, 0) / 2
    refuse_negative(clock)
    return clock


def boundary(connection: duckdb.DuckDBPyConnection, names: dict[str, int], before: Stretch, after: Stretch) -> int:
    """Returns the time of a step: that of the first packet nearer to the next line."""
    time = "t{a}".format(**names)
    first_packet = connection.execute(
        BOUNDARY.format(**names, start=before.end_ns, stop=after.start_ns, line=before.sql(time), next=after.sql(time))
    ).fetchone()
    return int(first_packet[0]) if first_packet and first_packet[0] is not None else after.start_ns


def fit_all(
    connection: duckdb.DuckDBPyConnection,
    names: dict[str, int],
    forward: Sequence[Sample],
    back: Sequence[Sample],
    span: tuple[int, int, int],
) -> tuple[list[Stretch], float]:
    """Returns a line for each stretch between steps, and the least error of their slopes in ppm."""
    first, last, width = span
    cuts = split(shared_bins(forward, back, first, width)) or negative_cut(forward, back)
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

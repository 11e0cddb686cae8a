# SPDX-License-Identifier: Apache-2.0
"""The timeline of a capture, in bins of one width: rates of all flows and of each, losses, packets that the capture missed."""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import chain
from operator import sub
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.transfers import RETRANSMISSIONS
from wiretale.reports.html.flow_columns import FLOWS_MOST, REAL_BYTES
from wiretale.reports.html.packing import Column, encoded, planes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.trace import Trace

BINS_LEAST, BINS_MOST = 2, 360
BIN_LEAST_NS = 1_000_000  # of the series table
STEPS = (1, 2, 5)
SECOND_NS = 1_000_000_000
PLACES = ("upstream", "downstream")  # of losses
PAUSE_LEAST, PAUSE_LEAST_NS = 0.1, 60 * SECOND_NS  # of the capture, and in ns: a longer pause is cut out of the axis
CUT_LEAST, CUTS_MOST = 0.5, 6  # of the capture, below which nothing is cut
BINS_CUT_MOST = 100_000  # with those in pauses
SUMS_MOST = 400_000  # bins of flows in the page, 3 to 5 bytes each; if there are more, the bins are wider
SUMS_EXACT = 100_000  # of them with five digits, else two
WIDER = (1, 2, 5, 10, 20, 50, 100)  # bins of the timeline that one of a flow covers
COUNTS_MOST = 200_000  # bins of flows with a loss, or with a segment that the capture missed
ROUNDED = (1 << 15, 0xFFFF0000)  # half of the bits of a float32 that are dropped, and those kept

Counts = Counter[tuple[int, int]]  # by flow and bin


def bin_width(span_ns: int, most: int = BINS_MOST) -> int:
    """Returns the least width of 1, 2 or 5 times a power of ten that needs at most so many bins."""
    power = BIN_LEAST_NS
    while True:
        for step in STEPS:
            if span_ns <= most * step * power:
                return step * power
        power *= 10


def span_of(trace: Trace) -> tuple[int, int] | None:
    """Returns first and last time of a packet; None without times."""
    firsts, lasts = ([ns for ns in trace.interfaces.column(name) if ns is not None] for name in ("first_ns", "last_ns"))
    return (min(firsts), max(lasts)) if firsts else None


def event_counts(trace: Trace, start_ns: int, width_ns: int, bins: int) -> tuple[Counts, Counts]:
    """Returns the losses that are not proven spurious, at the time of their retransmissions or of the next numbered packet, and
    the segments that were acknowledged but not captured."""
    words = trace.transfers.words
    retransmissions, places = {words[name] for name in RETRANSMISSIONS}, {words[name] for name in PLACES}
    block_lost, unseen = words["block_lost"], words["acked_unseen_segment"]
    lost: Counts = Counter()
    missed: Counts = Counter()
    packed = trace.events._packed_columns([(name, "B", 0, 1) for name in ("kind", "place", "spurious")])
    times = array("d", trace.events._packed("time_ns", "d"))
    flows = array("I", trace.events._packed("flow", "I"))
    for kind, place, spurious, time_ns, flow in zip(*packed, times, flows, strict=True):
        is_lost = kind == block_lost or (kind in retransmissions and place in places and spurious != 1)
        number = (time_ns - start_ns) / width_ns
        if (is_lost or kind == unseen) and 0 <= number < bins:
            (lost if is_lost else missed)[flow, int(number)] += 1
    return lost, missed


def sums_of_counts(counts: Counts, bins: int, legs: frozenset[int]) -> list[int]:
    """Returns the counts in each bin, without those of flows of which another leg is judged."""
    sums = [0] * bins
    for (flow, number), count in counts.items():
        sums[number] += 0 if flow in legs else count
    return sums


def sums_of_judged(trace: Trace, start_ns: int, width_ns: int, bins: int) -> list[array[float]]:
    """Returns the bytes and the losses in each bin, without those of flows of which another leg is judged."""
    names, legs = ["bytes", "lost"], sorted(trace.transfers.legs)
    sums = trace.series._time_sums(names, start_ns, width_ns, bins)
    if not legs:
        return sums
    fields = [(name, "d", start_ns if name == "start_ns" else 0, 1) for name in ("start_ns", "width_ns", *names)]
    starts, widths, *columns = (array("d", data) for data in trace.series._packed_columns(fields, legs))
    for total, column in zip(sums, columns, strict=True):
        for start, width, value in zip(starts, widths, column, strict=True):
            first, end = start / width_ns, (start + width) / width_ns
            for number in range(max(int(first), 0), min(int(end) + 1, bins)):
                part = max(min(end, number + 1) - max(first, number), 0.0) * width_ns / width
                total[number] = max(total[number] - value * part, 0.0)
    return sums


def steps_of(numbers: array[int]) -> Column:
    """Returns the differences of consecutive numbers, which are small; those below zero begin again at 2^32."""
    steps = map(sub, numbers, chain((0,), numbers))
    return planes("I", array("I", (step & 0xFFFFFFFF for step in steps)).tobytes())


def packed_sums(sums: array[float]) -> Column:
    """Returns sums as float32, with two digits if there are many."""
    reals = array("f", sums)
    if len(reals) <= SUMS_EXACT:
        return planes("f", reals.tobytes(), REAL_BYTES)
    half, mask = ROUNDED
    return planes("f", array("I", [(bits + half) & mask for bits in array("I", reals.tobytes())]).tobytes(), 2)


def packed_counts(counts: Counts) -> dict[str, Column]:
    """Returns flow, bin and count of each."""
    ordered = sorted(counts.items())
    return {
        "flows": steps_of(array("I", [flow for (flow, _), _ in ordered])),
        "bins": steps_of(array("I", [number for (_, number), _ in ordered])),
        "counts": planes("I", array("I", [count for _, count in ordered]).tobytes()),
    }


def sums_by_flow(trace: Trace, start_ns: int, width_ns: int, bins: int) -> dict[str, Any] | None:
    """Returns bytes and packets of each flow in each bin in which it has any, and how many bins of the timeline such a bin
    covers; None if the page has not all flows, or if even the widest bins are too many."""
    if len(trace.flows) > FLOWS_MOST:
        return None
    for wider in WIDER:
        by_bin = trace.series._flow_sums(["bytes", "packets"], start_ns, wider * width_ns, -(-bins // wider), SUMS_MOST)
        if by_bin is None:
            continue
        flows, numbers, (sizes, packets) = by_bin
        return {
            "wider": wider,
            "flows": steps_of(flows),
            "bins": steps_of(numbers),
            "bytes": packed_sums(sizes),
            "packets": packed_sums(packets),
        }
    return None


def pauses_in(sizes: Sequence[float], width_ns: int) -> list[tuple[int, int]]:
    """Returns the long pauses, as first bin and the one behind the last; none if they are less than half of the bins."""
    least = max(PAUSE_LEAST * len(sizes), PAUSE_LEAST_NS / width_ns)
    long_pauses, begin = [], 0
    for number, size in enumerate(chain(sizes, (1,))):
        if size:
            long_pauses += [(begin, number)] if number - begin >= least else []
            begin = number + 1
    long_pauses = sorted(sorted(long_pauses, key=lambda pause: pause[0] - pause[1])[:CUTS_MOST])
    return long_pauses if sum(last - first for first, last in long_pauses) >= CUT_LEAST * len(sizes) else []


def shown_width(trace: Trace, span: tuple[int, int]) -> int:
    """Returns the width of bins: of the capture without its long pauses, if these are most of it. What is left of it is known as
    exactly as its bins are narrow, so that they are narrowed until they fit."""
    span_ns = span[1] - span[0] + 1
    width_ns = bin_width(span_ns)
    while span_ns >= PAUSE_LEAST_NS:
        start_ns = span[0] // width_ns * width_ns
        bins = (span[1] - start_ns) // width_ns + 1
        (sizes,) = trace.series._time_sums(["bytes"], start_ns, width_ns, bins)
        paused = sum(last - first for first, last in pauses_in(sizes, width_ns))
        narrower_ns = max(bin_width((bins - paused) * width_ns), bin_width(span_ns, BINS_CUT_MOST))
        if not paused or narrower_ns >= width_ns:
            break
        width_ns = narrower_ns
    return width_ns


def timeline(trace: Trace, base_ns: int) -> dict[str, Any] | None:
    """Returns the bins, with times in seconds since `base_ns`; None if no packet of a flow has a time, or if there is one bin."""
    span = span_of(trace)
    if span is None or not len(trace.series):
        return None
    width_ns = shown_width(trace, span)
    start_ns = span[0] // width_ns * width_ns
    bins = (span[1] - start_ns) // width_ns + 1
    if bins < BINS_LEAST:
        return None
    sizes, judged_lost = sums_of_judged(trace, start_ns, width_ns, bins)
    full = any(row["code"] == "events-dropped" for row in trace.findings.rows())
    by_flow, legs = event_counts(trace, start_ns, width_ns, bins), trace.transfers.legs
    lost, missed = (sums_of_counts(counts, bins, legs) for counts in by_flow)
    few = not full and all(len(counts) <= COUNTS_MOST for counts in by_flow)
    if full:  # the series count every loss, but also those that a later packet proved spurious
        lost = [round(count) for count in judged_lost]
    return {
        "start": (start_ns - base_ns) / SECOND_NS,
        "first": (span[0] - base_ns) / SECOND_NS,
        "last": (span[1] - base_ns) / SECOND_NS,
        "width": width_ns / SECOND_NS,
        "pauses": pauses_in(sizes, width_ns),
        "rates": encoded(array("f", [8 * size * SECOND_NS / width_ns for size in sizes]).tobytes()),
        "lost": encoded(array("I", lost).tobytes()),
        "missed": encoded(array("I", missed).tobytes()),
        "legs": sorted(legs),
        "by_flow": sums_by_flow(trace, start_ns, width_ns, bins),
        "counts_by_flow": {
            name: packed_counts(counts) for name, counts in zip(("lost", "missed"), by_flow, strict=True)
        }
        if few
        else None,
    }

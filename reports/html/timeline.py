# SPDX-License-Identifier: Apache-2.0
"""The timeline of a capture: throughput of all flows, losses and packets that the capture missed, in bins of one width."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.transfers import RETRANSMISSIONS
from wiretale.reports.html.packing import encoded

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

BINS_LEAST, BINS_MOST = 2, 360
BIN_LEAST_NS = 1_000_000  # of the series table
STEPS = (1, 2, 5)
SECOND_NS = 1_000_000_000
PLACES = ("upstream", "downstream")  # of losses


def bin_width(span_ns: int) -> int:
    """Returns the least width of 1, 2 or 5 times a power of ten that needs at most BINS_MOST bins."""
    power = BIN_LEAST_NS
    while True:
        for step in STEPS:
            if span_ns <= BINS_MOST * step * power:
                return step * power
        power *= 10


def span_of(trace: Trace) -> tuple[int, int] | None:
    """Returns first and last time of a packet; None without times."""
    firsts, lasts = ([ns for ns in trace.interfaces.column(name) if ns is not None] for name in ("first_ns", "last_ns"))
    return (min(firsts), max(lasts)) if firsts else None


def event_counts(trace: Trace, start_ns: int, width_ns: int, bins: int) -> tuple[list[int], list[int]]:
    """Returns for each bin the losses that are not proven spurious, at the time of their retransmissions or of the next numbered
    packet, and the segments that were acknowledged but not captured."""
    words = trace.transfers.words
    retransmissions, places = {words[name] for name in RETRANSMISSIONS}, {words[name] for name in PLACES}
    block_lost, unseen = words["block_lost"], words["acked_unseen_segment"]
    lost, missed = [0] * bins, [0] * bins
    packed = trace.events._packed_columns([(name, "B", 0, 1) for name in ("kind", "place", "spurious")])
    times = array("d", trace.events._packed("time_ns", "d"))
    flows, legs = array("I", trace.events._packed("flow", "I")), trace.transfers.legs
    for kind, place, spurious, time_ns, flow in zip(*packed, times, flows, strict=True):
        if flow in legs:
            continue
        is_lost = kind == block_lost or (kind in retransmissions and place in places and spurious != 1)
        number = (time_ns - start_ns) / width_ns
        if (is_lost or kind == unseen) and 0 <= number < bins:
            (lost if is_lost else missed)[int(number)] += 1
    return lost, missed


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


def timeline(trace: Trace, base_ns: int) -> dict[str, Any] | None:
    """Returns the bins, with times in seconds since `base_ns`; None if no packet of a flow has a time, or if there is one bin."""
    span = span_of(trace)
    if span is None or not len(trace.series):
        return None
    width_ns = bin_width(span[1] - span[0] + 1)
    start_ns = span[0] // width_ns * width_ns
    bins = (span[1] - start_ns) // width_ns + 1
    if bins < BINS_LEAST:
        return None
    sizes, judged_lost = sums_of_judged(trace, start_ns, width_ns, bins)
    full = any(row["code"] == "events-dropped" for row in trace.findings.rows())
    lost, missed = event_counts(trace, start_ns, width_ns, bins)
    if full:  # the series count every loss, but also those that a later packet proved spurious
        lost = [round(count) for count in judged_lost]
    return {
        "start": (start_ns - base_ns) / SECOND_NS,
        "first": (span[0] - base_ns) / SECOND_NS,
        "last": (span[1] - base_ns) / SECOND_NS,
        "width": width_ns / SECOND_NS,
        "rates": encoded(array("f", [8 * size * SECOND_NS / width_ns for size in sizes]).tobytes()),
        "lost": encoded(array("I", lost).tobytes()),
        "missed": encoded(array("I", missed).tobytes()),
    }

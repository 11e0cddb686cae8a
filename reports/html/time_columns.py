# SPDX-License-Identifier: Apache-2.0
"""Flows whose packets do not fit into the page, as columns of time (analyzer/core/export/export.h), for their figures."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wiretale.reports.html.packing import encoded, planes

if TYPE_CHECKING:
    from wiretale.analyzer.trace import ColumnFlow, Trace

WIDE, WIDE_FLOWS = 1_340, 50  # columns of the first flows: the width of the figure at 1,440 px
NARROW = 128  # of the others
COLUMNS_MOST = 130_000  # with packets, about 9 bytes each
TCP, PAYLOAD, PACKETS = 0, 1, 2  # what the first panel shows


def fitting_columns(flows: Sequence[int], sizes: Sequence[int]) -> dict[int, int]:
    """Returns the number of columns of each flow that fits, if COLUMNS_MOST is their sum."""
    left, counts = COLUMNS_MOST, dict[int, int]()
    for flow in flows:
        columns = WIDE if len(counts) < WIDE_FLOWS else NARROW
        filled = min(columns, sizes[flow])
        if filled <= left:
            counts[flow] = columns
            left -= filled
    return counts


def column_flows(trace: Trace, flows: Sequence[int], sizes: Sequence[int]) -> list[ColumnFlow]:
    """Returns those of the flows that are drawn by columns of time, in order of their numbers."""
    counts = fitting_columns(flows, sizes)
    numbers = sorted(counts)
    payload = array("d", trace.directions._packed_columns([("payload_bytes", "d", 0, 1)], numbers)[0])
    drawn = []
    for place, row in enumerate(trace.flows._rows_at(numbers)):
        sent, returned = payload[2 * place], payload[2 * place + 1]
        first_ns, last_ns, columns = row["first_ns"], row["last_ns"], counts[row["flow"]]
        if first_ns is None or last_ns is None:
            continue
        kind = TCP if row["protocol"] == "tcp" else PAYLOAD if sent > 0 or returned > 0 else PACKETS
        drawn.append((row["flow"], first_ns, (last_ns - first_ns) // columns + 1, columns, int(returned > sent), kind))
    return drawn


def packed_columns(drawn: Sequence[ColumnFlow], streams: dict[str, bytes], base_ns: int) -> dict[str, Any]:
    """Returns the flows and their columns for the page; times are in ns."""
    flows, begins, widths, _, mains, _ = zip(*drawn, strict=True)
    return {
        "flows": planes("I", array("I", flows).tobytes()),
        "begins": planes("d", array("d", [begin - base_ns for begin in begins]).tobytes()),
        "widths": planes("d", array("d", widths).tobytes()),
        "mains": planes("B", bytes(mains)),
        "streams": {name: encoded(data) for name, data in streams.items() if data},
    }

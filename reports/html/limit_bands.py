# SPDX-License-Identifier: Apache-2.0
"""The throughput limits of flows over time, and their turns, for the bands of the page."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.transfers import LIMITS
from wiretale.reports.html.packing import packed_table, planes

if TYPE_CHECKING:
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

SPANS_MOST = 40_000  # in the page, about 5 bytes each
TURNS_MOST = 5_000
US_NS = 1_000
#: kinds of limit_spans, their class in page.css, and their words; parts of the idle time follow it
BANDS = {
    "idle": ("idle", LIMITS["limit_idle_ns"]),
    "waiting": ("idle waiting", "waiting for the other end"),
    "send_buffer": ("idle buffer", "the send buffer"),
    **{name: (name.split("_")[0], LIMITS[f"limit_{name}_ns"]) for name in ("delayed_ack", "window", "recovery")},
    **{name: (name.split("_")[0], LIMITS[f"limit_{name}_ns"]) for name in ("timeout", "slow_start", "network")},
}
TURN_COLUMNS = (
    *(("flow", "I", 1), ("direction", "B", 1), ("start_ns", "d", 1_000_000)),
    *((name, "f", 1_000_000) for name in ("request_ns", "network_ns", "server_ns", "pause_ns")),
)


def span_fields(base_ns: int) -> list[tuple[str, str, int, int]]:
    """Returns the columns of packed_spans(), each with its array code, and what is subtracted and divided."""
    fields = [("flow", "I", 0, 1), ("direction", "B", 0, 1), ("kind", "B", 0, 1), ("merged", "B", 0, 1)]
    return fields + [(name, "d", base_ns, US_NS) for name in ("start_ns", "end_ns")]


def spans_of_flows(spans: Table, flows: Sequence[int], base_ns: int) -> dict[str, Any]:
    """Returns the spans of some flows, packed."""
    fields = span_fields(base_ns)
    packed = zip(fields, spans._packed_columns(fields, sorted(flows)), strict=True)
    return packed_spans([array(code, raw) for (_, code, *_), raw in packed], spans._words("kind"))


def packed_spans(data: Sequence[array[Any]], numbers: Mapping[int, str]) -> dict[str, Any]:
    """Returns spans in µs: the directions in order, 2 * flow + direction, each with its number of spans; then for each span its
    kind, the time since the end of the one before (0 for most), and its length. `numbers` has the words of the kinds."""
    order = {kind: place for place, kind in enumerate(BANDS)}
    sides: dict[int, int] = {}
    kinds, gaps, lengths, before = bytearray(), array("d"), array("d"), 0
    for flow, direction, kind, merged, start, end in zip(*data, strict=True):
        side, from_us, to_us = 2 * flow + direction, round(start), round(end)
        before = before if side in sides else 0
        sides[side] = sides.get(side, 0) + 1
        kinds.append(order[numbers.get(kind) or "idle"] | (merged == 1) << 7)
        gaps.append(from_us - before)
        lengths.append(to_us - from_us)
        before = to_us
    return {
        "sides": planes("I", array("I", sides).tobytes()),
        "counts": planes("I", array("I", sides.values()).tobytes()),
        "kinds": planes("B", bytes(kinds)),
        "gaps": planes("d", gaps.tobytes()),
        "lengths": planes("d", lengths.tobytes()),
    }


def packed_turns(trace: Trace, flows: Sequence[int], base_ns: int) -> dict[str, Any]:
    """Returns the turns of flows, in ms."""
    return packed_table(trace.turns, TURN_COLUMNS, flows, base_ns)


def band_words() -> list[dict[str, str]]:
    """Returns class and words of each kind, by the number that stands for it."""
    return [{"kind": kind, "style": style, "words": words} for kind, (style, words) in BANDS.items()]

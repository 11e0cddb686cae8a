# SPDX-License-Identifier: Apache-2.0
"""Where the time of flows went, span by span, and their turns, for the bands of the page."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.transfers import PARTS
from wiretale.reports.html.packing import packed_table, planes

if TYPE_CHECKING:
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

SPANS_MOST = 40_000  # in the page, about 5 bytes each
TURNS_MOST = 5_000
US_NS = 1_000
#: classes in capture.css of the parts of time_spans; those with a half of the height share a color with another
BANDS = {
    **{"connecting": "part-network-deep low", "client": "part-client", "server": "part-server", "loss": "part-network"},
    **{"queue": "part-network-deep", "path": "part-network low", "window": "part-transfer-deep"},
    **{"send_buffer": "part-transfer-deep high", "transfer": "part-transfer"},
    **{"idle": "part-idle low", "unknown": "part-unknown high"},
}
TURN_COLUMNS = (
    *(("flow", "I", 1), ("direction", "B", 1), ("asked_ns", "d", 1_000_000)),
    *((name, "f", 1_000_000) for name in ("request_ns", "network_ns", "server_ns", "pause_ns")),
)


def span_fields(base_ns: int) -> list[tuple[str, str, int, int]]:
    """Returns the columns of packed_spans(), each with its array code, and what is subtracted and divided."""
    fields = [("flow", "I", 0, 1), ("part", "B", 0, 1), ("merged", "B", 0, 1)]
    return fields + [(name, "d", base_ns, US_NS) for name in ("start_ns", "end_ns")]


def spans_of_flows(spans: Table, flows: Sequence[int], base_ns: int) -> dict[str, Any]:
    """Returns the spans of some flows, packed."""
    fields = span_fields(base_ns)
    packed = zip(fields, spans._packed_columns(fields, sorted(flows)), strict=True)
    return packed_spans([array(code, raw) for (_, code, *_), raw in packed], spans._words("part"))


def packed_spans(data: Sequence[array[Any]], numbers: Mapping[int, str]) -> dict[str, Any]:
    """Returns spans in µs: the flows in order, each with its number of spans; then for each span its part, the time since the
    end of the one before (0 for most), and its length. `numbers` has the words of the parts."""
    order = {part: place for place, part in enumerate(BANDS)}
    flows: dict[int, int] = {}
    parts, gaps, lengths, before = bytearray(), array("d"), array("d"), 0
    for flow, part, merged, start, end in zip(*data, strict=True):
        from_us, to_us = round(start), round(end)
        before = before if flow in flows else 0
        flows[flow] = flows.get(flow, 0) + 1
        parts.append(order[numbers.get(part) or "unknown"] | (merged == 1) << 7)
        gaps.append(from_us - before)
        lengths.append(to_us - from_us)
        before = to_us
    return {
        "flows": planes("I", array("I", flows).tobytes()),
        "counts": planes("I", array("I", flows.values()).tobytes()),
        "parts": planes("B", bytes(parts)),
        "gaps": planes("d", gaps.tobytes()),
        "lengths": planes("d", lengths.tobytes()),
    }


def packed_turns(trace: Trace, flows: Sequence[int], base_ns: int) -> dict[str, Any]:
    """Returns the turns of flows, in ms."""
    return packed_table(trace.exchanges, TURN_COLUMNS, flows, base_ns)


def band_words() -> list[dict[str, str]]:
    """Returns class and words of each part, by the number that stands for it."""
    return [{"part": part, "style": style, "words": PARTS[part]} for part, style in BANDS.items()]

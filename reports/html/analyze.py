# SPDX-License-Identifier: Apache-2.0
"""The interactive report: one HTML file that works offline.

Tables go into the page as numbers packed by the core; what is drawn is chosen in the page, by the range in view, so
that a million packets open at once and every single one can be zoomed to. The figure itself is Plotly's, made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.explain import Explained, carried, explain
from wiretale.analyzer.findings.transfers import LIMITS
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import show_bytes, show_count, show_duration, show_rate, show_share
from wiretale.reports.html import offline_page
from wiretale.reports.html.figures import flow_figure
from wiretale.reports.html.flow_columns import again, flow_columns
from wiretale.reports.html.packing import encoded, numbered_words, packed_table
from wiretale.reports.phrases import choose_flows, cost_text

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

SCRIPTS = ("numbers.js", "panels.js", "view.js", "flow_list.js", "capture.js")
FLOWS_LARGEST, FLOWS_TROUBLED = 1000, 200
FLOWS_FURTHER, PACKETS_FURTHER = 5_000, 50_000  # the next largest: so many cost the page little
TRANSFERS_SHOWN = 20
PACKETS_MOST = 1_000_000  # about 4 bytes each in the page
SERIES_MOST = 60_000  # bins
DATAGRAMS_MOST = 100_000
EVENTS_MOST = 200_000
BLOCKS_MOST = 200_000
TIME_LETTERS = 23  # of a time, to the millisecond

# Columns of the series: name, array code, divisor. Times are ms since the page's base.
SERIES_FIELDS = (
    ("flow", "I", 1),
    ("direction", "B", 1),
    ("start_ns", "d", 1_000_000),
    ("width_ns", "d", 1_000_000),
    ("throughput_bps", "f", 1),
    ("cumulative_throughput_bps", "f", 1),
    ("goodput_bps", "f", 1),
    ("rtt_ns", "f", 1_000_000),
    ("flight_bytes", "f", 1),
    ("window_bytes", "f", 1),
)
DATAGRAM_FIELDS = (
    ("flow", "I", 1),
    ("capture", "H", 1),
    ("first_ns", "d", 1_000_000),
    ("first_frame", "d", 1),
    ("fragments", "I", 1),
    ("missing_bytes", "d", 1),
)
BLOCK_FIELDS = (
    ("flow", "I", 1),
    ("capture", "H", 1),
    ("stream", "H", 1),
    ("sequence", "d", 1),
    ("complete_ns", "d", 1_000_000),
    ("last_frame", "d", 1),
    ("latency_ns", "d", 1),
    ("head_of_line_ns", "d", 1),
)
EVENT_FIELDS = (
    ("flow", "I", 1),
    ("capture", "H", 1),
    ("direction", "B", 1),
    ("time_ns", "d", 1_000_000),
    ("frame", "d", 1),
    ("related_frame", "d", 1),
    ("bytes", "d", 1),
    ("kind", "B", 1),
    ("place", "B", 1),
    ("evidence", "B", 1),
    ("spurious", "B", 1),
)
EVENT_WORDS = ("kind", "place", "evidence")  # packed as numbers


def fitting_flows(flows: Sequence[int], sizes: Sequence[int], most: int) -> list[int]:
    """Of these flows, in their order, each that still fits within a bound on the sum of sizes."""
    chosen = []
    for flow, size in zip(flows, sizes, strict=True):
        if size <= most:
            chosen.append(flow)
            most -= size
    return chosen


def further_flows(trace: Trace, chosen: set[int], sizes: Sequence[int]) -> list[int]:
    """The largest flows that are not chosen."""
    rank = trace.flows.column("wire_bytes")
    rest = nlargest(FLOWS_FURTHER, (flow for flow in range(len(rank)) if flow not in chosen), key=rank.__getitem__)
    return fitting_flows(rest, [sizes[flow] for flow in rest], PACKETS_FURTHER)


def base_time(trace: Trace) -> int:
    """What times in the page count from: the first packet, down to a whole second."""
    times = [ns for ns in trace.interfaces.column("first_ns") if ns is not None]
    return min(times, default=0) // 1_000_000_000 * 1_000_000_000


def file_names(trace: Trace) -> list[str]:
    """The file of each input interface, for frame numbers, which count in their file; none where there is one file."""
    files = trace.interfaces.column("file")
    if len(set(files)) < 2:
        return []
    names = [Path(file).name for file in files]
    return names if len(set(names)) == len(set(files)) else files


def packed_packets(trace: Trace, by_trouble: Sequence[int], sizes: Sequence[int], base_ns: int) -> dict[str, Any]:
    """Packets of flows that fit as analyzer/core/export/packet_pack.h says; of a first flow larger than the page, its first."""
    if not by_trouble or not trace.packets_made:
        return {"count": 0, "flows": [], "streams": {}, "cut": False}
    cut = sizes[by_trouble[0]] > PACKETS_MOST
    flows = [by_trouble[0]] if cut else fitting_flows(by_trouble, [sizes[flow] for flow in by_trouble], PACKETS_MOST)
    count, streams = trace.packets(flows, PACKETS_MOST).packet_streams(flows, base_ns)
    return {
        "count": count,
        "flows": flows,
        "cut": cut,
        "streams": {name: [len(data), encoded(data)] for name, data in streams.items()},
    }


def page_data(trace: Trace) -> dict[str, Any]:
    """All that the page's script works with."""
    base_ns = base_time(trace)
    largest, troubled = choose_flows(trace, FLOWS_LARGEST, FLOWS_TROUBLED)
    by_trouble = troubled + largest if troubled else largest
    sizes = trace.flows.column("packets")
    by_trouble = by_trouble + further_flows(trace, set(by_trouble), sizes)
    tables = (trace.series, trace.datagrams, trace.events, trace.blocks)
    bins, datagrams, events, blocks = (table.rows_by_flow(len(sizes)) for table in tables)
    with_series = fitting_flows(by_trouble, [bins[flow] for flow in by_trouble], SERIES_MOST)
    with_datagrams = fitting_flows(by_trouble, [datagrams[flow] for flow in by_trouble], DATAGRAMS_MOST)
    with_blocks = fitting_flows(by_trouble, [blocks[flow] for flow in by_trouble], BLOCKS_MOST)
    with_events = fitting_flows(by_trouble, [events[flow] for flow in by_trouble], EVENTS_MOST)
    # Plotly takes its time, and the core needs no interpreter to read the packets.
    with ThreadPoolExecutor(1) as beside:
        figure = beside.submit(flow_figure)
        packets = packed_packets(trace, by_trouble, sizes, base_ns)
    return {
        "base": str(base_ns),
        "flows": flow_columns(trace, base_ns),
        "again": again(trace),
        "files": file_names(trace),
        "series_flows": with_series,
        "series": packed_table(trace.series, SERIES_FIELDS, with_series, base_ns),
        "datagrams": packed_table(trace.datagrams, DATAGRAM_FIELDS, with_datagrams, base_ns),
        "events": packed_table(trace.events, EVENT_FIELDS, with_events, base_ns),
        "blocks": packed_table(trace.blocks, BLOCK_FIELDS, with_blocks, base_ns),
        "words": {name: numbered_words(trace.events, name) for name in EVENT_WORDS},
        "packets": packets,
        "figure": figure.result(),
    }


def capture_facts(row: dict[str, Any]) -> dict[str, Any]:
    """What the head of the page says of an input interface."""
    drops = [row[name] for name in ("dropped_kernel", "dropped_interface", "dropped_program") if row[name] is not None]
    timed = row["first_ns"] is not None
    return {
        "file": row["file"],
        "interface": row["name"],
        "kind": ", ".join(filter(None, (row["format"], row["link_type_name"] or f"link type {row['link_type']}"))),
        "packets": show_count(row["packets"]),
        "bytes": show_bytes(row["bytes"]),
        "start": show_time(row["first_ns"])[:TIME_LETTERS] if timed else "no times",
        "duration": show_duration(row["last_ns"] - row["first_ns"]) if timed else "–",
        "drops": show_count(sum(drops)) if drops else "not told",
        "cut": show_count(row["truncated_packets"]) if row["truncated_packets"] else "",
        "system": ", ".join(filter(None, (row["system"], row["capture_application"], row["comment"]))),
    }


def transfer_entry(one: Explained) -> dict[str, Any]:
    """A transfer as the page tells what limited it."""
    whole = sum(one.transfer.limits.values())
    limits = sorted(one.transfer.limits.items(), key=lambda item: -item[1]) if whole else []
    return {
        "flow": one.transfer.row["flow"],
        "name": one.transfer.name,
        "carried": carried(one.transfer),
        "headline": one.headline,
        "link": f"{show_share(one.used, 1)} of {show_rate(one.maximum_bps)}" if one.used is not None else "",
        "limits": [
            {
                "kind": name.split("_")[1],
                "label": f"{LIMITS[name]} {show_share(ns, whole)}",
                "percent": 100 * ns / whole,
            }
            for name, ns in limits
            if ns
        ],
    }


def render(trace: Trace, link_bps: int | None = None) -> str:
    """The page."""
    found = [{**row, "cost_text": cost_text(row)} for row in trace.findings.rows()]
    return offline_page.render(
        "capture.html",
        page_data(trace),
        SCRIPTS,
        title=", ".join(Path(name).name for name in trace.inputs[:3]),
        captures=[capture_facts(row) for row in trace.interfaces.rows()],
        interrupted=trace.interrupted,
        healthy=all(row["severity"] == "info" for row in found),
        transfers=[transfer_entry(one) for one in explain(trace, link_bps) if not one.transfer.is_control_connection][
            :TRANSFERS_SHOWN
        ],
        capture_findings=[row for row in found if row["scope"] == "capture"],
        findings=[row for row in found if row["scope"] != "capture"],
    )


def write_report(trace: Trace, path: Path, link_bps: int | None = None) -> Path:
    """Writes the page and returns its path. OutputError, with what was there before unharmed, when it cannot."""
    return offline_page.write(render(trace, link_bps), path)

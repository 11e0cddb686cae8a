# SPDX-License-Identifier: Apache-2.0
"""The report of `wiretale analyze`.

The core packs tables into typed arrays. The page selects the points to draw by the range in view, so that a million packets
open at once and each can be zoomed to.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.explain import Explained, carried, explain
from wiretale.analyzer.findings.judged import judge
from wiretale.analyzer.findings.transfers import LIMITS
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import show_bytes, show_count, show_duration, show_rate, show_share
from wiretale.reports.html import offline_page
from wiretale.reports.html.figures import flow_figure
from wiretale.reports.html.flow_columns import again, flow_columns
from wiretale.reports.html.packing import encoded, numbered_words, packed_table
from wiretale.reports.phrases import choose_flows, cost_text, drops_of

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

SCRIPTS = ("numbers.js", "panels.js", "view.js", "flow_list.js", "capture.js")
FLOWS_LARGEST, FLOWS_PROBLEMATIC = 1000, 200
FLOWS_FURTHER, PACKETS_FURTHER = 5_000, 50_000  # the next largest, which add little to the page
TRANSFERS_SHOWN = 20
PACKETS_MOST = 1_000_000  # about 4 bytes each in the page
TIME_LETTERS = 23  # of a time with milliseconds


def fields(text: str) -> list[tuple[str, str, int]]:
    """Returns name, array code and divisor of columns from `name:code`, or `name:code:ms` to divide ns to ms."""
    words = [word.split(":") for word in text.split()]
    return [(name, code, 1_000_000 if unit else 1) for name, code, *unit in words]


# The largest number of rows of each table in the page, and its columns; times are relative to the base of the page.
TABLES = {
    "series": (
        60_000,
        "flow:I direction:B start_ns:d:ms width_ns:d:ms throughput_bps:f cumulative_throughput_bps:f goodput_bps:f "
        "rtt_ns:f:ms flight_bytes:f window_bytes:f",
    ),
    "datagrams": (100_000, "flow:I capture:H first_ns:d:ms first_frame:d fragments:I missing_bytes:d"),
    "events": (
        200_000,
        "flow:I capture:H direction:B time_ns:d:ms frame:d related_frame:d bytes:d kind:B place:B evidence:B spurious:B",
    ),
    "blocks": (
        200_000,
        "flow:I capture:H stream:H sequence:d complete_ns:d:ms last_frame:d latency_ns:d head_of_line_ns:d",
    ),
}
EVENT_WORDS = ("kind", "place", "evidence")  # words, packed as numbers


def fitting_flows(flows: Iterable[int], sizes: Sequence[int], most: int) -> list[int]:
    """Returns, in order, each flow that still fits if the sum of sizes must not exceed `most`."""
    chosen = []
    for flow in flows:
        if sizes[flow] <= most:
            chosen.append(flow)
            most -= sizes[flow]
    return chosen


def further_flows(trace: Trace, chosen: set[int], sizes: Sequence[int]) -> list[int]:
    """Returns the largest of the other flows that fit."""
    rank = trace.flows.column("wire_bytes")
    rest = nlargest(FLOWS_FURTHER, (flow for flow in range(len(rank)) if flow not in chosen), key=rank.__getitem__)
    return fitting_flows(rest, sizes, PACKETS_FURTHER)


def base_time(trace: Trace) -> int:
    """Returns the base of all times: the first packet, rounded down to a second."""
    times = [ns for ns in trace.interfaces.column("first_ns") if ns is not None]
    return min(times, default=0) // 1_000_000_000 * 1_000_000_000


def file_names(trace: Trace) -> list[str]:
    """Returns the file of each interface, because frame numbers count per file; none if there is one file."""
    files = trace.interfaces.column("file")
    if len(set(files)) < 2:
        return []
    names = [Path(file).name for file in files]
    return names if len(set(names)) == len(set(files)) else files


def packed_packets(trace: Trace, ranked: Sequence[int], sizes: Sequence[int], base_ns: int) -> dict[str, Any]:
    """Returns the packets of the flows that fit, packed as in analyzer/core/export/export.h.

    If the first flow alone is too large, it returns the first packets of this flow.
    """
    if not ranked or not trace.packets_made:
        return {"count": 0, "flows": [], "streams": {}, "cut": False}
    cut = sizes[ranked[0]] > PACKETS_MOST
    flows = [ranked[0]] if cut else fitting_flows(ranked, sizes, PACKETS_MOST)
    count, streams = trace.packets(flows, PACKETS_MOST).packet_streams(flows, base_ns)
    packed = {name: [len(data), encoded(data)] for name, data in streams.items()}
    return {"count": count, "flows": flows, "cut": cut, "streams": packed}


def segment_sizes(trace: Trace, flows: list[int]) -> dict[int, int]:
    """Returns wire_mss of each direction, numbered 2 * flow + direction, that has super-segments and whose size is known."""
    names = [(name, "d", 0, 1) for name in ("wire_mss", "wire_segments", "data_packets")]
    columns = (array("d", data) for data in trace.directions.packed_columns(names, flows))
    numbers = [2 * flow + direction for flow in flows for direction in (0, 1)]
    rows = zip(numbers, *columns, strict=True)
    return {number: int(mss) for number, mss, on_wire, captured in rows if on_wire > captured}


def page_data(trace: Trace) -> dict[str, Any]:
    """Returns the data for the scripts of the page."""
    base_ns = base_time(trace)
    largest, problematic = choose_flows(trace, FLOWS_LARGEST, FLOWS_PROBLEMATIC)
    ranked = problematic + largest
    sizes = trace.flows.column("packets")
    ranked += further_flows(trace, set(ranked), sizes)
    fitting, packed = {}, {}
    for name, (most, columns) in TABLES.items():
        table = trace.table(name)
        fitting[name] = fitting_flows(ranked, table.rows_by_flow(len(sizes)), most)
        packed[name] = packed_table(table, fields(columns), fitting[name], base_ns)
    # Plotly is slow to import, and the core releases the GIL while it reads the packets.
    with ThreadPoolExecutor(1) as beside:
        figure = beside.submit(flow_figure)
        packets = packed_packets(trace, ranked, sizes, base_ns)
    return {
        "base": str(base_ns),
        "flows": flow_columns(trace, base_ns),
        "again": again(trace),
        "files": file_names(trace),
        "series_flows": fitting["series"],
        "wire_mss": segment_sizes(trace, sorted(fitting["events"])),
        **packed,
        "words": {name: numbered_words(trace.events, name) for name in EVENT_WORDS},
        "packets": packets,
        "figure": figure.result(),
    }


def capture_facts(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the facts about an interface for the head of the page."""
    drops, timed = drops_of(row), row["first_ns"] is not None
    return {
        "file": row["file"],
        "interface": row["name"],
        "kind": ", ".join(filter(None, (row["format"], row["link_type_name"] or f"link type {row['link_type']}"))),
        "packets": show_count(row["packets"]),
        "bytes": show_bytes(row["bytes"]),
        "start": show_time(row["first_ns"])[:TIME_LETTERS] if timed else "no times",
        "duration": show_duration(row["last_ns"] - row["first_ns"]) if timed else "–",
        "drops": show_count(drops),
        "truncated": show_count(row["truncated_packets"]) if row["truncated_packets"] else "",
        "system": ", ".join(filter(None, (row["system"], row["capture_application"], row["comment"]))),
    }


def transfer_entry(one: Explained) -> dict[str, Any]:
    """Returns a transfer with its time by limit."""
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
    """Returns the page; `link_bps` is the rate that goodput is compared with."""
    found = [{**row, "cost_text": cost_text(row)} for row in trace.findings.rows()]
    judged = judge(trace)
    return offline_page.render(
        "capture.html",
        page_data(trace),
        SCRIPTS,
        title=", ".join(Path(name).name for name in trace.inputs[:3]),
        captures=[capture_facts(row) for row in trace.interfaces.rows()],
        interrupted=trace.interrupted,
        judged=judged.sentence(),
        healthy=judged.no_problem(bool(found)) if all(row["severity"] == "info" for row in found) else "",
        transfers=[transfer_entry(one) for one in explain(trace, link_bps) if not one.transfer.is_control_connection][
            :TRANSFERS_SHOWN
        ],
        capture_findings=[row for row in found if row["scope"] == "capture"],
        findings=[row for row in found if row["scope"] != "capture"],
    )


def write_report(trace: Trace, path: Path, link_bps: int | None = None) -> Path:
    """Writes the page and returns its path. OutputError if it cannot be written; an existing file is then unchanged."""
    return offline_page.write(render(trace, link_bps), path)

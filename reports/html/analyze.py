# SPDX-License-Identifier: Apache-2.0
"""The report of `wiretale analyze`.

The core packs tables into typed arrays. The page selects the points to draw by the range in view, so that a million packets
open at once and each can be zoomed to.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.explain import carried, explain
from wiretale.analyzer.findings.judged import judge
from wiretale.analyzer.findings.model import duration_of
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import show_bytes, show_count, show_duration, show_rate, show_share
from wiretale.reports.cut_commands import cut_start
from wiretale.reports.html import offline_page
from wiretale.reports.html.answer_times import answer_times
from wiretale.reports.html.commands import again, page_name, page_words
from wiretale.reports.html.figures import flow_figure
from wiretale.reports.html.finding_rows import cited_flows, finding_rows
from wiretale.reports.html.first_screen import cause_flows, facts, findings, flow_times, time_bar
from wiretale.reports.html.flow_columns import flow_columns
from wiretale.reports.html.frames import frame_data, without_bytes
from wiretale.reports.html.packing import base_time, encoded, numbered_words, packed_table
from wiretale.reports.html.requests import request_rows
from wiretale.reports.html.time_bands import SPANS_MOST, TURNS_MOST, band_words, packed_turns, spans_of_flows
from wiretale.reports.html.time_columns import column_flows, packed_columns
from wiretale.reports.html.timeline import steps_of, timeline
from wiretale.reports.phrases import choose_flows, drops_of

if TYPE_CHECKING:
    from wiretale.analyzer.rows import InterfaceRow
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

STYLES = (
    "capture/capture.css",
    "capture/small.css",
    "packets/packets.css",
    "dock/dock.css",
    "waterfall/waterfall.css",
    "stream/stream.css",
    "flow/panels.css",
    "flow/overlaid.css",
)
FLOWS_LARGEST, FLOWS_PROBLEMATIC = 1000, 200
FLOWS_FURTHER, PACKETS_FURTHER = 5_000, 50_000  # the next largest, which add little to the page
TRANSFERS_SHOWN = 20
CAPTURES_SHOWN = 500  # interfaces of files
PACKETS_MOST = 1_000_000  # about 4 bytes each in the page
NO_FRAMES = "This report was made without the bytes of frames (--no-frames)."
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
        "flow:I direction:B capture:H stream:H sequence:d complete_ns:d:ms last_frame:d latency_ns:d head_of_line_ns:d verdict:B",
    ),
}
EVENT_WORDS = ("kind", "place", "evidence")  # words, packed as numbers


def fitting_flows(flows: Iterable[int], sizes: Sequence[int], most: int) -> list[int]:
    """Returns, in order, each flow that still fits if the sum of sizes must not exceed `most`."""
    fitting = []
    for flow in flows:
        if sizes[flow] <= most:
            fitting.append(flow)
            most -= sizes[flow]
    return fitting


def further_flows(trace: Trace, listed: set[int], sizes: Sequence[int]) -> list[int]:
    """Returns the largest of the other flows that fit."""
    largest = trace.transfers.largest_flows(FLOWS_FURTHER + len(listed))
    unlisted = [flow for flow in largest if flow not in listed][:FLOWS_FURTHER]
    return fitting_flows(unlisted, sizes, PACKETS_FURTHER)


def file_names(trace: Trace) -> list[str]:
    """Returns the file of each interface, because frame numbers count per file; none if there is one file."""
    files = trace.interfaces.column("file")
    if len(set(files)) < 2:
        return []
    names = [Path(file).name for file in files]
    return names if len(set(names)) == len(set(files)) else list(map(page_name, files))


NO_PACKETS: dict[str, Any] = {"count": 0, "flows": [], "streams": {}, "cut": False, "columns": None}


def packed_packets(
    trace: Trace, ranked: Sequence[int], sizes: Sequence[int], base_ns: int, served: bool
) -> tuple[dict[str, Any], Table | None, Table | None]:
    """Returns the packets of the flows that fit, packed as in analyzer/core/export/export.h, and the others by columns of time;
    the table of these packets, and the time_spans of both.

    If the first flow alone is too large, it returns the first packets of this flow; if the page is served, only time_spans.
    """
    if not ranked or not trace.packets_made:
        return NO_PACKETS, None, None
    if served:
        return NO_PACKETS, None, trace.time_spans(ranked[:FLOWS_LARGEST])
    cut = sizes[ranked[0]] > PACKETS_MOST
    flows = [ranked[0]] if cut else fitting_flows(ranked, sizes, PACKETS_MOST)
    whole = set() if cut else set(flows)
    drawn = column_flows(trace, [flow for flow in ranked if flow not in whole and sizes[flow] > 1], sizes)
    table, spans, columns = trace._packets_and_columns(flows, PACKETS_MOST, drawn)
    count, streams = table._packet_streams(flows, base_ns)
    packed = {name: [len(data), encoded(data)] for name, data in streams.items()}
    about = {"count": count, "flows": flows, "cut": cut, "streams": packed}
    return {**about, "columns": packed_columns(drawn, columns, base_ns) if drawn else None}, table, spans


def bands_data(
    trace: Trace, spans: Table | None, ranked: Sequence[int], limited: Sequence[int], base_ns: int
) -> dict[str, Any]:
    """Returns the time spans of some flows, and the turns of those that fit."""
    turned = fitting_flows(ranked, trace.exchanges._rows_by_flow(len(trace.flows)), TURNS_MOST)
    return {
        "spans": None if spans is None else spans_of_flows(spans, limited, base_ns),
        "turns": packed_turns(trace, turned, base_ns),
        "requests": request_rows(trace, ranked, base_ns),
        "bands": band_words(),
    }


def segment_sizes(trace: Trace, flows: list[int]) -> dict[int, int]:
    """Returns wire_mss of each direction, numbered 2 * flow + direction, that has super-segments and whose size is known."""
    names = [(name, "d", 0, 1) for name in ("wire_mss", "wire_segments", "data_packets")]
    columns = (array("d", data) for data in trace.directions._packed_columns(names, flows))
    numbers = [2 * flow + direction for flow in flows for direction in (0, 1)]
    rows = zip(numbers, *columns, strict=True)
    return {number: int(mss) for number, mss, on_wire, captured in rows if on_wire > captured}


def page_data(trace: Trace, served: bool = False, frames: bool = True, live: int | None = None) -> dict[str, Any]:
    """Returns the data for the scripts of the page, without packets if it is served by `wiretale view`; `frames` is whether
    it may have bytes of the capture, `live` the version if another one follows."""
    base_ns = base_time(trace)
    finding_data = finding_rows(trace, base_ns, served)
    largest, problematic = choose_flows(trace, FLOWS_LARGEST, FLOWS_PROBLEMATIC)
    ranked = list(dict.fromkeys(cited_flows(finding_data) + problematic + largest))
    sizes = trace.flows.column("packets")
    ranked += further_flows(trace, set(ranked), sizes)
    with ThreadPoolExecutor(2) as beside:  # the core, zlib and tshark do not hold this thread up
        all_flows = beside.submit(flow_columns, trace, base_ns)
        fitting, packed = {}, {}
        for name, (most, columns) in TABLES.items():
            table = trace.table(name)
            fitting[name] = fitting_flows(ranked, table._rows_by_flow(len(sizes)), most)
            packed[name] = packed_table(table, fields(columns), fitting[name], base_ns)
        packets, packet_rows, spans = packed_packets(trace, ranked, sizes, base_ns, served)
        dissected = beside.submit(frame_data, trace, packet_rows, base_ns, served) if frames else None
        # Flows whose spans were made; the page has those of as many as fit.
        with_spans = ranked[:FLOWS_LARGEST] if served else ranked
        limited = [] if spans is None else fitting_flows(with_spans, spans._rows_by_flow(len(sizes)), SPANS_MOST)
        bands = bands_data(trace, spans, ranked, limited, base_ns)
        traffic = timeline(trace, base_ns)
        # Awaited here, so that an interruption leaves the block, which ends only after tshark's folders are removed.
        frame_entries = dissected.result() if dissected else without_bytes(trace, NO_FRAMES, served)
    event_words = trace.events._packed_columns([(name, "B", 0, 1) for name in EVENT_WORDS])
    return {
        "base": str(base_ns),
        "served": served,
        "live": None if live is None else str(live),
        "flows": all_flows.result(),
        "times": flow_times(trace),
        "timeline": traffic,
        "again": again(trace, served),
        "cut": cut_start(trace, page_words(trace._arguments, served)),
        "findings": finding_data,
        "causes": [
            {**cause, "flows": [], "packed_flows": steps_of(array("I", cause["flows"]))}
            for cause in cause_flows(trace, finding_data)
        ],
        "files": file_names(trace),
        "series_flows": fitting["series"],
        "whole_flows": sorted(set(limited).intersection(*fitting.values())) if served else [],
        "wire_mss": segment_sizes(trace, sorted(fitting["events"])),
        **packed,
        **bands,
        "words": {
            **dict(zip(EVENT_WORDS, map(numbered_words, event_words), strict=True)),
            "verdict": numbered_words(trace.blocks._packed("verdict", "B")),
        },
        "packets": packets,
        "frames": frame_entries,
        "figure": flow_figure(),
    }


def capture_facts(row: InterfaceRow, served: bool) -> dict[str, Any]:
    """Returns the facts about an interface for the head of the page."""
    drops, first_ns, duration = drops_of(row), row["first_ns"], duration_of(row)
    return {
        "file": row["file"] if served else page_name(row["file"]),
        "interface": row["name"],
        "kind": ", ".join(filter(None, (row["format"], row["link_type_name"] or f"link type {row['link_type']}"))),
        "packets": show_count(row["packets"]),
        "bytes": show_bytes(row["bytes"]),
        "start": show_time(first_ns)[:TIME_LETTERS] if first_ns is not None else "no times",
        "duration": show_duration(duration),
        "drops": show_count(drops),
        "truncated": show_count(row["truncated_packets"]) if row["truncated_packets"] else "",
        "system": ", ".join(filter(None, (row["system"], row["capture_application"], row["comment"]))),
    }


def link_shares(trace: Trace, link_bps: int) -> list[dict[str, Any]]:
    """Returns the first transfers with their share of the rate that the link carries."""
    return [
        {
            "flow": explained.transfer.row["flow"],
            "name": explained.transfer.name,
            "carried": carried(explained.transfer),
            "link": f"{show_share(explained.used, 1)} of {show_rate(explained.maximum_bps)}",
        }
        for explained in explain(trace, link_bps)
        if explained.used is not None and not explained.transfer.is_control_connection
    ][:TRANSFERS_SHOWN]


def render(
    trace: Trace, link_bps: int | None = None, served: bool = False, frames: bool = True, live: int | None = None
) -> str:
    """Returns the page; `link_bps` is the rate that goodput is compared with. If it is served, it asks for packets, and if it
    has a version (`live`), for a newer one."""
    data, (judged, details) = page_data(trace, served, frames, live), judge(trace).parts()
    return offline_page.render(
        "capture/capture.html",
        data,
        "capture/capture.js",
        "".join(map(offline_page.part, STYLES)),
        title=", ".join(
            Path(name).absolute().parent.name if live else Path(name).name for name in trace.inputs[: 1 if live else 3]
        ),
        facts=facts(trace),
        answer=trace.answer,
        flows=len(trace.flows),
        judged=judged,
        judged_details=details,
        traffic=data["timeline"] is not None,
        answers=answer_times(trace),
        time=time_bar(trace),
        findings=findings(trace, data["findings"]),
        captures=[capture_facts(row, served) for row in trace.interfaces.rows(0, CAPTURES_SHOWN)],
        more_captures=max(0, len(trace.interfaces) - CAPTURES_SHOWN),
        interrupted=trace.interrupted,
        served=served,
        live=live is not None,
        transfers=[] if link_bps is None else link_shares(trace, link_bps),
    )


def write_report(trace: Trace, path: Path, link_bps: int | None = None, frames: bool = True) -> Path:
    """Writes the page and returns its path. OutputError if it cannot be written; an existing file is then unchanged."""
    return offline_page.write(render(trace, link_bps, frames=frames), path)

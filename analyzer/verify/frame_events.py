# SPDX-License-Identifier: Apache-2.0
"""The events of one capture in frame order (the table has them in flow order), and the context of its conversations."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

from wiretale.analyzer import _core
from wiretale.analyzer.findings.model import nonzero_rows, row_at
from wiretale.analyzer.verify.case import FRAGMENT
from wiretale.analyzer.verify.comparison import Around

if TYPE_CHECKING:
    from wiretale.analyzer.rows import FlowRow
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace
    from wiretale.analyzer.verify.tshark import End

RESUMED_MAX = 100_000  # events whose flow is read
EVENTS_PER_FLOW_MAX, EVENTS_MAX = 10_000, 4_000_000  # bounds of the events table
JUDGED = (1, 6, 58)  # IP protocol numbers: ICMP, TCP, ICMPv6
ENDED_EARLY = {"idle", "evicted", "ports_reused"}  # of flows.end
ENDS = ("source", "source_port", "destination", "destination_port")


class FrameEvents:
    """Makes rows on demand, because millions of Python objects would take more memory than the analysis."""

    def __init__(self, events: Table) -> None:
        self._events = events
        self._frames = array("d", events._packed("frame", "d"))
        self._order = array("Q", sorted(range(len(events)), key=self._frames.__getitem__))
        self._next = 0

    def take(self, last_frame: float) -> dict[int, list[dict[str, Any]]]:
        """Returns the next events up to a frame, which must not be lower than that of the last call."""
        by_frame: dict[int, list[dict[str, Any]]] = {}
        while self._next < len(self._order) and self._frames[self._order[self._next]] <= last_frame:
            row = self._events.rows(self._order[self._next], self._order[self._next] + 1)[0]
            by_frame.setdefault(row["frame"], []).append(row)
            self._next += 1
        return by_frame


def reason_unread(decoded: tuple[str, int | None, bool, bool] | None) -> str | None:
    """Returns why wiretale found no TCP segment or ICMP message in a frame; None if it found one."""
    if decoded is None:
        return "after the damage of the file"
    reason, protocol, transport, fragment = decoded
    if fragment:
        return FRAGMENT
    if transport and protocol in JUDGED:
        return None
    return f"IP protocol {protocol}" if reason == "ok" else reason


def unread_frames(path: str, frames: Iterable[int]) -> dict[int, str]:
    """Returns the frames of a file in which wiretale found nothing to judge, each with its reason."""
    numbers = sorted(frames)
    reasons = (reason_unread(frame and frame[0]) for frame in _core.frames([path], numbers, 0))
    return {number: reason for number, reason in zip(numbers, reasons, strict=True) if reason}


def flow_ends(row: Iterable[Any]) -> frozenset[End]:
    """Returns both ends as tshark prints them."""
    source, source_port, destination, destination_port = row
    return frozenset({(str(source), str(source_port)), (str(destination), str(destination_port))})


def ends_of(row: FlowRow) -> frozenset[End]:
    """Returns both ends of a flow as tshark prints them."""
    return flow_ends((row["source"], row["source_port"], row["destination"], row["destination_port"]))


def shared_flows(flows: Table, paths: Mapping[int, str]) -> dict[frozenset[End], list[int]]:
    """Returns flows between the same ends that differ only in VLANs or tunnels."""
    by_ends: dict[frozenset[End], list[int]] = {}
    for flow, row in enumerate(zip(*map(flows.column, ENDS), strict=True)) if paths else ():
        by_ends.setdefault(flow_ends(row), []).append(flow)
    return {ends: numbers for ends, numbers in by_ends.items() if len({paths.get(flow) for flow in numbers}) > 1}


def full_flows(trace: Trace) -> dict[frozenset[End], float]:
    """Returns conversations with more events than are kept, and the last frame with one."""
    counts = trace.events._rows_by_flow(len(trace.flows)) if trace.totals["events_dropped"] else ()
    last_frames = {}
    for flow in [flow for flow, count in enumerate(counts) if count >= EVENTS_PER_FLOW_MAX]:
        last = max(array("d", trace.events._packed("frame", "d", flows=[flow])))
        last_frames[ends_of(row_at(trace.flows, flow))] = last
    return last_frames


def ends_in(trace: Trace, flows: Iterable[int]) -> frozenset[frozenset[End]]:
    """Returns the ends of these flows."""
    return frozenset(ends_of(row_at(trace.flows, flow)) for flow in flows)


def begun_flows(trace: Trace) -> list[int]:
    """Returns TCP flows without a captured handshake."""
    rows = zip(*map(trace.flows.column, ("protocol", "initiator_known")), strict=True)
    return [flow for flow, (protocol, has_syn) in enumerate(rows) if protocol == "tcp" and not has_syn]


def resumed_flows(trace: Trace, begun: list[int]) -> set[int]:
    """Returns those that retransmitted data which had passed before the capture began."""
    if not begun:
        return set()
    rows = (
        row_at(trace.events, number) for number in trace.events._rows_where("cause", "before_capture")[:RESUMED_MAX]
    )
    return {flow for row in rows if (flow := row["flow"]) is not None}


def ended_flows(trace: Trace) -> dict[frozenset[End], int]:
    """Returns the ends of a flow that ended early and was followed by another, with its last frame."""
    endings = trace.flows.column("end")
    if ENDED_EARLY.isdisjoint(endings):
        return {}
    counts = Counter(hash(flow_ends(row)) for row in zip(*map(trace.flows.column, ENDS), strict=True))
    rows = zip(endings, trace.flows.column("last_frame"), *map(trace.flows.column, ENDS), strict=True)
    last_frames: dict[frozenset[End], int] = {}
    for end, last_frame, *row in rows:
        if end in ENDED_EARLY and counts[hash(flow_ends(row))] > 1:  # the first of several
            last_frames.setdefault(flow_ends(row), last_frame)
    return last_frames


def cut_flows(trace: Trace) -> frozenset[int]:
    """Returns TCP flows whose options the snap length truncated: their number of SACKs is null."""
    rows = zip(*map(trace.directions.column, ("flow", "packets", "sack_acks", "syns")), strict=True)
    return frozenset(flow for flow, packets, sacks, syns in rows if packets and sacks is None and syns is not None)


def around(trace: Trace) -> Around:
    """Returns the context that may explain differences."""
    paths = {flow: path for flow, path in enumerate(trace.flows.column("path")) if path}
    shared = shared_flows(trace.flows, paths)
    full = len(trace.events) >= EVENTS_MAX
    begun = begun_flows(trace)
    return Around(
        shared_flows=frozenset(flow for flows in shared.values() for flow in flows),
        shared_ends=shared.keys(),
        paths=paths,
        dropped=trace.totals["events_dropped"],
        full_ends=full_flows(trace),
        full_from=max(array("d", trace.events._packed("frame", "d"))) if full else inf,
        cut_flows=cut_flows(trace),
        one_way_ends=ends_in(trace, nonzero_rows(trace.flows, "one_way")),
        begun_ends=ends_in(trace, begun),
        resumed_ends=ends_in(trace, resumed_flows(trace, begun)),
        ended_ends=ended_flows(trace),
    )

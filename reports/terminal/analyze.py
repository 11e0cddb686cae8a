# SPDX-License-Identifier: Apache-2.0
"""Parts of `wiretale analyze --all`: captures, what was judged, flows and fragmentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from wiretale.analyzer.findings.explain import Explained
from wiretale.analyzer.findings.judged import Judged
from wiretale.analyzer.findings.model import duration_of, flow_str, process_str, row_at, segments
from wiretale.analyzer.printable import printable
from wiretale.analyzer.table import shown_cell
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import UNKNOWN, plural, show_bytes, show_count, show_duration, show_rate, show_share
from wiretale.reports.phrases import (
    PROBLEMS,
    choose_flows,
    conversations_text,
    drops_of,
    problem_text,
    relation_texts,
)
from wiretale.reports.terminal.console import INDENT, indented, section
from wiretale.reports.terminal.fitted import Column, table

if TYPE_CHECKING:
    from wiretale.analyzer.rows import DirectionRow, FlowRow, InterfaceRow
    from wiretale.analyzer.trace import Trace

CAPTURES_SHOWN = 8
FINE_TICK_NS = 1_000  # of a clock as fine as most files
PROBLEMATIC_SHOWN = 5


@dataclass(frozen=True)
class FlowLine:
    """A flow and its directions, as the table of flows shows them."""

    flow: FlowRow
    out: DirectionRow
    back: DirectionRow
    related: str  # `copy of flow 0`

    def problems(self) -> str:
        """Returns the problems of both directions; a null counts as 0."""
        names = [name for kind in PROBLEMS for name in kind.columns]
        sums = {name: sum(segments(row, name) or 0 for row in (self.out, self.back)) for name in names}
        return problem_text(sums, self.flow["icmp_errors"])

    def main(self) -> DirectionRow:
        """Returns the direction that carries more."""
        return max(self.out, self.back, key=lambda row: row["wire_bytes"])

    def rtt(self) -> str:
        """Returns the RTT of the whole path if the handshake was captured, else the median of the main direction."""
        handshake_ns = self.flow["handshake_rtt_ns"]
        return show_duration(handshake_ns if handshake_ns is not None else self.main()["rtt_ns_median"])


FLOW_COLUMNS: tuple[tuple[Column, Callable[[FlowLine], str]], ...] = (
    (Column("flow", True), lambda line: str(line.flow["flow"])),
    (Column("", rank=1), lambda line: protocol_text(line.flow)),
    (Column("initiator → responder", breaks_after="→"), lambda line: flow_str(line.flow)),
    (Column("process", rank=1), lambda line: process_of(line.flow)),
    (Column("server", rank=10), lambda line: line.flow["server_name"] or ""),
    (Column("inside", rank=9, breaks_after="/"), lambda line: line.flow["path"] or ""),
    (Column("state", rank=6), lambda line: line.flow["state"] or ""),
    (Column("packets", True, 2), lambda line: show_count(line.flow["packets"])),
    (Column("payload →", True, 7), lambda line: show_bytes(line.out["payload_bytes"])),
    (Column("←", True, 8), lambda line: show_bytes(line.back["payload_bytes"])),
    (Column("wire", True), lambda line: show_bytes(line.flow["wire_bytes"])),
    (Column("duration", True, 5), lambda line: show_duration(duration_of(line.flow))),
    (Column("IP rate", True, 3), lambda line: show_rate(line.main()["throughput_bps"])),
    (Column("RTT", True, 4), FlowLine.rtt),
    (Column("problems", breaks_after=","), FlowLine.problems),
    (Column("", rank=1), lambda line: line.related),
)


def process_of(flow: FlowRow) -> str:
    """Returns the process of a flow; an empty text if it is unknown."""
    return process_str(flow["process_name"], flow["process_id"])


def protocol_text(flow: FlowRow) -> str:
    """`udp rtp`, `ip 253`: a protocol that wiretale does not decode has its number only."""
    number = str(flow["protocol_number"]) if flow["protocol"] == "ip" else None
    return " ".join(filter(None, (flow["protocol"], number, flow["application"])))


def capture_line(row: InterfaceRow) -> RenderableType:
    """Returns the two lines of an input interface."""
    line = Text(printable(row["file"]), style="bold")
    if row["name"]:
        line.append(f" [{shown_cell(row['name'])}]")
    kind = row["format"] if row["compression"] == "none" else f"{row['format']}, {row['compression']}"
    facts = [kind, row["link_type_name"] or f"link type {row['link_type']}", plural(row["packets"], "packet")]
    facts.append(f"{show_bytes(row['bytes'])} of frames")
    if row["captured_bytes"] < row["bytes"]:
        facts.append(f"{show_bytes(row['captured_bytes'])} captured")
    if (first_ns := row["first_ns"]) is not None:
        facts.append(f"{show_duration(duration_of(row))} from {show_time(first_ns)}")
    if (row["clock_tick_ns"] or 0) > FINE_TICK_NS:
        facts.append(f"clock ticks every {show_duration(row['clock_tick_ns'])}")
    if row["filtered_packets"]:
        facts.append(f"{row['filtered_packets']:,} filtered out")
    drops = drops_of(row)
    facts.append("drop count unavailable" if drops is None else f"{drops:,} dropped by the capture")
    if row["truncated_packets"]:
        facts.append(f"{row['truncated_packets']:,} truncated (snaplen {row['snaplen'] or 'unknown'})")
    return Group(line, indented(Text(", ".join(facts))))


def capture_lines(trace: Trace) -> Iterator[RenderableType]:
    """Yields the first input interfaces and, if there are more, the sums over all."""
    yield from map(capture_line, trace.interfaces.rows(0, CAPTURES_SHOWN))
    left = len(trace.interfaces) - CAPTURES_SHOWN
    if left > 0:
        packets, size = (sum(trace.interfaces.column(name)) for name in ("packets", "bytes"))
        times = [[ns for ns in trace.interfaces.column(name) if ns is not None] for name in ("first_ns", "last_ns")]
        span = f", {show_duration(max(times[1]) - min(times[0]))} from {show_time(min(times[0]))}" if times[0] else ""
        more = plural(left, "more input interface")
        yield Text(f"and {more}: {plural(packets, 'packet')}, {show_bytes(size)} of frames in all{span}")


def flow_paragraphs(lines: Sequence[FlowLine]) -> Grid:
    """Returns the flows for a narrow terminal: endpoints, then the figures that are known."""
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    for line in lines:
        facts = [plural(line.flow["packets"], "packet"), f"{show_bytes(line.flow['wire_bytes'])} on the wire"]
        facts += [show_rate(line.main()["throughput_bps"]), f"RTT {line.rtt()}"]
        if process := process_of(line.flow):
            facts.append(f"process {process}")
        facts += [line.flow["state"] or "", line.problems(), line.related]
        figures = ", ".join(fact for fact in facts if fact and UNKNOWN not in fact)
        ends = f"{line.flow['protocol']} {flow_str(line.flow)}"
        grid.add_row(str(line.flow["flow"]), Text(f"{printable(ends)}\n{printable(figures)}"))
    return grid


def flow_grid(trace: Trace, numbers: Sequence[int], width: int) -> Grid:
    """Returns the flows as a table with as many columns as fit, else as paragraphs."""
    texts, sides = relation_texts(trace), trace.directions
    lines = [
        FlowLine(row_at(trace.flows, n), row_at(sides, 2 * n), row_at(sides, 2 * n + 1), texts.get(n, ""))
        for n in numbers
    ]
    columns = [(column, cells) for column, cell in FLOW_COLUMNS if any(cells := list(map(cell, lines)))]
    rows = [list(map(Text, map(printable, row))) for row in zip(*(cells for _, cells in columns), strict=True)]
    grid = table([column for column, _ in columns], rows, width - INDENT)
    return flow_paragraphs(lines) if grid is None else grid


def fragmentation_parts(trace: Trace) -> Iterator[RenderableType]:
    """Yields the sums over fragmented datagrams, if there are any."""
    if len(trace.datagrams):
        yield section("Fragmentation", fragmentation_line(trace))


def fragmentation_line(trace: Trace) -> Text:
    """Returns the sums over fragmented datagrams."""
    states = trace.datagrams.column("state")
    fragments, overhead = (sum(trace.datagrams.column(name)) for name in ("fragments", "overhead_bytes"))
    wire_bytes = sum(trace.directions.column("wire_bytes"))
    odd = {name: sum(trace.datagrams.column(name)) for name in ("out_of_order", "duplicates", "overlaps", "late")}
    more = "".join(f", {count:,} {name.replace('_', ' ')}" for name, count in odd.items() if count)
    return Text(
        f"{plural(len(states), 'datagram')} in {plural(fragments, 'fragment')}: {states.count('complete'):,} complete, "
        f"{states.count('incomplete'):,} incomplete{more}; {show_bytes(overhead)} of headers and gaps "
        f"({show_share(overhead, wire_bytes)} of the wire bytes)"
    )


def any_packet(trace: Trace) -> bool:
    """Returns whether a packet was left to analyze."""
    return any(trace.interfaces.column("packets"))


def judged_lines(judged: Judged) -> Iterator[Text]:
    """Yields the line about what was judged; none without a packet."""
    if sentence := judged.sentence():
        yield Text(f"\n{sentence}")


def link_share(transfer: Explained) -> str:
    """Returns the goodput as a share of the link's maximum; empty if the link is unknown."""
    if transfer.used is None or transfer.maximum_bps is None:
        return ""
    return f"; {show_share(transfer.used, 1)} of the {show_rate(transfer.maximum_bps)} of payload that the link carries"


def flow_parts(trace: Trace, width: int, most: int) -> Iterator[RenderableType]:
    """Yields the largest flows, and the others with the most problems."""
    count = len(trace.flows)
    if not count:
        yield Text("\nNo IP packet was captured." if any_packet(trace) else "\nNo packet was analyzed.")
        return
    largest, problematic = choose_flows(trace, most, PROBLEMATIC_SHOWN)
    more = count > len(largest)
    heading = f"Flows: the {len(largest)} largest of {count:,}" if more else plural(count, "flow").capitalize()
    heading += conversations_text(trace)
    if largest:
        yield section(heading, flow_grid(trace, largest, width))
    if problematic:
        yield section("Other flows with problems", flow_grid(trace, problematic, width))

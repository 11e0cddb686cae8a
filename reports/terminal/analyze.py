# SPDX-License-Identifier: Apache-2.0
"""An analysis in the terminal: the capture and what is wrong with it first, then flows, fragmentation, findings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import IO, TYPE_CHECKING, Any, Literal

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from wiretale.analyzer.findings.explain import Explained, explain
from wiretale.analyzer.findings.model import named, row_at
from wiretale.analyzer.printable import printable
from wiretale.analyzer.table import shown_cell
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import (
    UNKNOWN,
    plural,
    show_bytes,
    show_count,
    show_duration,
    show_rate,
    show_share,
)
from wiretale.reports.flow_choice import choose_flows
from wiretale.reports.trouble_words import TROUBLES, trouble_text

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

FLOWS_SHOWN = 10
CAPTURES_SHOWN = 8
TROUBLED_SHOWN = 5
LIMITS_SHOWN = 5
GAP = 3  # columns between those of the table of flows
INDENT = 2
PIPE_WIDTH = 160  # columns where there is no terminal to ask
WIDTH_LEAST, WIDTH_MOST = 20, 10_000  # columns that somebody may ask for
STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}

Row = dict[str, Any]


@dataclass(frozen=True)
class FlowLine:
    """A flow and its directions, as the table of flows shows them."""

    flow: Row
    out: Row
    back: Row

    def sum(self, column: str) -> int:
        """Over both directions; nulls count nothing."""
        return (self.out[column] or 0) + (self.back[column] or 0)

    def trouble(self) -> str:
        """What went wrong, in few words."""
        sums = {name: self.sum(name) for kind in TROUBLES for name in kind.columns}
        return trouble_text(sums, self.flow["icmp_errors"])

    def duration(self) -> int | None:
        """From the first packet to the last, ns."""
        first, last = self.flow["first_ns"], self.flow["last_ns"]
        return None if first is None else last - first

    def more(self) -> Row:
        """The direction that carries more."""
        return max(self.out, self.back, key=lambda row: row["wire_bytes"])


@dataclass(frozen=True)
class FlowColumn:
    """A column of the table of flows; where not all fit, the one of the greatest rank goes first, those of 0 never."""

    head: str
    cell: Callable[[FlowLine], str]
    rank: int = 0
    right: bool = True
    breaks_at: str = "\n"  # where a cell may go on in the next line

    def least_width(self, lines: Sequence[FlowLine]) -> int:
        """Of the widest piece that cannot be broken."""
        cells = [self.head, *(self.cell(line) for line in lines)]
        pieces = [piece for cell in cells for piece in re.split(f"(?<={self.breaks_at}) ", cell)]
        return max(map(len, pieces))


def rtt_cell(line: FlowLine) -> str:
    """Least round trip over both directions: the whole path where the handshake tells it."""
    known = line.flow["handshake_rtt_ns"]
    return show_duration(known if known is not None else line.more()["rtt_ns_median"])


FLOW_COLUMNS = (
    FlowColumn("flow", lambda line: str(line.flow["flow"])),
    FlowColumn("", lambda line: " ".join(filter(None, (line.flow["protocol"], line.flow["application"]))), 1, False),
    FlowColumn("initiator → responder", lambda line: named(line.flow), 0, False, "→"),
    FlowColumn("inside", lambda line: line.flow["path"] or "", 9, False, "/"),
    FlowColumn("state", lambda line: line.flow["state"] or "", 6, False),
    FlowColumn("packets", lambda line: show_count(line.flow["packets"]), 2),
    FlowColumn("→", lambda line: show_bytes(line.out["payload_bytes"]), 7),
    FlowColumn("←", lambda line: show_bytes(line.back["payload_bytes"]), 8),
    FlowColumn("bytes", lambda line: show_bytes(line.flow["wire_bytes"])),
    FlowColumn("lasted", lambda line: show_duration(line.duration()), 5),
    FlowColumn("throughput", lambda line: show_rate(line.more()["throughput_bps"]), 3),
    FlowColumn("RTT", rtt_cell, 4),
    FlowColumn("trouble", lambda line: line.trouble(), 0, False, ","),
)


def make_console(out: IO[str], width: int | None = None) -> Console:
    """As wide as the terminal; a pipe gets plain text of a fixed width (or COLUMNS)."""
    if width is None and not out.isatty():
        asked = os.environ.get("COLUMNS", "")
        width = int(asked) if asked.isdecimal() and WIDTH_LEAST <= int(asked) <= WIDTH_MOST else PIPE_WIDTH
    return Console(file=out, width=width, highlight=False, emoji=False, markup=False, soft_wrap=False)


def capture_line(row: Row) -> RenderableType:
    """One input interface."""
    line = Text(printable(row["file"]), style="bold")
    if row["name"]:
        line.append(f" [{shown_cell(row['name'])}]")
    kind = row["format"] if row["compression"] == "none" else f"{row['format']}, {row['compression']}"
    facts = [kind, row["link_type_name"] or f"link type {row['link_type']}", plural(row["packets"], "packet")]
    facts.append(show_bytes(row["bytes"]))
    if row["first_ns"] is not None:
        facts.append(f"{show_duration(row['last_ns'] - row['first_ns'])} from {show_time(row['first_ns'])}")
    if row["filtered_packets"]:
        facts.append(f"{row['filtered_packets']:,} left out")
    facts.append(drops_fact(row))
    if row["truncated_packets"]:
        facts.append(f"{row['truncated_packets']:,} cut to {row['snaplen'] or '?'} bytes")
    return Group(line, Padding(Text(", ".join(facts)), (0, 0, 0, INDENT)))


def captures_left(trace: Trace) -> Text:
    """What the input interfaces that are not shown add up to with the others."""
    packets, size = (sum(trace.interfaces.column(name)) for name in ("packets", "bytes"))
    times = [[ns for ns in trace.interfaces.column(name) if ns is not None] for name in ("first_ns", "last_ns")]
    span = f", {show_duration(max(times[1]) - min(times[0]))} from {show_time(min(times[0]))}" if times[0] else ""
    more = plural(len(trace.interfaces) - CAPTURES_SHOWN, "more input interface")
    return Text(f"and {more}: {plural(packets, 'packet')}, {show_bytes(size)} in all{span}")


def drops_fact(row: Row) -> str:
    """What the file tells of drops."""
    known = [row[name] for name in ("dropped_kernel", "dropped_interface", "dropped_program") if row[name] is not None]
    return f"{sum(known):,} dropped by the capture" if known else "drops not told"


def finding_block(row: Row) -> RenderableType:
    """One finding: severity, sentence, evidence, advice, filter."""
    lines = Grid.grid(padding=(0, 1))
    lines.add_column(no_wrap=True, min_width=8)
    lines.add_column(overflow="fold")
    lines.add_row(Text(row["severity"], style=STYLES[row["severity"]]), Text(printable(row["sentence"])))
    for name in ("evidence", "advice", "filter"):
        if row[name]:
            lines.add_row(Text(name, style="dim"), Text(printable(row[name]), style="dim" if name != "advice" else ""))
    return lines


def flow_line(trace: Trace, number: int) -> FlowLine:
    """A flow with its directions."""
    out, back = trace.directions.rows(2 * number, 2 * number + 2)
    return FlowLine(row_at(trace.flows, number), out, back)


def flow_paragraphs(lines: Sequence[FlowLine]) -> Grid:
    """The flows where no table fits: who with whom, then the figures."""
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    for line in lines:
        facts = [
            plural(line.flow["packets"], "packet"),
            show_bytes(line.flow["wire_bytes"]),
            show_rate(line.more()["throughput_bps"]),
            f"RTT {rtt_cell(line)}",
            line.flow["state"],
            line.trouble(),
        ]
        known = ", ".join(fact for fact in facts if fact and UNKNOWN not in fact)
        who = f"{line.flow['protocol']} {named(line.flow)}"
        grid.add_row(str(line.flow["flow"]), Text(f"{printable(who)}\n{printable(known)}"))
    return grid


def fit_columns(lines: Sequence[FlowLine], width: int) -> list[tuple[FlowColumn, int]]:
    """The columns that hold something and fit, with the width that each needs; none where no table fits."""
    columns = [(c, c.least_width(lines)) for c in FLOW_COLUMNS if any(c.cell(line) for line in lines)]
    while sum(least for _, least in columns) + GAP * (len(columns) - 1) > width:
        last = max(columns, key=lambda pair: pair[0].rank)
        if not last[0].rank:
            return []
        columns.remove(last)
    return columns


def flow_grid(trace: Trace, numbers: Sequence[int], width: int) -> Grid:
    """The flows as a table of as many columns as fit, or as paragraphs."""
    lines = [flow_line(trace, number) for number in numbers]
    columns = fit_columns(lines, width - INDENT)
    if not columns:
        return flow_paragraphs(lines)
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column, least in columns:
        justify: Literal["left", "right"] = "right" if column.right else "left"
        grid.add_column(column.head, justify=justify, overflow="fold", min_width=least)
    for line in lines:
        grid.add_row(*(Text(printable(column.cell(line))) for column, _ in columns))
    return grid


def fragmentation_line(trace: Trace) -> Text | None:
    """What came in fragments, in one line."""
    states = trace.datagrams.column("state")
    if not states:
        return None
    fragments = sum(trace.datagrams.column("fragments"))
    whole = sum(trace.directions.column("wire_bytes"))
    overhead = sum(trace.datagrams.column("overhead_bytes"))
    late = {name: sum(trace.datagrams.column(name)) for name in ("out_of_order", "duplicates", "overlaps", "late")}
    odd = "".join(f", {count:,} {name.replace('_', ' ')}" for name, count in late.items() if count)
    return Text(
        f"{plural(len(states), 'datagram')} in {plural(fragments, 'fragment')}: {states.count('complete'):,} complete, "
        f"{states.count('incomplete'):,} incomplete{odd}; {show_bytes(overhead)} of headers and gaps "
        f"({show_share(overhead, whole)} of the wire bytes)"
    )


def section(title: str, *parts: RenderableType) -> RenderableType:
    """A heading and what is under it."""
    return Group(Text(f"\n{title}", style="bold underline"), *(Padding(part, (0, 0, 0, INDENT)) for part in parts))


def print_summary(
    trace: Trace, out: IO[str], flows: int = FLOWS_SHOWN, width: int | None = None, link_bps: int | None = None
) -> None:
    """Writes what an engineer wants to know first; `flows` of the largest are listed."""
    if out.isatty():
        print_sections(trace, make_console(out, width), flows, link_bps)
        return
    plain = StringIO()  # tables are padded to the width, which only a terminal needs
    print_sections(trace, make_console(plain, width), flows, link_bps)
    out.writelines(line.rstrip() + "\n" for line in plain.getvalue().splitlines())


def print_sections(trace: Trace, console: Console, flows: int, link_bps: int | None = None) -> None:
    """The capture and what is wrong with it, flows, fragmentation, findings."""
    found = trace.findings.rows()
    about_capture = [row for row in found if row["scope"] == "capture"]
    others = [row for row in found if row["scope"] != "capture"]
    for row in trace.interfaces.rows(0, CAPTURES_SHOWN):
        console.print(capture_line(row))
    if len(trace.interfaces) > CAPTURES_SHOWN:
        console.print(captures_left(trace))
    if about_capture:
        console.print(section("The capture itself", *map(finding_block, about_capture)))
    print_flows(trace, console, flows)
    limits = limit_lines(trace, link_bps)
    if limits:
        console.print(section("What limited them", *limits))
    fragmentation = fragmentation_line(trace)
    if fragmentation:
        console.print(section("Fragmentation", fragmentation))
    if others:
        console.print(section("Findings", *map(finding_block, others)))
    if all(row["severity"] == "info" for row in found) and any_packet(trace):
        console.print(
            Text(f"\nNothing {'worse ' if found else ''}is wrong, as far as this capture tells.", style="green")
        )


def told_first(one: Explained) -> bool:
    """Whether it is known what limited it, and it is no control connection beside what matters."""
    return not one.transfer.minor and (one.limited_by is not None or one.used is not None)


def limit_lines(trace: Trace, link_bps: int | None) -> list[Text]:
    """A line for each of the largest transfers that lasted: what limited it, and what the link would carry."""
    known = [one for one in explain(trace, link_bps) if told_first(one)]
    lines = []
    for one in known[:LIMITS_SHOWN]:
        line = Text(f"flow {one.transfer.row['flow']} {printable(one.transfer.name)}: ")
        line.append(one.headline, style="bold")
        if one.used is not None and one.maximum_bps is not None:
            line.append(
                f"; {show_share(one.used, 1)} of the {show_rate(one.maximum_bps)} of payload that the link carries"
            )
        lines.append(line)
    return lines


def any_packet(trace: Trace) -> bool:
    """Whether a packet was left to analyze."""
    return any(trace.interfaces.column("packets"))


def print_flows(trace: Trace, console: Console, most: int) -> None:
    """The sections of flows."""
    count = len(trace.flows)
    if not count:
        console.print(Text("\nNo IP conversation in it." if any_packet(trace) else "\nNo packet was analyzed."))
        return
    largest, troubled = choose_flows(trace, most, TROUBLED_SHOWN)
    title = (
        f"Flows: the {len(largest)} largest of {count:,}"
        if count > len(largest)
        else plural(count, "flow").capitalize()
    )
    if largest:
        console.print(section(title, flow_grid(trace, largest, console.width)))
    if troubled:
        console.print(section("Others with trouble", flow_grid(trace, troubled, console.width)))

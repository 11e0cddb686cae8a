# SPDX-License-Identifier: Apache-2.0
"""The flows of a capture in a few rows, those of the answer first: a row is a transfer or a conversation, or, if there are many,
all flows to one server."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from wiretale.analyzer.findings.model import (
    duration_of,
    endpoint_str,
    process_str,
    protocol_str,
    row_at,
    segments,
)
from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import UNKNOWN, plural, show_bytes, show_count, show_duration, show_rate
from wiretale.reports.terminal.fitted import Column, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wiretale.analyzer.rows import DirectionRow, FlowRow
    from wiretale.analyzer.trace import Trace

ROWS_MOST = 8
GROUPED_MOST = 300  # flows that are summed by conversation or server
DIALOGUE, TRANSFER = "↔", "→"
ONE_WAY = 0.9  # of the payload: a transfer, if it is large
LARGE = 100_000  # bytes of payload, from which on a rate says something
UNBROKEN = "\0"  # in no name
#: kinds of exchanges that a person does not ask for
BELOW = ("connect", "arp", "nd")
ANSWERED = ("answered", "error", "refused")
OF_NAMES = ("dns", "mdns", "llmnr")  # whose names are questions, and not those of their servers
LOST = ("lost_upstream", "lost_downstream", "blocks_lost")


class Requests(NamedTuple):
    """The exchanges of a flow."""

    number: int = 0
    answered: int = 0
    failed_connects: int = 0


@dataclass(frozen=True)
class FlowSum:
    """A flow, or the flows of a conversation or to one server. A number is None if it is unknown."""

    name: str
    server_name: str
    server: str
    processes: frozenset[str]  # with "" if that of a flow is unknown
    flows: int
    opened: int  # connections that were set up, or whose beginning was not captured
    requests: int
    answered: int
    payload_bytes: int
    lost: int | None
    rtt_ns: int | None
    duration_ns: int | None = None
    bps: float | None = None
    of_answer: bool = False

    def process(self) -> str:
        """Returns the process of all flows, or how many they have; empty if that of one is unknown."""
        if "" in self.processes:
            return ""
        return min(self.processes) if len(self.processes) == 1 else plural(len(self.processes), "process", "processes")


#: the columns that say something of a row; empty without a number, and zero losses and requests count as none
COLUMNS: tuple[tuple[Column, Callable[[FlowSum], str]], ...] = (
    (Column("Flows"), lambda flow: flow.name),
    (Column("server", rank=9), lambda flow: "" if flow.server_name in flow.name else flow.server_name),
    (Column("process", rank=3), FlowSum.process),
    (Column("flows", True, 3), lambda flow: show_count(flow.flows)),
    (Column("opened", True, 2), lambda flow: show_count(flow.opened)),
    (Column("requests", True, 4), lambda flow: show_count(flow.requests) if flow.requests else ""),
    (Column("answered", True, 2), lambda flow: show_count(flow.answered) if flow.requests else ""),
    (Column("bytes", True, 5), lambda flow: show_bytes(flow.payload_bytes) if flow.payload_bytes else ""),
    (Column("time", True, 6), lambda flow: show_duration(flow.duration_ns) if flow.duration_ns else ""),
    (Column("rate", True, 7), lambda flow: "" if flow.bps is None else show_rate(flow.bps)),
    (Column("lost", True, 1), lambda flow: "" if flow.lost is None else show_count(flow.lost)),
    (Column("RTT", True, 8), lambda flow: "" if flow.rtt_ns is None else show_duration(flow.rtt_ns)),
)
#: whether any row has what a column is there for
NEEDS: dict[str, Callable[[FlowSum], bool]] = {
    "flows": lambda flow: flow.flows > 1,
    "opened": lambda flow: flow.opened < flow.flows,
    "answered": lambda flow: flow.answered < flow.requests,
    "lost": lambda flow: bool(flow.lost),
}


def added(group: Sequence[FlowSum], name: str) -> FlowSum:
    """Returns the sums over some rows; the row itself if it is one."""
    if len(group) == 1:
        return replace(group[0], name=name)
    losses = [flow.lost for flow in group if flow.lost is not None]
    return FlowSum(
        name,
        next((flow.server_name for flow in group if flow.server_name), ""),
        group[0].server,
        frozenset().union(*map(attrgetter("processes"), group)),
        sum(flow.flows for flow in group),
        sum(flow.opened for flow in group),
        sum(flow.requests for flow in group),
        sum(flow.answered for flow in group),
        sum(flow.payload_bytes for flow in group),
        sum(losses) if losses else None,
        min((flow.rtt_ns for flow in group if flow.rtt_ns is not None), default=None),
        of_answer=any(flow.of_answer for flow in group),
    )


def merged(rows: Sequence[FlowSum], key: Callable[[FlowSum], tuple[str, ...]]) -> list[FlowSum]:
    """Returns the sums over the rows of each key, which begins with their name."""
    groups: dict[tuple[str, ...], list[FlowSum]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return [added(group, name) for (name, *_), group in groups.items()]


def application_of(flow: FlowRow) -> str:
    """Returns ` (HTTP)`, the application that the packets show, or the protocol if it is not TCP."""
    name = flow["application"] or (flow["protocol"] if flow["protocol"] != "tcp" else "")
    return f" ({protocol_str(name)})" if name else ""


def ends_of(flow: FlowRow, sides: Sequence[DirectionRow], has_port: bool) -> str:
    """Returns `10.0.0.1 → 10.0.0.2:80 (HTTP)`: an arrow where the data go, else client and server of a dialogue."""
    sizes, client = [side["payload_bytes"] or 0 for side in sides], flow["client"] or 0
    is_transfer = max(sizes) > ONE_WAY * sum(sizes) and sum(sizes) >= LARGE
    names = [
        endpoint_str(side["source"], side["source_port"] if has_port or number != client else None)
        for number, side in enumerate(sides)
    ]
    first = sizes.index(max(sizes)) if is_transfer else client
    return f"{names[first]} {TRANSFER if is_transfer else DIALOGUE} {names[1 - first]}{application_of(flow)}"


def server_of(flow: FlowRow) -> str:
    """Returns address, port and application of the server."""
    ends = ((flow["destination"], flow["destination_port"]), (flow["source"], flow["source_port"]))
    return f"{endpoint_str(*ends[flow['client'] or 0])}{application_of(flow)}"


def requests_by_flow(trace: Trace, numbers: Sequence[int]) -> dict[int, Requests]:
    """Returns the requests of each of these flows."""
    if not len(trace.exchanges):
        return {}
    words = {number: word for word, number in trace.transfers.words.items()}
    fields = [("flow", "I", 0, 1), ("kind", "B", 0, 1), ("outcome", "B", 0, 1)]
    packed = trace.exchanges._packed_columns(fields, sorted(numbers))
    columns = (array(code, raw) for (_, code, *_), raw in zip(fields, packed, strict=True))
    requests: dict[int, Requests] = {}
    for (flow, kind, outcome), count in Counter(zip(*columns, strict=True)).items():
        before, is_answered = requests.get(flow, Requests()), words.get(outcome) in ANSWERED
        if words.get(kind) == "connect" and words.get(outcome) != "answered":
            requests[flow] = before._replace(failed_connects=before.failed_connects + count)
        elif words.get(kind) not in BELOW:
            requests[flow] = before._replace(
                number=before.number + count, answered=before.answered + count * is_answered
            )
    return requests


def sum_of(trace: Trace, number: int, requests: Requests, of_answer: bool, has_port: bool) -> FlowSum:
    """Returns the row of a flow."""
    flow = row_at(trace.flows, number)
    sides = trace.directions.rows(2 * number, 2 * number + 2)
    losses = [count for side in sides for column in LOST if (count := segments(side, column)) is not None]
    main = max(sides, key=lambda side: side["payload_bytes"] or 0)
    return FlowSum(
        ends_of(flow, sides, has_port),
        "" if flow["application"] in OF_NAMES else flow["server_name"] or "",
        server_of(flow),
        frozenset([process_str(flow["process_name"], flow["process_id"])]),
        1,
        0 if requests.failed_connects else 1,
        requests.number,
        requests.answered,
        flow["payload_bytes"] or 0,
        sum(losses) if losses else None,
        flow["handshake_rtt_ns"] if flow["handshake_rtt_ns"] is not None else main["rtt_ns_min"],
        duration_of(flow),
        main["throughput_bps"] if (main["payload_bytes"] or 0) >= LARGE else None,
        of_answer,
    )


def flows_of_answer(trace: Trace) -> list[int]:
    """Returns the flows that the answer is about."""
    answer = trace.answer
    if answer.number is not None:
        flows = [row["flow"] for row in trace.cause_flows if row["cause"] == answer.number]
    else:
        flows = [row["flow"] for row in trace.finding_flows if row["finding"] in answer.findings]
    return list(dict.fromkeys(flows))


def sums_of(trace: Trace, numbers: Collection[int], has_port: bool) -> list[FlowSum]:
    """Returns the row of each of these flows."""
    requests, of_answer = requests_by_flow(trace, list(numbers)), set(flows_of_answer(trace))
    return [
        sum_of(trace, number, requests.get(number, Requests()), number in of_answer, has_port) for number in numbers
    ]


def table_rows(trace: Trace) -> tuple[list[FlowSum], int]:
    """Returns the rows, and how many flows or servers have none."""
    judged = [number for number in range(len(trace.flows)) if number not in trace.transfers.legs]
    if len(judged) > GROUPED_MOST:
        first = dict.fromkeys([*flows_of_answer(trace), *trace.transfers.largest_flows(ROWS_MOST)])
        return sums_of(trace, list(first)[:ROWS_MOST], True), len(judged) - ROWS_MOST
    rows = sums_of(trace, judged, False)
    names = Counter(row.name for row in rows)
    if any(TRANSFER in name and count > 1 for name, count in names.items()):
        apart = sums_of(trace, judged, True)
        rows = [alone if TRANSFER in row.name else row for row, alone in zip(rows, apart, strict=True)]
    rows = merged(rows, lambda row: (row.name, *row.processes))
    if len(rows) > ROWS_MOST:
        rows = merged(rows, lambda row: (row.server,))
    rows.sort(key=lambda row: (not row.of_answer, -row.payload_bytes))
    return rows[:ROWS_MOST], max(len(rows) - ROWS_MOST, 0)


def cells_of(rows: Sequence[FlowSum]) -> list[tuple[Column, list[str]]]:
    """Returns the columns that say something of these flows, with their cells."""
    needed = [
        (column, list(map(cell, rows)))
        for column, cell in COLUMNS
        if column.head not in NEEDS or any(map(NEEDS[column.head], rows))
    ]
    return [
        (column, [cell or (UNKNOWN if column.right else "") for cell in cells])
        for column, cells in needed
        if any(cells)
    ]


def flow_lines(trace: Trace, width: int) -> Iterator[RenderableType]:
    """Yields the table of flows; nothing without a flow. A name that does not fit continues after its sign."""
    if not len(trace.flows):
        return
    rows, left = table_rows(trace)
    columns = cells_of(rows)
    texts = [list(map(Text, map(printable, cells))) for cells in zip(*(cells for _, cells in columns), strict=True)]
    first, *others = (column for column, _ in columns)
    sign = DIALOGUE if any(DIALOGUE in row.name for row in rows) else TRANSFER
    tables = (
        table([first._replace(breaks_after=mark), *others], texts, width, is_ruled=False) for mark in (UNBROKEN, sign)
    )
    yield Text()
    yield next((grid for grid in tables if grid is not None), Text(plural(len(trace.flows), "flow")))
    if left:
        kind = "server" if any(row.flows > 1 for row in rows) else "flow"
        yield Text(f"{plural(left, f'more {kind}')}: --all", style="dim")

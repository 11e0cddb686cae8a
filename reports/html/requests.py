# SPDX-License-Identifier: Apache-2.0
"""The requests of the page's waterfall: exchanges of flows, with the handshakes of TLS and QUIC before them."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

from wiretale.reports.html.packing import encoded

if TYPE_CHECKING:
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

ROWS_MOST = 5_000  # about 30 bytes each in the page
#: exchanges of a person's or a program's session; ARP, neighbor discovery, pings and 802.1X are none
KINDS = ("dns", "connect", "http", "tls", "turn", "service", "sip", "radius", "dhcp")
WORDS = ("kind", "within", "client", "server", "name", "type", "outcome", "code", "turn", "response_bytes")
DURATIONS = (
    *("waited_ns", "request_ns", "request_pause_ns", "network_ns", "server_ns", "response_ns", "response_pause_ns"),
    *("pause_ns", "client_network_ns"),
    *("retransmission_client_ns", "retransmission_network_ns", "retransmission_server_ns"),
)
SERVER_TIME = {"server_ns": "server_time"}  # the server is another member


def numbers_of(table: Table, flows: Sequence[int], most: int) -> list[int]:
    """Returns the numbers of the first `most` rows of some flows."""
    numbers = array("I", table._packed("flow", "I"))
    return list(compress(range(len(numbers)), map(set(flows).__contains__, numbers)))[:most]


def request_row(row: Any, base_ns: int) -> dict[str, Any]:
    """Returns what the page draws of an exchange, without what is null."""
    drawn_row = {"flow": row["flow"], "frame": row["asked_frame"], "asked": row["asked_ns"] - base_ns}
    drawn_row |= {"answered": row["answered_frame"], "capture": row["capture"] or None}
    drawn_row |= {name: row[name] for name in WORDS}
    drawn_row |= {SERVER_TIME.get(name, name.removesuffix("_ns")): row[name] for name in DURATIONS}
    return {name: value for name, value in drawn_row.items() if value is not None}


def handshake_rows(trace: Trace, flows: set[int], base_ns: int) -> Iterator[dict[str, Any]]:
    """Yields the handshakes of flows: of TLS the duration, of QUIC all of it, because no exchange is about it."""
    for row in trace.handshakes._rows_at(numbers_of(trace.handshakes, sorted(flows), ROWS_MOST)):
        handshake = {"kind": f"handshake_{row['protocol']}", "flow": row["flow"], "duration": row["duration_ns"]}
        if row["protocol"] == "quic":
            (flow,) = trace.flows.rows(row["flow"], row["flow"] + 1)
            if flow["first_ns"] is None:
                continue
            handshake |= {"client": flow["source"], "server": flow["destination"], "name": row["server_name"]}
            handshake |= {"asked": flow["first_ns"] - base_ns, "frame": row["client_hello_frame"]}
        yield {name: value for name, value in handshake.items() if value is not None}


def request_rows(trace: Trace, ranked: Sequence[int], base_ns: int) -> dict[str, Any]:
    """Returns the exchanges of a capture if they are few, else those of the first flows of `ranked`, packed; `of` is how many
    there are."""
    table = trace.exchanges
    numbers: Sequence[int] = range(len(table))
    if len(table) > ROWS_MOST:
        sizes, room, flows = table._rows_by_flow(len(trace.flows)), ROWS_MOST, []
        for flow in ranked:
            if 0 < sizes[flow] <= room:
                flows.append(flow)
                room -= sizes[flow]
        numbers = numbers_of(table, flows, ROWS_MOST)
    rows = [row for row in table._rows_at(numbers) if row["kind"] in KINDS and row["asked_ns"] is not None]
    drawn_rows = [request_row(row, base_ns) for row in rows]
    drawn = {row["flow"] for row in rows if row["flow"] is not None}
    if len(table) <= ROWS_MOST:
        drawn |= set(ranked)  # those of QUIC have no exchange
    drawn_rows += handshake_rows(trace, drawn, base_ns)
    text = json.dumps(drawn_rows, separators=(",", ":"))
    return {"rows": encoded(text.encode()) if drawn_rows else "", "held": len(numbers), "of": len(table)}

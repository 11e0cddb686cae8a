# SPDX-License-Identifier: Apache-2.0
"""Connections that break because segments of the server came under its own address, not the one that was asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import any_filter
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import first_packets
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import FlowRow

FLOWS_MAX, PACKETS_MOST = 1_000, 40
AFTER_NS = 1_000_000_000  # the connection may have had its last packet before


class Stray(NamedTuple):
    """A connection, and the flow of segments that belong to it under another address."""

    connection: FlowRow
    stray: FlowRow


def is_stray(case: Case, row: FlowRow) -> bool:
    """Returns whether a flow is a few segments without a SYN that their receiver reset."""
    sides = case.direction(row["flow"], 0), case.direction(row["flow"], 1)
    return (
        row["packets"] <= PACKETS_MOST
        and not any(side["syns"] for side in sides)
        and bool(sides[0]["payload_bytes"])
        and bool(sides[1]["resets"])
        and not sides[1]["payload_bytes"]
    )


def strays_of(case: Case) -> list[Stray]:
    """Returns the stray flows whose ports are those of a connection of the same client to another address meanwhile."""
    flows = case.trace.flows
    numbers = case.transfers.flows_where("state", "reset")[:FLOWS_MAX]
    strays = [row for row in flows._rows_at(numbers) if row["protocol"] == "tcp" and is_stray(case, row)]
    by_ports = {(row["destination"], row["destination_port"], row["source_port"]): row for row in strays}
    if not by_ports:
        return []
    columns = (flows.column(name) for name in ("source", "source_port", "destination_port"))
    pairs = [
        Stray(case.flow(flow), by_ports[ends])
        for flow, ends in enumerate(zip(*columns, strict=True))
        if ends in by_ports and flow not in case.transfers.legs
    ]
    return [pair for pair in pairs if belongs(case, *pair)]


def belongs(case: Case, connection: FlowRow, stray: FlowRow) -> bool:
    """Returns whether a stray flow came while the connection was open."""
    begun, last = connection["first_ns"], connection["last_ns"]
    at_ns = stray["first_ns"]
    is_open = case.transfers.attempts.is_connection(connection["flow"])
    is_meanwhile = begun is not None and last is not None and at_ns is not None and begun < at_ns <= last + AFTER_NS
    return is_open and is_meanwhile and connection["destination"] != stray["source"]


@cause(
    code="untranslated",
    title="Segments come without address translation",
    sentence="{count:connection} to {server} {broke} because server segments came from {elsewhere} instead: the client knows no "
    "such connection and resets it.",
    advice="Let the device that translates {address} drop what it cannot assign (conntrack state INVALID: `iptables -I FORWARD "
    "-m conntrack --ctstate INVALID -j DROP`), or take it leniently (`nf_conntrack_tcp_be_liberal=1`).",
    shows="Segments with data and no SYN come to the ports of an open connection from an address other than the server's, and "
    "the client resets them.",
    rivals={
        "answer-elsewhere": "the handshake came from the address that was asked",
        "reset-by-peer": "the client reset segments of another address first",
        "port-reuse": "the connection was open, and the ports are those of another host",
    },
    unknown="Why the device did not translate: as a rule a segment outside of the window, or an entry that is gone.",
    explains=("reset", "retransmission-unlocated"),
)
def untranslated(case: Case) -> Matches:
    by_ends: dict[tuple[str, int | None, str, str], list[Stray]] = defaultdict(list)
    for each in strays_of(case):
        row = each.connection
        by_ends[row["destination"], row["destination_port"], row["source"], each.stray["source"]].append(each)
    for (address, port, _, elsewhere), strays in by_ends.items():
        yield stray_match(case, endpoint_str(address, port), address, elsewhere, strays)


def stray_match(case: Case, server: str, address: str, elsewhere: str, strays: Sequence[Stray]) -> Match:
    """Returns the match of connections whose segments came under another address."""
    flows = [row["flow"] for each in strays for row in each]
    count = len(strays)
    is_proven = count > 1 or strays[0].connection["state"] == "reset"
    return Match(
        certainty="proven" if is_proven else "likely",
        place="device",
        failed=count,
        attempts=count,
        flows=flows,
        frames=first_packets(case.transfers, [each.stray["flow"] for each in strays]),
        packets=sum(each.stray["packets"] for each in strays),
        filter=any_filter([each.stray for each in strays[:2]]),
        proof=f"{plural(count, 'flow')} of {elsewhere} to the ports of an open connection, reset by the client",
        excluded={"answer-elsewhere": f"the SYN-ACK came from {address}", "reset-by-peer": "the client reset first"},
        count=count,
        server=server,
        broke="broke" if all(each.connection["state"] == "reset" for each in strays) else "stumbled",
        elsewhere=elsewhere,
        address=address,
    )

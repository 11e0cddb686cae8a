# SPDX-License-Identifier: Apache-2.0
"""The rule about conversations that the capture has at several places: the other flows repeat what one of them shows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.model import Matches, endpoint_str, finding, flows_match, row_at
from wiretale.analyzer.findings.transfers import Transfers
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.rows import FlowRow, RelationRow

CHAPTER = "Related flows"
ROWS_MAX = 2_000  # relations whose places are counted
PLACES_SHOWN = 3


def ends_of(flow: FlowRow) -> list[str]:
    """Returns both ends, the initiator first."""
    return [
        endpoint_str(flow["source"], flow["source_port"]),
        endpoint_str(flow["destination"], flow["destination_port"]),
    ]


def hops_text(row: RelationRow) -> str:
    """Returns `, 1 router later`; empty if the TTL is the same or varies."""
    hops = row["hops"]
    return f", {plural(abs(hops), 'router')} {'later' if hops > 0 else 'earlier'}" if hops else ""


def place_of(row: RelationRow, flow: FlowRow, judged: FlowRow) -> str:
    """Returns where a leg is, beside the one that is judged: `in vlan 20, beside vlan 10, 1 router later`."""
    if row["kind"] == "translation":
        written = [
            f"{before} as {after}"
            for before, after in zip(ends_of(judged), ends_of(flow), strict=True)
            if before != after
        ]
        return " ".join(["behind a NAT", *(f"({text})" for text in written[:1])])
    names = [f"in {path}" if path else "without a tag or tunnel" for path in (flow["path"], judged["path"])]
    return f"{names[0]}, beside those {names[1]}{hops_text(row)}"


@finding(
    code="several-places",
    without_packets="every packet of both flows shows it",
    title="Conversations captured at several places",
    severity="info",
    scope="capture",
    computed="Flows of which the table of relations has another leg (relations.judged). It is the same TCP connection under "
    "other tags, in a tunnel, or behind a NAT, by its first sequence numbers, TSvals and times. Or it has the same datagrams "
    "under other tags, by their number, size and times. The leg with the most packets is judged. Other findings, sums and "
    "shares leave out the others; the flow tables list them.",
    unknown="Legs of datagrams behind a NAT; legs of connections whose sequence numbers a firewall rewrites; datagrams of "
    "multicast, because a host sends such packets on each of its links.",
    sentence="{count:flow repeats|flows repeat} the packets of {judged} at another place[: {places}][. Each conversation is "
    "judged once].",
    advice="Compare the legs to see what the devices between them do; filter one of them to halve the capture.",
)
def several_places(transfers: Transfers) -> Matches:
    trace = transfers.trace
    rows = [row for row in trace.relations.rows(0, ROWS_MAX) if row["judged"] is not None]
    judged = {row["judged"] for row in rows}
    pairs = [(row, row_at(trace.flows, row["flow"]), row_at(trace.flows, row["other"])) for row in rows]
    places = Counter(place_of(*pair) for pair in pairs).most_common(PLACES_SHOWN)
    yield from flows_match(
        transfers,
        sorted(transfers.legs),
        judged=plural(len(judged), "other flow") if len(rows) < ROWS_MAX else "other flows",
        places="; ".join(place for place, _ in places),
        filter=flow_filter(pairs[0][1]) if pairs else None,
        figures=f"{len(transfers.legs):,} of {len(trace.flows):,} flows",
    )

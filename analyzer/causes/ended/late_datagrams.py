# SPDX-License-Identifier: Apache-2.0
"""Datagrams that come when the program of the client has closed its port."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import any_filter
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.transfers import rows_of_kind
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import EventRow

ERRORS_MAX = 2_000
AFTER_MOST = 10  # datagrams to a closed port: more are those of a stream that goes on


def refused_ends(case: Case) -> dict[int, list[EventRow]]:
    """Returns the flows of UDP about which a client alone reported 'port unreachable', with these errors."""
    errors: dict[int, list[EventRow]] = defaultdict(list)
    for event in rows_of_kind(case.transfers, "icmp_error", ERRORS_MAX):
        if event["flow"] is not None:
            errors[event["flow"]].append(event)
    return {flow: events for flow, events in errors.items() if is_of_client(case, flow, events)}


def is_of_client(case: Case, flow: int, events: list[EventRow]) -> bool:
    """Returns whether a client reports its own port, from which it sent before and does not any more."""
    row = case.flow(flow)
    ports = row["source_port"] or 0, row["destination_port"] or 0
    if row["protocol"] != "udp" or ports[0] <= ports[1] or len(events) > AFTER_MOST:
        return False
    client = case.direction(flow, 0)  # it sent first, from a port of the moment
    first_ns = events[0]["time_ns"]
    return (
        all(event["cause"] == "port_unreachable" and event["router"] == client["source"] for event in events)
        and bool(client["packets"])
        and first_ns is not None
        and (client["last_ns"] or 0) <= first_ns
    )


@cause(
    code="late-datagrams",
    title="Datagrams for a port that its program had closed",
    sentence="{count:late datagram} found {ports} of {hosts} closed, and {hosts} answered with ICMP 'port unreachable': the "
    "{count:~program|programs} had what {count:~it|they} wanted, or had given up. Nobody waited for {count:~it|them}.",
    advice="Nothing to do, unless the client gives up too early: compare its timeout with the times of the answers.",
    shows="ICMP 'port unreachable' from the client of a UDP flow about its own port, after its last datagram, ten times at most.",
    rivals={
        "refused": "the client refuses, not the server: the port had been in use",
        "filtered": "the error comes from the end itself",
    },
    unknown="Whether the program had given up.",
    explains=("icmp-errors",),
)
def late_datagrams(case: Case) -> Matches:
    if not case.transfers.flow_counts["icmp_errors"]:
        return
    ends = {flow: events for flow, events in refused_ends(case).items() if flow not in case.claimed}
    if not ends:
        return
    events = [event for of_flow in ends.values() for event in of_flow]
    hosts = sorted({str(event["router"]) for event in events})
    yield Match(
        certainty="proven",
        place="client",
        severity="info",
        flows=list(ends),
        packets=len(events),
        frames=[Cited(event["frame"], event["time_ns"], event["flow"], event["capture"]) for event in events],
        filter=any_filter([case.flow(flow) for flow in ends]),
        proof=f"{plural(len(events), 'error')} by the host that had asked, after its last datagram",
        excluded={"refused": "the host that reports had sent from this port before"},
        count=len(events),
        ports="a port" if len(ends) == 1 else f"{len(ends):,} ports",
        hosts=hosts[0] if len(hosts) == 1 else plural(len(hosts), "client"),
    )

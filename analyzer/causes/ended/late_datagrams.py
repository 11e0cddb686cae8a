# SPDX-License-Identifier: Apache-2.0
"""Datagrams that come when the program of the client has closed its port."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import times_str
from wiretale.analyzer.causes.unanswered.silent_hosts import about, any_filter
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.transfers import rows_of_kind
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import EventRow, FlowRow

ERRORS_MAX = 2_000
SERVERS_MAX, LATE_MIN, DNS_PORT = 8, 2, 53  # flows to one server; DNS has causes of its own
ASKED_MIN, AGAIN_NS = 2, 200_000_000  # requests, and the time between them
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


class Belated(NamedTuple):
    """A flow of equal requests whose answers came when the client had asked again, the last one when it had closed its port."""

    row: FlowRow
    first_ns: int  # from the first request to the first answer
    again_ns: int  # from a request to the next one
    given_up_ns: int  # from the first request to the last


def belated(case: Case, flow: int) -> Belated | None:
    """Returns how late the answers of a flow came; None if the client did not ask again before the first one."""
    requests, answers = case.direction(flow, 0), case.direction(flow, 1)
    begin, end, answered = requests["first_ns"], requests["last_ns"], answers["first_ns"]
    if begin is None or end is None or answered is None or requests["packets"] < ASKED_MIN:
        return None
    again_ns = (end - begin) // (requests["packets"] - 1)
    are_equal = requests["payload_bytes"] == requests["packets"] * (requests["segment_max"] or 0)
    is_late = answered - begin > again_ns >= AGAIN_NS and answers["packets"] <= requests["packets"]
    return Belated(case.flow(flow), answered - begin, again_ns, end - begin) if are_equal and is_late else None


def belated_groups(case: Case) -> dict[tuple[str, str, int | None], list[Belated]]:
    """Returns the flows of late answers by client, server and port; two flows of the same ends or more."""
    by_ends: dict[tuple[str, str, int | None], list[Belated]] = defaultdict(list)
    flows = (
        [flow for flow in refused_ends(case) if flow not in case.claimed]
        if case.transfers.flow_counts["icmp_errors"]
        else []
    )
    for flow in flows:
        if (each := belated(case, flow)) and each.row["destination_port"] != DNS_PORT:
            by_ends[each.row["source"], each.row["destination"], each.row["destination_port"]].append(each)
    return {ends: group for ends, group in by_ends.items() if len(group) >= LATE_MIN}


@cause(
    code="late-udp-answers",
    title="The client gives up before the answers come",
    sentence="{server} {probably}answers {client} too late: the first answer to {count:request} took {took}, when {client} had "
    "asked again{again}, and the last ones came when it had closed its port.",
    advice="Let the client wait longer than {longest} before it asks again (`snmpwalk -t`, RADIUS and DNS `timeout`), or find "
    "out why {host} needs so long.",
    shows="A client sends a request of one size from one port at least twice, 200 ms or more apart. The first answer comes "
    "after the second request. The client rejects the last answer by ICMP 'port unreachable', because it had closed its port. "
    "At least two such flows to one server; DNS doesn't count.",
    rivals={
        "udp-silent": "the answers come, too late",
        "late-datagrams": "the client had asked again before the first answer",
    },
    unknown="Which request each answer belongs to.",
    explains=("icmp-errors",),
)
def late_udp_answers(case: Case) -> Matches:
    for (client, host, port), group in list(belated_groups(case).items())[:SERVERS_MAX]:
        flows, waits = [each.row["flow"] for each in group], sorted(each.first_ns for each in group)
        case.claimed.update(flows)
        yield Match(
            certainty="likely",
            place="server",
            findings=about(case, flows, "icmp-errors"),
            flows=flows,
            failed=len(group),
            attempts=len(group),
            waited_ns=math.fsum(each.given_up_ns for each in group),
            packets=sum(each.row["packets"] for each in group),
            filter=any_filter([each.row for each in group]),
            proof=f"{plural(len(group), 'flow')} whose first answer came after the second request, and the last to a closed port",
            excluded={"udp-silent": "answers came"},
            undecided={"late-datagrams": "the numbers of requests and answers: which belong together?"},
            server=endpoint_str(host, port),
            host=host,
            client=client,
            count=len(group),
            took=times_str(waits),
            longest=show_duration(waits[-1]),
            again=f" after {times_str(sorted(each.again_ns for each in group))}",
        )


@cause(
    code="late-datagrams",
    title="Datagrams for a port that its program had closed",
    sentence="{count:late datagram} found {ports} of {hosts} closed, and {hosts} answered with ICMP 'port unreachable': the "
    "{count:~program|programs} had what {count:~it|they} wanted, or had given up. Nobody waited for {count:~it|them}.",
    advice="Nothing to do, unless the client gives up too early: compare its timeout with the times of the answers.",
    shows="The client of a UDP flow sends ICMP 'port unreachable' about its own port, after its last datagram, at most ten "
    "times.",
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

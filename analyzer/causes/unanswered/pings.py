# SPDX-License-Identifier: Apache-2.0
"""Pings that get no answer while their host accepts connections."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import (
    ATTEMPTS_MAX,
    about,
)
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, packets_of
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow, FlowRow

PINGS_MIN, PING_BYTES = 3, 500  # of payload: larger pings test the path MTU
HEARD_NS = 60_000_000_000  # before the first ping: a host that was heard then is probably still up


def unanswered_pings(case: Case) -> dict[tuple[str, str], list[ExchangeRow]]:
    """Returns the pings by client and host, if none was answered or failed with an ICMP error; those at the end of the capture
    are left out."""
    by_ends: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    for row in exchanges_of(case.transfers, "icmp_echo") if case.findings("echo-unanswered") else ():
        by_ends[str(row["client"]), str(row["server"])].append(row)
    silent = {ends: [row for row in rows if row["outcome"] == "unanswered"] for ends, rows in by_ends.items()}
    return {
        ends: rows
        for ends, rows in silent.items()
        if len(rows) >= PINGS_MIN and all(row["outcome"] in ("unanswered", "cut_off") for row in by_ends[ends])
    }


def connections_between(case: Case, client: str, host: str) -> list[FlowRow]:
    """Returns the first connections of a client to a host that came about."""
    flows, attempts = case.trace.flows, case.transfers.attempts
    ends = zip(flows.column("source"), flows.column("destination"), strict=True)
    numbers = [flow for flow, pair in enumerate(ends) if pair == (client, host) and attempts.is_connection(flow)]
    return [case.flow(flow) for flow in numbers[:ATTEMPTS_MAX]]


@cause(
    code="ping-filtered",
    title="Pings are filtered",
    sentence="{host} is {probably}up, but it or a firewall drops pings: none of {count:ping} from {client} was answered, while "
    "{open} of the same client to it opened.",
    advice="Nothing is wrong if pings are forbidden there; test with a port instead: `nc -vz {host} {port}`.",
    shows="At least three small pings of a client to a host get no answer, while TCP connections between the two were "
    "established. The host was heard at most 60 s before the first ping, and no data to it lacks an ACK. It is sure if the "
    "host was heard after three of the pings, on a connection that began before the last one.",
    rivals={
        "host-down": "the host accepts connections of the same client",
        "outage": "a connection was open meanwhile",
        "mtu-black-hole": "the pings are small",
    },
    unknown="Whether the host or a device before it drops them, and which of request and reply.",
    explains=("echo-unanswered",),
)
def ping_filtered(case: Case) -> Matches:
    for (client, host), rows in unanswered_pings(case).items():
        flows = list(dict.fromkeys(row["flow"] for row in rows if row["flow"] is not None))
        cited_by, talks = about(case, flows, "echo-unanswered"), connections_between(case, client, host)
        is_small = all(
            (case.direction(flow, side)["segment_max"] or 0) <= PING_BYTES for flow in flows for side in (0, 1)
        )
        if cited_by and talks and is_small and is_heard(case, rows, talks):
            yield ping_match(case, rows, talks, host=host, client=client, findings=cited_by, flows=flows)


def is_heard(case: Case, rows: Sequence[ExchangeRow], talks: Sequence[FlowRow]) -> bool:
    """Returns whether a host was heard shortly before pings or later, and leaves no data without an ACK: else it may be down."""
    since_ns = min(row["asked_ns"] or 0 for row in rows) - HEARD_NS
    is_gone = any(case.direction(talk["flow"], 0)["unacked_bytes"] for talk in talks)
    return not is_gone and any((case.direction(talk["flow"], 1)["last_ns"] or 0) >= since_ns for talk in talks)


def were_open(case: Case, rows: Sequence[ExchangeRow], talks: Sequence[FlowRow]) -> bool:
    """Returns whether a host was heard on a connection while pings to it stayed without an answer."""
    times = sorted(row["asked_ns"] or 0 for row in rows)
    return any(
        (talk["first_ns"] or 0) <= times[-1]
        and (case.direction(talk["flow"], 1)["last_ns"] or 0) >= times[PINGS_MIN - 1]
        for talk in talks
    )


def ping_match(
    case: Case, rows: Sequence[ExchangeRow], talks: Sequence[FlowRow], *, host: str, client: str, **fields: Any
) -> Match:
    """Returns the match of pings without an answer beside connections to the same host."""
    is_sure = were_open(case, rows, talks)
    excluded = {"host-down": "it accepts connections of the same client"}
    return Match(
        certainty="proven" if is_sure else "likely",
        place="device",
        severity="warning",
        frames=packets_of(rows),
        packets=len(rows),
        filter=f"icmp.type == 8 && ip.dst == {host}" if "." in host else f"icmpv6.type == 128 && ipv6.dst == {host}",
        proof=f"{plural(len(talks), 'connection')} opened, and no ping of {len(rows):,} was answered",
        excluded=excluded | ({"outage": "a connection was open meanwhile"} if is_sure else {}),
        undecided={} if is_sure else {"outage": f"pings of {host} while a connection to it is open"},
        host=host,
        client=client,
        port=talks[0]["destination_port"] or 0,
        count=len(rows),
        open=plural(len(talks), "connection"),
        **fields,
    )

# SPDX-License-Identifier: Apache-2.0
"""Servers that close each connection after so many requests, while the next one is on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Certainty, Match, Matches, cause
from wiretale.analyzer.causes.connections import EXCHANGE_KINDS, ending_cited, largest_groups, server_str, times_str
from wiretale.analyzer.causes.ended.age import AGE_TEST, of_closes
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.findings.exchanges.exchange_rows import rows_where
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.rows import EndingRow

REQUESTS_MIN = 10  # fewer may be the whole work of a client
MET_MIN, PROVEN_MIN = 2, 3  # connections that ended after the same number of requests
BUSY_NS = 1_000_000_000  # since the last packet: a server that closes later had enough of waiting


class Met(NamedTuple):
    """A connection that its server closed, or reset, while the next request was on the way."""

    connection: Connection
    ending: EndingRow  # the first of the server


def met_by_request(connection: Connection, endings: Sequence[EndingRow], is_open: bool) -> EndingRow | None:
    """Returns the FIN or RST by which a busy server ended a connection first, if a request met it; else None."""
    first = min(endings, key=lambda row: (row["time_ns"] or 0, row["frame"]))
    client = connection.directions[connection.client_side]
    is_of_server = first["direction"] == connection.server_side and not client["fins"]
    is_met = bool(first["late_bytes"] or first["unacked_bytes"]) or (first["kind"] == "reset" and is_open)
    return first if is_of_server and is_met and (first["idle_ns"] or 0) < BUSY_NS else None


def met_connections(case: Case) -> list[Met]:
    """Returns the connections with such an end that no cause explains."""
    explained, connections = case.flows_of(), case.connections
    ends = connections.endings_with_reset.items()
    open_requests = connections.open_requests if ends else {}
    firsts = ((flow, met_by_request(connections[flow], rows, flow in open_requests)) for flow, rows in ends)
    return [Met(connections[flow], ending) for flow, ending in firsts if ending and flow not in explained]


def answered_counts(case: Case, flows: set[int]) -> dict[int, int]:
    """Returns how many requests of each of these connections were answered."""
    counts = dict.fromkeys(flows, 0)
    for row in rows_where(case.transfers, "kind", *EXCHANGE_KINDS):
        if row["flow"] in flows and row["outcome"] == "answered":
            counts[row["flow"]] = max(counts[row["flow"]], (row["turn"] or 0) + 1)
    return counts


@cause(
    code="request-limit",
    title="The server closes after a number of requests",
    sentence="The server {server} {probably}closes each connection after {limit} requests{or_age}, and does not say so before: "
    "{met} of {total:connection} ended at that count, with the next request already on the way, which it reset.",
    advice="Raise the limit at {host} or before it (nginx `keepalive_requests`, Apache `MaxKeepAliveRequests`, a pool's "
    "requests per connection), let it announce the close (`Connection: close` in its last answer), and let the client repeat a "
    "request that meets one.",
    shows="A server ends at least two connections, by FIN or RST, within 1 s of the last packet, while the next request is on "
    "its way. All end after the same number of answered requests (at least 10), which no other connection to it exceeds.",
    rivals={
        "reset-by-peer": "the connections ended at the same count, whatever the time",
        "close-race": "the connections were not idle",
        "age-limit": "the connections ended at other ages",
        "upload-cut": "the request that met the close had just begun",
    },
    unknown="Whether the last answer announced the close, within TLS.",
    explains=("reset", "spurious", "request-unanswered", "retransmission-unlocated"),
)
def request_limit(case: Case) -> Matches:
    for server, group in largest_groups(met_connections(case), lambda met: met.connection.server):
        if len(group) < MET_MIN:
            continue
        flows = {*case.connections.to_server(server), *(met.connection.number for met in group)}
        counts = answered_counts(case, flows)
        limit = max(counts.values())
        at_limit = [met for met in group if counts[met.connection.number] == limit]
        if limit >= REQUESTS_MIN and len(at_limit) >= MET_MIN and len(at_limit) == len(group):
            ages = [each.age_ns for each in of_closes(case, at_limit)]
            yield limit_match(at_limit, limit, sum(1 for count in counts.values() if count), ages)


def limit_match(group: Sequence[Met], limit: int, total: int, ages: Sequence[int]) -> Match:
    """Returns the match of connections that ended after so many requests, and perhaps at one age."""
    certainty: Certainty = "proven" if len(group) >= PROVEN_MIN and not ages else "likely"
    connections = [met.connection for met in group]
    longer = {"reset-by-peer": "a longer capture: does the next one end at that count?"}
    return Match(
        certainty=certainty,
        place="server",
        flows=[connection.number for connection in connections],
        failed=len(group),
        attempts=max(total, len(group)),
        frames=[ending_cited(met.ending) for met in group[:SHOWN]],
        filter=" or ".join(flow_filter(connection.flow) for connection in connections[:SHOWN]),
        proof=f"{plural(len(group), 'connection')} ended by the server after exactly {limit:,} answered requests",
        excluded={"close-race": "the server closed within 1 s of the last packet"}
        | ({"reset-by-peer": "all ended at the same count"} if certainty == "proven" else {}),
        undecided={"age-limit": AGE_TEST} if ages else {} if certainty == "proven" else longer,
        server=server_str(connections),
        limit=f"{limit:,}",
        or_age=f" (or {times_str(ages)} after it was opened)" if ages else "",
        met=len(group),
        total=max(total, len(group)),
        host=connections[0].server[0],
    )

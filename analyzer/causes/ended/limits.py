# SPDX-License-Identifier: Apache-2.0
"""Servers that limit their clients: after so many requests they close, or they greet no more of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Certainty, Match, Matches, cause
from wiretale.analyzer.causes.connections import (
    EXCHANGE_KINDS,
    GREETING_PORTS,
    ending_cited,
    largest_groups,
    of_connections,
    times_str,
)
from wiretale.analyzer.causes.ended.age import AGE_TEST, of_closes
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.findings.exchanges.exchange_rows import rows_where
from wiretale.analyzer.units import plural, show_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import EndingRow

REQUESTS_MIN = 10  # fewer may be the whole work of a client
MET_MIN, PROVEN_MIN = 2, 3  # connections that ended after the same number of requests
BUSY_NS = 1_000_000_000  # since the last packet: a server that closes later had enough of waiting

CONNECTIONS_MAX = 5_000
MESSAGE_MAX = 512  # bytes in which a server says why it closes, or a client who it is
CLOSES_FIRST = 3  # packets of an end that closes first: SYN-ACK, FIN, and the ACK of the other FIN
DROPPED_NS = 500_000_000  # since the SYN-ACK
SSH = 22  # both ends speak at once, so that the client's words are no request


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
        failed=len(group),
        attempts=max(total, len(group)),
        frames=[ending_cited(met.ending) for met in group[:SHOWN]],
        proof=f"{plural(len(group), 'connection')} ended by the server after exactly {limit:,} answered requests",
        excluded={"close-race": "the server closed within 1 s of the last packet"}
        | ({"reset-by-peer": "all ended at the same count"} if certainty == "proven" else {}),
        undecided={"age-limit": AGE_TEST} if ages else {} if certainty == "proven" else longer,
        limit=f"{limit:,}",
        or_age=f" (or {times_str(ages)} after it was opened)" if ages else "",
        met=len(group),
        total=max(total, len(group)),
        host=connections[0].server[0],
        **of_connections(connections),
    )


def greeting_flows(case: Case) -> list[int]:
    """Returns the flows to ports whose server speaks first."""
    ports = case.transfers.ports
    is_there = not GREETING_PORTS.isdisjoint(ports)
    return [flow for flow, port in enumerate(ports) if port in GREETING_PORTS] if is_there else []


def greeting_connections(case: Case) -> list[Connection]:
    """Returns the first connections to ports whose server speaks first, which no cause explains."""
    explained, attempts = case.flows_of(), case.transfers.attempts
    flows = [flow for flow in case.once(greeting_flows) if flow not in explained]
    return [case.connections[flow] for flow in flows[:CONNECTIONS_MAX] if attempts.is_connection(flow)]


def is_not_greeted(connection: Connection) -> bool:
    """Returns whether a server closed a connection before a byte was sent: the end that closes first sends the last ACK."""
    flow, (client, server) = connection.flow, connection.directions
    if connection.client_side:
        client, server = server, client
    return (
        flow["handshake_rtt_ns"] is not None
        and flow["state"] == "closed"
        and not flow["payload_bytes"]
        and server["last_ns"] is not None
        and client["last_ns"] is not None
        and server["last_ns"] > client["last_ns"]
        and server["packets"] >= CLOSES_FIRST
    )


def said_by_server(connection: Connection) -> int:
    """Returns how many bytes the server sent."""
    return connection.directions[connection.server_side]["unique_bytes"] or 0


def is_cut_off(connection: Connection) -> bool:
    """Returns whether a server itself reset a connection at once, at the first words of its client: unread data makes a close a
    RST."""
    flow, server = connection.flow, connection.directions[connection.server_side]
    client = connection.directions[connection.client_side]
    return (
        flow["handshake_rtt_ns"] is not None
        and flow["state"] == "reset"
        and 0 < (client["unique_bytes"] or 0) <= MESSAGE_MAX
        and client["data_packets"] == 1
        and not (client["fins"] or client["resets"] or server["missing_bytes"])
        and bool(server["resets"])
        and server["ttl_min"] == server["ttl_max"]
        and (server["last_ns"] or 0) - (flow["first_ns"] or 0) <= DROPPED_NS + 2 * flow["handshake_rtt_ns"]
    )


@cause(
    code="not-greeted",
    title="The server closed without a greeting",
    sentence="The server {server} {closed} {count:connection} of {client} without a greeting, {waited} after it accepted {them}"
    "{beside}: it {probably}{why}.",
    advice="Look at the log of {host} at that second, and at what it admits: hosts.deny, a limit of connections (sshd "
    "`MaxStartups`), a list of blocked clients, a name of the client that it cannot look up.",
    shows="On a port whose server speaks first (FTP, SSH, Telnet, SMTP, POP3, NNTP, IMAP, MySQL, VNC), the server sends FIN "
    "before either end sent a byte, or a RST with the TTL of its SYN-ACK within 0.5 s, after the first words of the client.",
    rivals={
        "reset-by-device": "the last packet has the TTL of the server",
        "reset-by-peer": "the greeting of the server was due, not an answer",
        "client-gave-up": "the server closes first",
    },
    unknown="Why: the log of the server has that. A device that answers for the server has its own TTL in all packets.",
    explains=("reset", "request-unanswered"),
)
def not_greeted(case: Case) -> Matches:
    connections = greeting_connections(case)
    closed = [each for each in connections if is_not_greeted(each) or (is_cut_off(each) and not said_by_server(each))]
    for (server, client), group in largest_groups(closed, lambda each: (each.server, each.end(each.client_side)[0])):
        greeted = [
            each for each in connections if each.server == server and each.directions[each.server_side]["payload_bytes"]
        ]
        yield greeting_match(client, group, greeted)


def ended_by(closed: Sequence[Connection]) -> str:
    """`FIN or RST`: by what a server ended these connections."""
    resets = sum(connection.flow["state"] == "reset" for connection in closed)
    return "FIN" if not resets else "RST" if resets == len(closed) else "FIN or RST"


def greeting_match(client: str, closed: Sequence[Connection], greeted: Sequence[Connection]) -> Match:
    """Returns the match of connections that a server closed without a greeting, beside those that it greeted."""
    waits = [connection.directions[connection.server_side]["idle_ns_max"] or 0 for connection in closed]
    of_client = sum(each.end(each.client_side)[0] == client for each in greeted)
    return Match(
        certainty="likely",
        place="server",
        failed=len(closed),
        attempts=len(closed) + of_client,
        waited_ns=union_ns(Span(each.flow["first_ns"] or 0, each.last_ns) for each in closed),
        proof=f"{ended_by(closed)} of the server, and not one byte before",
        excluded={
            "reset-by-device": "the last packet has the TTL of the server",
            "client-gave-up": f"its {ended_by(closed)} came first",
        },
        undecided={
            "reset-by-peer": f"Read the log of {closed[0].server[0]}: did its process end, or refuse the client?"
        },
        closed={"FIN": "closed", "RST": "reset"}.get(ended_by(closed), "closed or reset"),
        count=len(closed),
        client=client,
        waited=times_str(waits) if min(waits) > 0 else "at once",
        them="it" if len(closed) == 1 else "them",
        host=closed[0].server[0],
        **reason_words(len(greeted), of_client),
        **of_connections(closed),
    )


def is_turned_away(connection: Connection) -> bool:
    """Returns whether a server sent a short message and closed before its client sent a byte, or reset at its first words."""
    server, client = connection.directions[connection.server_side], connection.directions[connection.client_side]
    is_closed = connection.flow["state"] == "closed" and not client["payload_bytes"]
    return (
        connection.flow["initiator_evidence"] == "syn"
        and 0 < said_by_server(connection) <= MESSAGE_MAX
        and (server["last_ns"] or 0) > (client["last_ns"] or 0)
        and (is_closed or (connection.server[1] == SSH and is_cut_off(connection)))
    )


@cause(
    code="turned-away",
    title="The server turned the client away",
    sentence="The server {server} turned {count} of {total:connection} of {client} away: it sent {size} and {closed}{beside}; it "
    "{probably}{why}.",
    advice="Read that message (Follow TCP Stream in Wireshark) or the log of {host}: a limit of connections (MySQL "
    "`max_connections`, sshd `MaxStartups`, SMTP 421), or a client that is not admitted.",
    shows="On a port whose server speaks first (as for not-greeted), the server sends 512 bytes at most and closes first, and "
    "the client has sent nothing; or it resets SSH within 0.5 s, at one segment of the client.",
    rivals={
        "not-greeted": "the server sent a message before it closed",
        "client-gave-up": "the server closes first",
        "reset-by-peer": "the message says whether it refused or its process failed",
    },
    unknown="What the message says.",
    explains=("reset", "request-unanswered"),
)
def turned_away(case: Case) -> Matches:
    connections = greeting_connections(case)
    away, served = [], []
    for connection in connections:
        if is_turned_away(connection):
            away.append(connection)
        elif connection.directions[connection.client_side]["payload_bytes"]:
            served.append(connection)
    for (server, client), group in largest_groups(away, lambda each: (each.server, each.end(each.client_side)[0])):
        yield away_match(client, group, [each for each in served if each.server == server])


def away_match(client: str, away: Sequence[Connection], served: Sequence[Connection]) -> Match:
    """Returns the match of connections that a server closed with a message, beside those that it served."""
    of_client = sum(each.end(each.client_side)[0] == client for each in served)
    sizes = sorted({connection.directions[connection.server_side]["unique_bytes"] or 0 for connection in away})
    total = len(away) + of_client
    is_reset = ended_by(away) == "RST"
    said = "one segment" if is_reset else "not one byte"
    return Match(
        certainty="likely",
        place="server",
        failed=len(away),
        attempts=total,
        proof=f"a message and the {ended_by(away)} of the server, and {said} of the client before",
        excluded={"client-gave-up": f"the server's {ended_by(away)} came first", "not-greeted": "it sent a message"},
        undecided={
            "reset-by-peer": f"Read that message or the log of {away[0].server[0]}: a limit, or a failure of its process?"
        },
        count=len(away),
        total=total,
        client=client,
        closed="reset at the client's first words" if is_reset else "closed before the client said anything",
        size=f"{show_bytes(sizes[0])}{f' to {show_bytes(sizes[-1])}' if len(sizes) > 1 else ''}",
        host=away[0].server[0],
        **reason_words(len(served), of_client),
        **of_connections(away),
    )


def reason_words(greeted: int, of_client: int) -> Words:
    """Returns what connections to the same server that were greeted, of all clients or of this one, say about the reason."""
    if not greeted:
        return {"beside": "", "why": "refuses, or cannot start its work"}
    if of_client:
        return {"beside": f", while it greeted {plural(greeted, 'other connection')}", "why": "has reached a limit"}
    return {
        "beside": f", while it greeted {plural(greeted, 'connection')} of other clients",
        "why": "does not admit this client",
    }

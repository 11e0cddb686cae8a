# SPDX-License-Identifier: Apache-2.0
"""Servers that end a session with the stream that it began, because its client says nothing on the connection of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import filter_of, is_alike, largest_groups, server_str, times_str
from wiretale.analyzer.causes.ended.timer import SILENT_MIN_NS, Closed, closed_connections
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import FlowRow

STREAM_MIN = 100  # datagrams
TOGETHER_NS = 500_000_000  # from the last datagram to the close, or back
STREAMS_MAX = 5_000  # flows of datagrams that are read
USUAL_NS = tuple(seconds * 10**9 for seconds in (30, 45, 60, 65, 90, 120, 180, 300))  # timeouts of sessions
USUAL_SHARE = 0.02  # a server looks at its sessions now and then


class Ended(NamedTuple):
    """A connection that the server closed, and the stream of datagrams that ended with it."""

    closed: Closed
    stream: FlowRow


def ends_with(closed: Closed, stream: FlowRow) -> bool:
    """Returns whether a stream began on a connection and ended at its close."""
    connection, last_ns = closed.connection, stream["last_ns"] or 0
    if hosts_of(closed) != {stream["source"], stream["destination"]}:
        return False
    began_within = (stream["first_ns"] or 0) >= (connection.flow["first_ns"] or 0)
    return began_within and abs(connection.last_ns - last_ns) <= TOGETHER_NS and stream["packets"] >= STREAM_MIN


def ended_streams(case: Case) -> list[Ended]:
    """Returns the connections that a server closed long after the client's last message, together with a stream."""
    silent = [each for each in closed_connections(case) if each.silent_ns >= SILENT_MIN_NS]
    if not silent:
        return []
    flows, host_pairs = case.trace.flows, {hosts_of(each) for each in silent}
    ends = zip(*(flows.column(name) for name in ("protocol", "source", "destination")), strict=True)
    numbers = [
        flow for flow, (protocol, *hosts) in enumerate(ends) if protocol == "udp" and frozenset(hosts) in host_pairs
    ]
    streams = [case.flow(flow) for flow in numbers[:STREAMS_MAX]]
    pairs = ((each, [row for row in streams if ends_with(each, row)]) for each in silent)
    return [Ended(each, rows[0]) for each, rows in pairs if rows]


def hosts_of(closed: Closed) -> frozenset[str]:
    """Returns the addresses of server and client."""
    return frozenset(closed.connection.end(side)[0] for side in (0, 1))


def is_timeout(group: Sequence[Ended]) -> bool:
    """Returns whether one time separates the client's last messages from the closes, of a single close a usual one."""
    silences = [each.closed.silent_ns for each in group]
    if len(group) > 1:
        return is_alike(silences)
    return any(abs(silences[0] - usual) <= USUAL_SHARE * usual for usual in USUAL_NS)


@cause(
    code="session-timeout",
    title="The server ends a session and its stream",
    sentence="The server {server} ended {count:session} of {client}, and the {streams} that it sent over UDP, {silent} after the "
    "client's last message: it {probably}got no keep-alive within its timeout.",
    advice="Let the client send a message of the session sooner than every {silent} (RTSP: GET_PARAMETER or OPTIONS with the "
    "Session header, or RTCP receiver reports; the answer to SETUP has the timeout), or raise the timeout of the server.",
    shows="A server closes a connection at least 10 s after the client's last message. A stream of at least 100 datagrams "
    "between both, which began meanwhile, ends within 0.5 s of that. It happens at least twice after the same time (5%), or "
    "once after a usual one (30, 60, 90 s and others, to 2%).",
    rivals={
        "closed-by-timer": "a stream that was running ended with the connection",
        "client-gave-up": "the server closes first",
    },
    unknown="Whether the stream was at its end then; within TLS and without it, what the timeout is.",
)
def session_timeout(case: Case) -> Matches:
    for _, group in largest_groups(
        ended_streams(case),
        lambda each: (each.closed.connection.server, each.closed.connection.end(each.closed.connection.client_side)[0]),
    ):
        if is_timeout(group):
            yield timeout_match(group)


def timeout_match(group: Sequence[Ended]) -> Match:
    """Returns the match of sessions of one client that one server ended."""
    connections = [each.closed.connection for each in group]
    silent = times_str([each.closed.silent_ns for each in group])
    return Match(
        certainty="likely",
        place="client",
        flows=[flow for each in group for flow in (each.closed.connection.number, each.stream["flow"])],
        failed=len(group),
        attempts=len(group),
        filter=filter_of(connections),
        proof=f"FIN of the server {silent} after the client's last message, and with it the end of "
        f"{plural(len(group), 'stream')}",
        excluded={"client-gave-up": "the server closes first"},
        undecided={"closed-by-timer": "the log of the server: why it ended the session"},
        server=server_str(connections),
        count=len(group),
        client=connections[0].end(connections[0].client_side)[0],
        streams="stream" if len(group) == 1 else "streams",
        silent=silent,
    )

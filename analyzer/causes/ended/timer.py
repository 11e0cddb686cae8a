# SPDX-License-Identifier: Apache-2.0
"""Servers that close a connection the same time after the client's last message, though the client wants it."""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import (
    EXCHANGE_KINDS,
    ROWS_MAX,
    is_alike,
    largest_groups,
    of_connections,
    times_str,
)
from wiretale.analyzer.findings.exchanges.exchange_rows import rows_numbered, rows_where
from wiretale.analyzer.units import show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.rows import ExchangeRow

CLOSED_MIN = 3
SILENT_MIN_NS = 10_000_000_000  # servers that close sooner keep connections for the next request alone
MQTT_SILENT_MIN_NS = 1_500_000_000  # 1.5 times the least keep-alive: a session of MQTT is for more than a request
AGAIN_SHARE = 0.05  # of the silence: a client that connects again within wanted to keep the connection
MORE_ALIKE = 0.005
LASTING_AGAIN_SHARE = 1.0  # a client of MQTT or a WebSocket wants it anyway
MQTT_SPREAD = 1.25  # of the times: brokers look for silent clients every few seconds
FAREWELL_NS = 50_000_000  # a FIN that follows an answer sooner ends it
LATE_CLOSE_NS, NEXT_NS = 800_000_000, 300_000_000  # after an answer; until the client's next connection
MQTT_PORTS = (1883, 8883)
SWITCHED = "101"  # status of HTTP: a WebSocket


class Closed(NamedTuple):
    """A connection that the server closed."""

    connection: Connection
    silent_ns: int  # since the client's last message
    quiet_ns: int  # since the last byte of the answer to it
    turn: int  # number of that message
    is_lasting: bool  # MQTT or a WebSocket


def is_closed_by_server(connection: Connection) -> bool:
    """Returns whether the server closed first, which then sends the last ACK."""
    client, server = (connection.directions[side] for side in (connection.client_side, connection.server_side))
    return (
        connection.flow["state"] == "closed"
        and bool(client["payload_bytes"])
        and (server["last_ns"] or 0) > (client["last_ns"] or 0)
    )


def last_messages(case: Case, flows: set[int]) -> dict[int, ExchangeRow]:
    """Returns the last message of the client on each of these flows."""
    rows = rows_where(case.transfers, "kind", *EXCHANGE_KINDS) if flows else []
    return {row["flow"]: row for row in rows if row["flow"] in flows and row["asked_ns"] is not None}


def short_answers(case: Case) -> list[ExchangeRow]:
    """Returns the requests whose answer has fewer bytes than it announced."""
    names, table = ("response_bytes", "response_announced_bytes"), case.trace.exchanges
    packed = table._packed_columns([(name, "d", 0, 1) for name in names]) if len(table) else []
    pairs = zip(*(array("d", column) for column in packed), strict=True)
    short = [number for number, (came, announced) in enumerate(pairs) if came < announced][:ROWS_MAX]
    return rows_numbered(case.transfers, short)


def last_of_server(case: Case, flows: list[int]) -> list[int]:
    """Returns those of some flows, which must ascend, that may have ended with a packet of the server after data of the client:
    read by columns, because a connection has two hundred values."""
    if not flows:
        return []
    clients = case.trace.flows._packed("client", "B", flows=flows)
    fields = [("last_ns", "d", case.transfers.base_ns, 1), ("payload_bytes", "d", 0, 1)]
    last, sent = (array("d", packed) for packed in case.trace.directions._packed_columns(fields, flows))
    sides = ((flow, 2 * place, client) for place, (flow, client) in enumerate(zip(flows, clients, strict=True)))
    return [
        flow
        for flow, row, client in sides
        if client > 1 or (sent[row + client] > 0 and last[row + 1 - client] > last[row + client])
    ]


def closed_by_servers(case: Case) -> list[Closed]:
    """Returns the connections that servers closed, which no earlier cause explains."""
    explained, attempts, trace = case.flows_of(), case.transfers.attempts, case.trace
    flows = [flow for flow in attempts.flows_in("closed") if flow not in explained] if len(trace.exchanges) else []
    connections = [case.connections[flow] for flow in last_of_server(case, flows[:ROWS_MAX])]
    by_server = [each for each in connections if is_closed_by_server(each)]
    messages = last_messages(case, {each.number for each in by_server}) if by_server else {}
    lasting = lasting_flows(case, by_server) if messages else set()
    return [
        closed_of(each, messages[each.number], each.number in lasting) for each in by_server if each.number in messages
    ]


def lasting_flows(case: Case, connections: Sequence[Connection]) -> set[int | None]:
    """Returns the connections of MQTT, and WebSockets."""
    rows = rows_where(case.transfers, "kind", "http")
    switched = {row["flow"] for row in rows if row["code"] == SWITCHED}
    return switched.union(each.number for each in connections if each.server[1] in MQTT_PORTS)


def closed_connections(case: Case) -> list[Closed]:
    """Returns the same, without those that a cause explains meanwhile."""
    explained = case.flows_of()
    return [each for each in case.once(closed_by_servers) if each.connection.number not in explained]


def closed_of(connection: Connection, message: ExchangeRow, is_lasting: bool) -> Closed:
    """Returns a connection with the times since the last message of its client and the answer to it."""
    sent_ns = (message["asked_ns"] or 0) + (message["request_ns"] or 0)
    answered_ns = (message["answered_ns"] or sent_ns) + (message["response_ns"] or 0)
    return Closed(
        connection, connection.last_ns - sent_ns, connection.last_ns - answered_ns, message["turn"] or 0, is_lasting
    )


def spread(times: Sequence[float]) -> float:
    """Returns by how much times differ, as a share of the least."""
    return max(times) / max(min(times), 1.0)


def timer_of(group: Sequence[Closed]) -> list[int]:
    """Returns the times before each close that are alike: since the client's last message, or since the last byte either way, if
    these are more alike by far."""
    silences, quiet = [each.silent_ns for each in group], [min(each.silent_ns, each.quiet_ns) for each in group]
    return quiet if min(quiet) >= SILENT_MIN_NS and spread(silences) - spread(quiet) > MORE_ALIKE else silences


def is_timer(group: Sequence[Closed]) -> bool:
    """Returns whether one time separates the last messages from the closes, and the client connected again at once each time."""
    silences = timer_of(group)
    is_mqtt = group[0].connection.server[1] in MQTT_PORTS
    are_alike = spread(silences) <= MQTT_SPREAD if is_mqtt else is_alike(silences)
    if len(group) < CLOSED_MIN or min(silences) < (MQTT_SILENT_MIN_NS if is_mqtt else SILENT_MIN_NS) or not are_alike:
        return False
    if sum(each.quiet_ns < FAREWELL_NS for each in group) * 2 > len(group):
        return False
    begins = sorted(each.connection.flow["first_ns"] or 0 for each in group)
    ends = sorted(each.connection.last_ns for each in group)
    gaps = [begin - end for begin, end in zip(begins[1:], ends, strict=False)]
    share = LASTING_AGAIN_SHARE if all(each.is_lasting for each in group) else AGAIN_SHARE
    return all(0 <= gap <= share * min(silences) for gap in gaps)


def waits_for_close(group: Sequence[Closed]) -> bool:
    """Returns whether one time separates the only answer of each connection from its close, and the client went on only then."""
    quiet, silences = [each.quiet_ns for each in group], [each.silent_ns for each in group]
    if len(group) < CLOSED_MIN or min(quiet) < LATE_CLOSE_NS or max(silences) >= SILENT_MIN_NS or not is_alike(quiet):
        return False
    if any(each.turn for each in group):
        return False
    begins = sorted(each.connection.flow["first_ns"] or 0 for each in group)
    ends = sorted(each.connection.last_ns for each in group)
    gaps = [begin - end for begin, end in zip(begins[1:], ends, strict=False)]
    return not has_own_timer(begins, gaps) and all(0 <= gap <= NEXT_NS for gap in gaps)


def has_own_timer(begins: Sequence[int], gaps: Sequence[int]) -> bool:
    """Returns whether connections begin in a beat that is more even than the times since the close before each."""
    periods = [later - begin for begin, later in pairwise(begins)]
    return max(periods) - min(periods) < max(gaps) - min(gaps)


@cause(
    code="late-close",
    title="The client waits for the close",
    sentence="The server {server} answers {client} at once and closes {quiet} later, and the client waits for the close, "
    "{count} times in a row: the answers {probably}do not say where they end.",
    advice="Let {server} send `Content-Length` or chunks (or close at once, as `Connection: close` promises), or let the client "
    "stop at the end of the content.",
    shows="At least three connections of a client carry one answered request each. The server closes each of them 0.8 to 10 s "
    "after the answer, always after the same time (5%). The client's next connection begins within 0.3 s of each close, "
    "and that time varies no more than the one between two begins: no timer of its own sets the pace.",
    rivals={
        "slow-server": "the answer had come before the pause",
        "client-pause": "the client goes on when the server closes, each time",
        "closed-by-timer": "the answer came at once, and the client had nothing to add",
    },
    unknown="The head of the answer within TLS; whether the client ignores a length that is there.",
)
def late_close(case: Case) -> Matches:
    for _, group in largest_groups(
        closed_connections(case),
        lambda each: (each.connection.server, each.connection.end(each.connection.client_side)[0]),
    ):
        if not waits_for_close(group):
            continue
        connections, quiet = [each.connection for each in group], [each.quiet_ns for each in group]
        yield Match(
            certainty="likely",
            place="server",
            members=len(group),
            waited_ns=sum(quiet),
            proof=f"FIN of the server {times_str(quiet)} after its answer each time, and the client's next connection within "
            f"{show_duration(NEXT_NS)} of it",
            excluded={
                "slow-server": "the answers were complete",
                "client-pause": "the closes, not the client, set the pace",
            },
            undecided={"closed-by-timer": "the head of an answer: has it Content-Length or chunks?"},
            client=connections[0].end(connections[0].client_side)[0],
            quiet=times_str(quiet),
            count=len(group),
            **of_connections(connections),
        )


@cause(
    code="closed-by-timer",
    title="The server closes after a time without a message",
    sentence="The server {server} closed each of {count:connection} of {client} {silent} after {the_last} message, "
    "and the client connected again{soon}. {why}.",
    advice="{advice}",
    shows="The server closes at least three connections of a client 10 s or longer after the client's last message, or after "
    "the last byte of either end. It is always the same time (5%) and not with an answer. The client opens each again within "
    "5% of that time, a WebSocket within all of it. For MQTT, the times are 1.5 s or longer, may differ by 25%, and the client "
    "reconnects within one of them.",
    rivals={
        "client-gave-up": "the server closes first",
        "idle-timeout": "no request met the close",
    },
    unknown="Whether the server or a proxy that ends the connection has the timer.",
)
def closed_by_timer(case: Case) -> Matches:
    for _, group in largest_groups(
        closed_connections(case),
        lambda each: (each.connection.server, each.connection.end(each.connection.client_side)[0]),
    ):
        if is_timer(group):
            yield timer_match(group)


def timer_match(group: Sequence[Closed]) -> Match:
    """Returns the match of connections of one client that one server closed."""
    connections = [each.connection for each in group]
    times = timer_of(group)
    client, silent = connections[0].end(connections[0].client_side)[0], times_str(times)
    is_of_client = times == [each.silent_ns for each in group]
    is_mqtt = connections[0].server[1] in MQTT_PORTS
    has_keep_alive = is_mqtt and is_of_client  # which counts what the client sends
    the_last = "the client's last" if is_of_client else "the last"
    return Match(
        certainty="proven" if is_alike(times) else "likely",
        place="server",
        members=len(group),
        severity="warning",
        proof=f"FIN of the server {silent} after {the_last} message each time, and a new connection",
        excluded={
            "client-gave-up": "the server closes first",
            "idle-timeout": "no request met the close",
        },
        count=len(group),
        client=client,
        silent=silent,
        the_last=the_last,
        soon="" if group[0].is_lasting else " at once",
        why="1.5 times its keep-alive probably passed without a PINGREQ"
        if has_keep_alive
        else "It, or a proxy before it, ends connections whose client is silent for so long"
        if is_of_client
        else "It, or a proxy before it, ends connections that are idle for so long",
        advice="Let the client send PINGREQ in time (its network loop must run), or raise its keep-alive."
        if has_keep_alive
        else f"Let the client send a message more often than every {silent} (a ping of the application, such as "
        "WebSocket's), or raise the timeout (`proxy_read_timeout`, HAProxy `timeout tunnel`, ALB idle timeout).",
        **of_connections(connections),
    )

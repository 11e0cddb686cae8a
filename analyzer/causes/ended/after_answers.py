# SPDX-License-Identifier: Apache-2.0
"""Answers that end before their length, servers that reset right behind an answer, or end all answers after the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import ending_cited, largest_groups, of_connections, times_str
from wiretale.analyzer.causes.ended.resets import device_cuts
from wiretale.analyzer.causes.ended.timer import (
    Closed,
    closed_connections,
    is_closed_by_server,
    last_messages,
    short_answers,
    spread,
)
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.findings.exchanges.exchange_rows import packets_of
from wiretale.analyzer.units import plural, show_bytes, show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.rows import DirectionRow, EndingRow, ExchangeRow

BEHIND_NS = 200_000_000  # from the last byte of an answer to the RST
RESETS_MIN = 2
CUTS_MIN, CUT_MIN_NS, CUT_SPREAD = 3, 4_500_000_000, 1.005  # answers that end after one time
WHOLE = 0.005  # of a time that is a number of seconds, as settings are
GOING_NS = 1_000_000_000  # before the end, in which the answer still went on
STALLED_NS = 5_000_000_000  # before a client gives up; sooner, it may want no more


class Behind(NamedTuple):
    """A connection that its server reset right behind an answer."""

    connection: Connection
    reset: EndingRow
    after_ns: int  # since the last byte of the answer
    is_unread: bool  # the client had acknowledged nothing since


def is_quick(row: EndingRow) -> bool:
    """Returns whether a reset left nothing open, came soon after the packet before, and has the TTL of its host."""
    ttl, least, most = row["ttl"], row["ttl_before_min"], row["ttl_before_max"]
    is_like_host = least is not None and most is not None and least <= ttl <= most
    return row["unacked_bytes"] == 0 and is_like_host and (row["idle_ns"] or 0) <= BEHIND_NS


def is_of_server(connection: Connection, row: EndingRow) -> bool:
    """Returns whether a server reset a connection of which nobody had closed a half."""
    client, server = (connection.directions[side] for side in (connection.client_side, connection.server_side))
    return row["direction"] == connection.server_side and not (client["fins"] or client["resets"] or server["fins"])


def behind(connection: Connection, reset: EndingRow, message: ExchangeRow) -> Behind | None:
    """Returns a reset that follows the answer to the last message at once; None if it does not."""
    if message["outcome"] != "answered" or message["answered_ns"] is None:
        return None
    answered_ns = message["answered_ns"] + (message["response_ns"] or 0)
    after_ns = (reset["time_ns"] or 0) - answered_ns
    heard_ns = connection.directions[connection.client_side]["last_ns"] or 0
    return Behind(connection, reset, after_ns, heard_ns < answered_ns) if 0 <= after_ns <= BEHIND_NS else None


def behind_answers(case: Case) -> list[Behind]:
    """Returns the connections that servers reset right behind an answer, and that no cause explains."""
    explained = case.flows_of()
    resets = {row["flow"]: row for row in reversed(case.connections.resets) if row["flow"] not in explained}
    quick = {flow: row for flow, row in resets.items() if is_quick(row)}
    of_server = {flow: row for flow, row in quick.items() if is_of_server(case.connections[flow], row)}
    messages = last_messages(case, set(of_server)) if len(of_server) >= RESETS_MIN else {}
    pairs = (behind(case.connections[flow], of_server[flow], message) for flow, message in messages.items())
    return [each for each in pairs if each]


class Half(NamedTuple):
    """An answer that ended before its length."""

    connection: Connection
    message: ExchangeRow
    by_server: bool  # who ended it
    pause_ns: int  # before the end; 0 without one

    @property
    def open_bytes(self) -> int:
        """The bytes without an ACK."""
        return self.connection.directions[self.connection.server_side]["unacked_bytes"] or 0

    @property
    def is_reset(self) -> bool:
        """Whether a RST ended it."""
        return any(row["resets"] for row in self.connection.directions)


def ended_by(client: DirectionRow, server: DirectionRow, is_servers: bool) -> int | None:
    """Returns who ended a connection, 0 the client or 1 the server, None if that is not known. `is_servers`: of two FINs, the
    server's came first."""
    if not (client["resets"] or client["fins"]):
        return 1 if server["resets"] or server["fins"] else None
    if server["resets"] or (server["fins"] and not client["fins"]):
        return None
    return int(bool(server["fins"]) and is_servers)


def half_of(connection: Connection, message: ExchangeRow) -> Half | None:
    """Returns an answer that stopped before its length, by its server or after a pause; None if the client wanted no more, does
    not read, or bytes of it are not in the capture."""
    client, server = (connection.directions[side] for side in (connection.client_side, connection.server_side))
    if server["missing_bytes"] or server["unseen_bytes"] or client["zero_windows"]:
        return None
    is_at_end = connection.last_ns - (connection.flow["pause_until_ns"] or 0) <= GOING_NS
    pause_ns = (connection.flow["pause_ns"] or 0) if is_at_end else 0
    who = ended_by(client, server, is_closed_by_server(connection))
    if who is None or (not who and pause_ns < STALLED_NS):
        return None
    return Half(connection, message, bool(who), pause_ns)


def half_answers(case: Case) -> list[Half]:
    """Returns the last answers of connections that stopped before their length, and that no cause explains."""
    explained = case.flows_of() | device_cuts(case).keys()
    rows = {row["flow"]: row for row in short_answers(case) if row["flow"] not in explained}
    last = last_messages(case, {flow for flow in rows if flow is not None})
    ends = (half_of(case.connections[flow], row) for flow, row in last.items() if row["turn"] == rows[flow]["turn"])
    return [each for each in ends if each]


@cause(
    code="answer-cut",
    title="An answer stops before its end",
    sentence="The server {server} sent {came} of an answer of {length}[{more}], {end}.",
    advice="Look in the log of {host} for what stopped the answer, and behind it (database, upstream, disk). Look for a timeout "
    "at each proxy on the way (nginx `proxy_read_timeout 60s`, `send_timeout 60s`).",
    shows="The last HTTP response of a connection has fewer bytes than its header and Content-Length say "
    "(exchanges.response_announced_bytes). The server closed or reset first, or the client did so after a pause of 5 s or more. "
    "All bytes that were sent are in the capture, and the client's window was open.",
    rivals={
        "client-gave-up": "the server ends the connection, or the answer had stopped for 5 s before",
        "zero-window": "the client's window is open",
        "reset-by-peer": "the answer had begun, and its length is known",
        "reset-by-device": "the RST, if one ended it, has the TTL of its host",
        "outage": "all that was sent has an ACK",
    },
    unknown="Within TLS, and in chunks, whether an answer is whole.",
    explains=("reset", "idle-reset", "sender-idle"),
)
def answer_cut(case: Case) -> Matches:
    groups = largest_groups(half_answers(case), lambda each: (each.connection.server, each.by_server, each.is_reset))
    for _, group in groups:
        yield cut_match(group, max(case.connections.requests_to(group[0].connection.server), len(group)))


def end_str(first: Half, pauses: Sequence[int]) -> str:
    """Returns how answers ended: `then nothing for 60 s, and it reset the connection`."""
    unheard = f"{show_bytes(first.open_bytes)} of it without an ACK, " if first.open_bytes else ""
    silence = f"nothing for {times_str(pauses)}, and " if min(pauses) >= GOING_NS else ""
    who, ended = "it" if first.by_server else "the client", "reset" if first.is_reset else "closed"
    return f"{unheard}then {silence}{who} {ended} the connection"


def excluded_by(first: Half, is_heard: bool) -> dict[str, str]:
    """Returns the rivals that an end like the first excludes."""
    excluded = {"zero-window": "the client's window was open"}
    excluded |= {"client-gave-up": "the server ended the connection"} if first.by_server else {}
    return excluded | ({"outage": "all that was sent has an ACK"} if is_heard else {})


def cut_match(group: Sequence[Half], total: int) -> Match:
    """Returns the match of answers of one server that stopped before their length, of so many requests."""
    first, connections = group[0], [each.connection for each in group]
    is_heard, pauses = not any(each.open_bytes for each in group), [each.pause_ns for each in group]
    others = f" (and so {plural(len(group) - 1, 'other')})" if len(group) > 1 else ""
    return Match(
        certainty="proven" if is_heard and first.by_server else "likely",
        place="server",
        failed=len(group),
        attempts=total,
        waited_ns=sum(pauses) or None,
        frames=packets_of([each.message for each in group]),
        proof=f"fewer bytes than Content-Length{', all acknowledged,' if is_heard else ''} at the end of the connection",
        excluded=excluded_by(first, is_heard),
        undecided={} if is_heard else {"outage": "a capture at the server: whether it sent more"},
        host=connections[0].server[0],
        came=show_bytes(first.message["response_bytes"] or 0),
        length=show_bytes(first.message["response_announced_bytes"] or 0),
        more=others,
        end=end_str(first, pauses),
        **of_connections(connections),
    )


@cause(
    code="reset-behind-answer",
    title="The server resets after its answer",
    sentence="The server {server} reset {count} {after} after its answer instead of closing them: {loss}.",
    advice="See whether these answers are whole (Content-Length, the last chunk), and look at the log of {host} for an exception "
    "in the middle of an answer. A server that closes before it has read all of a request resets, too: let it read the request "
    "to its end first.",
    shows="The server itself (with its own TTL) resets at least two connections, without a FIN, at most 200 ms after the last "
    "byte of an answer. It is a failure if others ended otherwise, or the client had not acknowledged the answer; otherwise "
    "it is a note.",
    rivals={
        "reset-by-peer": "the last request had an answer",
        "reset-by-device": "the RST has the TTL of the server",
        "client-gave-up": "the client had closed nothing",
    },
    unknown="Whether the answer was whole.",
    explains=("reset",),
)
def reset_behind_answer(case: Case) -> Matches:
    for server, group in largest_groups(behind_answers(case), lambda each: each.connection.server):
        if len(group) >= RESETS_MIN:
            yield behind_match(group, max(len(case.connections.to_server(server)), len(group)))


def loss_str(is_cut: bool, is_failure: bool) -> str:
    """Returns what becomes of answers with a RST behind them."""
    if is_cut:
        return "the client loses what it had not read of it"
    return "these answers may be cut short" if is_failure else "the client has acknowledged all of it"


def behind_match(group: Sequence[Behind], total: int) -> Match:
    """Returns the match of connections to one server that it reset behind its answers, of so many."""
    connections, unread = [each.connection for each in group], sum(each.is_unread for each in group)
    is_cut = 2 * unread > len(group)
    is_failure = is_cut or len(group) < total
    gave_up = {"client-gave-up": "the client had closed nothing"}
    return Match(
        certainty="proven" if is_cut else "likely",
        place="server",
        failed=len(group) if is_failure else None,
        attempts=total if is_failure else None,
        members=len(group),
        severity=None if is_failure else "info",
        frames=[ending_cited(each.reset) for each in group[:SHOWN]],
        proof=f"{plural(len(group), 'RST')} of the server, without a FIN, behind an answer",
        excluded=gave_up | {"reset-by-peer": "the last request had an answer"} if is_cut else gave_up,
        undecided={} if is_cut else {"reset-by-peer": "the log of the server: whether the answer was whole"},
        after=times_str([max(each.after_ns, 1) for each in group]),
        count=f"{len(group):,} of {plural(total, 'connection')}"
        if len(group) < total
        else f"all {total:,} connections",
        loss=loss_str(is_cut, is_failure),
        host=connections[0].server[0],
        **of_connections(connections),
    )


def is_at_one_time(group: Sequence[Closed]) -> bool:
    """Returns whether answers that went on to their end all ended the same time after the request, a number of seconds."""
    times = [each.silent_ns for each in group]
    seconds = round(min(times, default=0) / 1e9)
    return (
        len(group) >= CUTS_MIN
        and min(times) >= CUT_MIN_NS
        and spread(times) <= CUT_SPREAD
        and all(abs(ns / 1e9 - seconds) <= WHOLE * seconds for ns in times)
        and all(0 <= each.quiet_ns <= GOING_NS for each in group)
    )


@cause(
    code="answer-time-limit",
    title="Answers end after a fixed time",
    sentence="The server {server} ended {count} {after} after the request, while it still sent: {probably}a timeout of it or of "
    "a proxy cuts them, or it ends them on purpose.",
    advice="Compare the size with what the answer promises (Content-Length), and look for a time limit of {seconds} at {host} "
    "and each proxy or load balancer before it (Envoy `timeout` of a route, 15 s if it is not set; ALB; a worker's time limit).",
    shows="The server closes at least three connections in the middle of an answer, whose last data came within 1 s. Each ends "
    "the same whole number of seconds after its request (0.5%), 5 s or more.",
    rivals={
        "app-limited": "all answers end after the same time",
        "closed-by-timer": "the answer went on to the end",
        "client-gave-up": "the server closes first",
    },
    unknown="Whether the answers were whole: a clip, or a watch that ends by its own timeout, looks the same.",
    explains=("sender-idle", "slow-start", "path-limited"),
)
def answer_time_limit(case: Case) -> Matches:
    going = [each for each in closed_connections(case) if each.quiet_ns <= GOING_NS and each.silent_ns >= CUT_MIN_NS]
    for server, group in largest_groups(going, lambda each: each.connection.server):
        if is_at_one_time(group):
            yield limited_match(server[0], group)


def limited_match(host: str, group: Sequence[Closed]) -> Match:
    """Returns the match of answers of one server that ended after one time."""
    connections, times = [each.connection for each in group], [each.silent_ns for each in group]
    return Match(
        certainty="possible",
        place="server",
        waited_ns=sum(times),
        members=len(group),
        proof=f"FIN of the server {times_str(times)} after each request, right behind data",
        excluded={"client-gave-up": "the server closes first", "closed-by-timer": "data came to the end"},
        undecided={"app-limited": "the length that the answers promise: are they whole?"},
        host=host,
        count=f"each of {plural(len(group), 'answer')}",
        after=times_str(times),
        seconds=show_duration(round(min(times) / 1e9) * 1e9),
        **of_connections(connections),
    )

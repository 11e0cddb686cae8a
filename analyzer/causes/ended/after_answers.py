# SPDX-License-Identifier: Apache-2.0
"""Servers that reset a connection right behind an answer, or end all answers after the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import ending_cited, largest_groups, server_str, times_str
from wiretale.analyzer.causes.ended.timer import Closed, closed_connections, last_messages, spread
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.rows import EndingRow, ExchangeRow

BEHIND_NS = 200_000_000  # from the last byte of an answer to the RST
RESETS_MIN = 2
CUTS_MIN, CUT_MIN_NS, CUT_SPREAD = 3, 4_500_000_000, 1.005  # answers that end after one time
WHOLE = 0.005  # of a time that is a number of seconds, as settings are
GOING_NS = 1_000_000_000  # before the end, in which the answer still went on
UNLIKE = 1.02  # sizes of answers: those of a stream that is paced have one


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
        flows=[connection.number for connection in connections],
        failed=len(group) if is_failure else None,
        attempts=total if is_failure else None,
        members=len(group),
        severity=None if is_failure else "info",
        frames=[ending_cited(each.reset) for each in group[:SHOWN]],
        filter=" or ".join(flow_filter(connection.flow) for connection in connections[:SHOWN]),
        proof=f"{plural(len(group), 'RST')} of the server, without a FIN, behind an answer",
        excluded=gave_up | {"reset-by-peer": "the last request had an answer"} if is_cut else gave_up,
        undecided={} if is_cut else {"reset-by-peer": "the log of the server: whether the answer was whole"},
        server=server_str(connections),
        after=times_str([max(each.after_ns, 1) for each in group]),
        count=f"{len(group):,} of {plural(total, 'connection')}"
        if len(group) < total
        else f"all {total:,} connections",
        loss=loss_str(is_cut, is_failure),
        host=connections[0].server[0],
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
    sentence="The server {server} ended {count} {after} after the request, while it still sent: {probably}a timeout of it, or of "
    "a proxy before it, cuts its answers{sizes}.",
    advice="Compare the size with what the answer promises (Content-Length), and look for a time limit of {seconds} at {host} "
    "and each proxy or load balancer before it (Envoy `timeout` of a route, 15 s if it is not set; ALB; a worker's time limit).",
    shows="The server closes at least three connections in the middle of an answer, whose last data came within 1 s. Each ends "
    "the same whole number of seconds after its request (0.5%), 5 s or more. It is only possible if the answers have one size, "
    "as those of a paced stream have.",
    rivals={
        "app-limited": "all answers end after the same time",
        "closed-by-timer": "the answer went on to the end",
        "client-gave-up": "the server closes first",
    },
    unknown="Whether the answers were whole.",
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
    sizes = [connection.directions[connection.server_side]["unique_bytes"] or 1 for connection in connections]
    are_unlike = spread(sizes) > UNLIKE
    return Match(
        certainty="likely" if are_unlike else "possible",
        place="server",
        flows=[connection.number for connection in connections],
        waited_ns=sum(times),
        members=len(group),
        filter=" or ".join(flow_filter(connection.flow) for connection in connections[:SHOWN]),
        proof=f"FIN of the server {times_str(times)} after each request, right behind data",
        excluded={"client-gave-up": "the server closes first", "closed-by-timer": "data came to the end"},
        undecided={"app-limited": "the length that the answers promise: are they whole?"},
        server=server_str(connections),
        host=host,
        count=f"each of {plural(len(group), 'answer')}",
        after=times_str(times),
        seconds=show_duration(round(min(times) / 1e9) * 1e9),
        sizes="" if are_unlike else ", if they are not whole (they have one size)",
    )

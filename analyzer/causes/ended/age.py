# SPDX-License-Identifier: Apache-2.0
"""Servers that close each connection at the same age, however recently it was used, and requests that meet the close."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import (
    EQUAL,
    EXCHANGE_KINDS,
    ending_cited,
    filter_of,
    is_alike,
    largest_groups,
    server_str,
    times_str,
)
from wiretale.analyzer.causes.ended.timer import is_closed_by_server, last_of_server, spread
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.findings.exchanges.exchange_rows import rows_where
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection, End
    from wiretale.analyzer.rows import EndingRow

AGED_MIN = 3  # connections that ended at one age
AGE_MIN_NS = 5_000_000_000  # servers that close sooner ended the work, not the connection
APART_NS = 1_000_000_000  # between the first and the last begin: closed together is no age
LESS_UNLIKE = 4.0  # ages differ less than idle times, by this factor
AGE_TEST = "clients that ask at another pace, or all the time: at which age do their connections end?"
ALERT_MOST = 64  # bytes of a TLS record with close_notify


class Aged(NamedTuple):
    """A connection whose begin was seen and that its server closed."""

    connection: Connection
    fin: EndingRow | None  # that a request met
    age_ns: int


def age_at(connection: Connection, fin: EndingRow) -> int | None:
    """Returns the age of a connection at its FIN; None if its begin was not seen."""
    first_ns, time_ns = connection.flow["first_ns"], fin["time_ns"]
    is_known = connection.flow["initiator_known"] and first_ns is not None and time_ns is not None
    return (time_ns or 0) - (first_ns or 0) if is_known else None


def met_fin(connection: Connection, endings: Sequence[EndingRow]) -> EndingRow | None:
    """Returns the FIN by which the server closed first, if a request met it; None otherwise."""
    first = min(endings, key=lambda row: (row["time_ns"] or 0, row["frame"]))
    met = (first["unacked_bytes"] or 0) + first["late_bytes"]
    is_farewell = connection.flow["application"] == "tls" and met <= ALERT_MOST
    is_close = first["kind"] == "fin" and first["direction"] == connection.server_side
    return first if is_close and met and not is_farewell else None


def met_closes(case: Case) -> list[Aged]:
    """Returns the connections whose close met a request, and that no earlier cause explains."""
    explained, connections = case.flows_of(), case.connections
    met = []
    for flow, endings in connections.endings_with_reset.items():
        fin = met_fin(connections[flow], endings) if flow not in explained else None
        age_ns = fin and age_at(connections[flow], fin)
        if fin and age_ns and age_ns >= AGE_MIN_NS:
            met.append(Aged(connections[flow], fin, age_ns))
    return met


def other_closes(case: Case, server: End, met: Sequence[Aged]) -> list[Aged]:
    """Returns the other connections that the server closed first."""
    left_out = {each.connection.number for each in met}
    flows = [flow for flow in case.connections.to_server(server) if flow not in left_out]
    candidates = (case.connections[flow] for flow in last_of_server(case, flows))
    closed = [each for each in candidates if each.flow["initiator_known"] and is_closed_by_server(each)]
    return [Aged(each, None, each.last_ns - (each.flow["first_ns"] or 0)) for each in closed]


def is_outlived(case: Case, server: End, age_ns: float) -> bool:
    """Returns whether a connection to a server lived for longer."""
    began, ended = case.connections._columns(case.connections.to_server(server), "first_ns", "last_ns")
    return any(last - first > age_ns for first, last in zip(began, ended, strict=True))


def begin_apart(connections: Sequence[Connection], ages: Sequence[int]) -> bool:
    """Returns whether connections began at other times, by more than their ages differ: they were not closed together."""
    begins = [each.flow["first_ns"] or 0 for each in connections]
    return max(begins) - min(begins) >= max(APART_NS, 2 * (max(ages) - min(ages)))


def of_one_age(case: Case, met: Sequence[Aged]) -> list[Aged]:
    """Returns these connections to one server and the others that it closed at the same age, which none exceeded; [] if ages
    differ or if they are too few."""
    ages, server = [each.age_ns for each in met], met[0].connection.server
    if not is_alike(ages) or min(ages) < AGE_MIN_NS or is_outlived(case, server, EQUAL * max(ages)):
        return []
    group = [*met, *(each for each in other_closes(case, server, met) if is_alike([*ages, each.age_ns]))]
    times = [each.age_ns for each in group]
    is_limit = len(group) >= AGED_MIN and is_alike(times) and begin_apart([each.connection for each in group], times)
    return group if is_limit else []


def of_closes(case: Case, closes: Sequence[tuple[Connection, EndingRow]]) -> list[Aged]:
    """Returns the same for connections with their ending; [] if a begin was not seen."""
    met = [Aged(connection, fin, age_at(connection, fin) or 0) for connection, fin in closes]
    return of_one_age(case, met) if met and all(each.age_ns for each in met) else []


def last_answers(case: Case, flows: set[int]) -> dict[int, tuple[int, int]]:
    """Returns when the last answer on each of these connections ended, and how many came."""
    ends: dict[int, tuple[int, int]] = {}
    for row in rows_where(case.transfers, "kind", *EXCHANGE_KINDS):
        if row["flow"] in flows and row["answered_ns"] is not None:
            end_ns, count = ends.get(row["flow"], (0, 0))
            ends[row["flow"]] = max(end_ns, row["answered_ns"] + (row["response_ns"] or 0)), count + 1
    return ends


@cause(
    code="age-limit",
    title="The server closes connections at an age",
    sentence="The server {server} closed {closed:connection} {age} after each was opened, though they were in use (idle for "
    "{idle}), and {met} met the close: {they} reset.",
    advice="Let clients replace a connection before it is {age} old (the `maxLifetime` of a pool) and repeat idempotent "
    "requests, or raise the limit (Envoy `max_connection_duration`, nginx `keepalive_time`, gRPC `MAX_CONNECTION_AGE`).",
    shows="A server closes at least three connections first, at one age of at least 5 s (5%), and a request meets the FIN of at "
    "least one. They began 1 s or more apart, their idle times differ by more than their ages, and none lived for longer.",
    rivals={
        "idle-timeout": "the ages are alike, the idle times are not",
        "close-race": "the ages are alike, the idle times are not",
        "request-limit": "the numbers of requests differ",
        "server-restarted": "the connections were closed at other times",
    },
    unknown="Whether the server or a proxy before it has the limit; whether HTTP/2 announced it by GOAWAY, within TLS.",
    explains=(
        *("idle-reset", "reset", "spurious", "retransmission-unlocated", "lost-downstream"),
        *("request-unanswered", "retransmission-cost"),
    ),
)
def age_limit(case: Case) -> Matches:
    for _, met in largest_groups(met_closes(case), lambda each: each.connection.server):
        if group := of_one_age(case, met):
            yield from age_matches(case, met, group)


def idles_of(answers: dict[int, tuple[int, int]], group: Sequence[Aged]) -> list[int]:
    """Returns for how long connections were idle when they were closed, as far as answers show."""
    dated = [each for each in group if each.connection.number in answers]
    closes = [(each.connection.flow["first_ns"] or 0) + each.age_ns for each in dated]
    return [max(ns - answers[each.connection.number][0], 0) for each, ns in zip(dated, closes, strict=True)]


def are_unlike(idles: Sequence[int], ages: Sequence[int]) -> bool:
    """Returns whether idle times differ, and by far more than ages."""
    return bool(idles) and not is_alike(idles) and spread(idles) - 1 > LESS_UNLIKE * (spread(ages) - 1)


def rival_fields(is_sure: bool) -> dict[str, Any]:
    """Returns certainty and rivals; `is_sure`: the connections had other numbers of requests."""
    return {
        "certainty": "proven" if is_sure else "likely",
        "excluded": {
            "idle-timeout": "the idle times differ",
            "close-race": "the idle times differ",
            "server-restarted": "they were closed at other times",
            **({"request-limit": "the numbers of requests differ"} if is_sure else {}),
        },
        "undecided": {} if is_sure else {"request-limit": AGE_TEST},
    }


def age_matches(case: Case, met: Sequence[Aged], group: Sequence[Aged]) -> Matches:
    """Yields the match of connections that ended at one age, if their idle times tell it from an idle timeout."""
    connections, ages = [each.connection for each in group], [each.age_ns for each in group]
    answers = last_answers(case, {each.number for each in connections})
    idles = idles_of(answers, group)
    if not are_unlike(idles, ages):
        return
    yield Match(
        **rival_fields(len({count for _, count in answers.values()}) > 1),
        place="server",
        flows=[each.connection.number for each in met],
        failed=len(met),
        attempts=max(case.connections.requests_to(connections[0].server), len(met)),
        frames=[ending_cited(each.fin) for each in met[:SHOWN] if each.fin],
        filter=filter_of(each.connection for each in met),
        proof=f"{plural(len(group), 'connection')} closed by the server at the age of {times_str(ages)}, idle for "
        f"{times_str(idles)}",
        server=server_str(connections),
        closed=len(group),
        age=times_str(ages),
        idle=times_str(idles),
        met=plural(len(met), "request"),
        they="it was" if len(met) == 1 else "they were",
    )

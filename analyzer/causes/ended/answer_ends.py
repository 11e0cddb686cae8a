# SPDX-License-Identifier: Apache-2.0
"""Responses whose end only a close shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import is_alike, largest_groups, of_connections, times_str
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import packets_of
from wiretale.analyzer.findings.model import row_at
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.rows import ExchangeRow

ROWS_MAX = 100_000
WAIT_MIN_NS = 900_000_000  # until a close: a server that ends its response by it is quicker
CLIENT_MIN, CLIENT_MIN_NS, WHOLE = 2, 4_500_000_000, 0.005  # closes by clients that wait whole seconds


def response_end_ns(row: ExchangeRow) -> int:
    """Returns the time of the last byte of a response."""
    return (row["answered_ns"] or 0) + (row["response_ns"] or 0)


def is_all_seen(connection: Connection) -> bool:
    """Returns whether the capture has all that the server sent."""
    server = connection.directions[connection.server_side]
    return not (server["unseen_bytes"] or server["missing_bytes"] or server["gap_bytes"] or server["unknown_bytes"])


class Endless(NamedTuple):
    """A response that only a close ends, and what followed it."""

    connection: Connection
    row: ExchangeRow
    is_by_server: bool  # who closed

    @property
    def wait_ns(self) -> int:
        """The time from the last byte to the close."""
        return self.row["closed_ns"] or 0


def endless_responses(case: Case) -> list[Endless]:
    """Returns the last responses without a length whose connections stayed open behind them, which no cause explains."""
    exchanges, explained = case.trace.exchanges, case.flows_of()
    responses = []
    for number in exchanges._rows_where("response_until_close")[:ROWS_MAX]:
        row = row_at(exchanges, number)
        if not row["response_until_close"] or row["flow"] is None or row["flow"] in explained:
            continue
        connection = case.connections[row["flow"]]
        if (row["closed_ns"] or 0) >= WAIT_MIN_NS and is_all_seen(connection):
            responses.append(Endless(connection, row, row["closed_by"] == connection.server_side))
    return responses


def are_waits(group: Sequence[Endless]) -> bool:
    """Returns whether somebody waited for these closes: for those of a server, or all the same number of seconds."""
    if group[0].is_by_server:
        return True
    waits = [each.wait_ns for each in group]
    seconds = round(min(waits) / 1e9)
    is_whole = all(abs(ns / 1e9 - seconds) <= WHOLE * seconds for ns in waits)
    return len(group) >= CLIENT_MIN and min(waits) >= CLIENT_MIN_NS and is_alike(waits) and is_whole


@cause(
    code="endless-response",
    title="The client cannot know where the response ends",
    sentence="{count:response} of {server} {count:~has|have} neither a Content-Length nor chunks, and the connection stayed open "
    "behind {count:~it|them}: the client {probably}waited {waits} for the end, until {who}.",
    advice="Let {host} send a Content-Length, or chunks, or close right behind the last byte. A client with a shorter timeout "
    "only hides it.",
    shows="The header of an HTTP response has neither Content-Length nor Transfer-Encoding, and it is not status 204 or 304 or "
    "the answer to HEAD (exchanges.response_until_close), so that only a close ends it. The FIN comes 1 s or more behind its "
    "last byte: from the server, or from the client after the same whole number of seconds (0.5%, 5 s or more) at least twice.",
    rivals={
        "closed-by-timer": "the response is not over before the close",
        "app-limited": "no byte came in that time",
        "client-gave-up": "the client closes after a fixed time each time",
    },
    unknown="Whether the program of the client went on before, if it takes the content as it comes.",
    explains=("sender-idle",),
)
def endless_response(case: Case) -> Matches:
    groups = largest_groups(endless_responses(case), lambda each: (each.connection.server, each.is_by_server))
    for (server, is_by_server), group in groups:
        if not are_waits(group):
            continue
        connections, waits = [each.connection for each in group], [each.wait_ns for each in group]
        starts = [response_end_ns(each.row) for each in group]
        client = connections[0].end(connections[0].client_side)[0]
        yield Match(
            certainty="likely",
            place="server",
            members=len(group),
            waited_ns=union_ns(Span(start, start + ns) for start, ns in zip(starts, waits, strict=True)),
            frames=packets_of([each.row for each in group]),
            proof=f"{plural(len(group), 'response')} without a length, and a FIN {times_str(waits)} behind",
            excluded={"closed-by-timer": "the response was not over before"},
            undecided={"app-limited": f"Ask the program of {client}: does it take the content as it comes?"},
            count=len(group),
            host=server[0],
            waits=times_str(waits),
            who="the server closed" if is_by_server else "it gave up",
            **of_connections(connections),
        )

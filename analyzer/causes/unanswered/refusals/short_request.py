# SPDX-License-Identifier: Apache-2.0
"""Requests that are shorter than they say, so that the server waits for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import largest_groups, of_connections, times_str
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import packets_of
from wiretale.analyzer.findings.exchanges.unanswered import DUE_NS
from wiretale.analyzer.findings.model import row_at
from wiretale.analyzer.units import show_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.rows import DirectionRow, ExchangeRow

ROWS_MAX, TURNS_MAX = 100_000, 1_000
PAUSE_NS = 1_000_000_000  # in which the client sent nothing more, before the server ended it
TIMED_OUT = "408"
ENDED, OPEN = ("closed", "reset"), ("unanswered", "cut_off")


def waited_ns(case: Case, row: ExchangeRow) -> int:
    """Returns how long a request was open: until an answer or a FIN, else the end of the capture."""
    if row["waited_ns"] is not None:
        return row["waited_ns"]
    return case.connections.end_ns - (row["asked_ns"] or case.connections.end_ns)


def answered_bytes(case: Case, number: int) -> int:
    """Returns the bytes of the responses to the requests before one in its connection."""
    exchanges, flow, total = case.trace.exchanges, row_at(case.trace.exchanges, number)["flow"], 0
    for before in range(number - 1, max(number - 1 - TURNS_MAX, -1), -1):
        row: ExchangeRow = row_at(exchanges, before)
        if row["flow"] != flow:
            break
        total += row["response_bytes"] or 0
    return total


def is_silent(case: Case, server: DirectionRow, number: int, row: ExchangeRow) -> bool:
    """Returns whether a server that could read sent nothing but its answers before, or only that the request took too long."""
    if row["code"] == TIMED_OUT or server["zero_windows"]:
        return row["code"] == TIMED_OUT
    return not server["payload_bytes"] or server["unique_bytes"] == answered_bytes(case, number)


def is_short(row: ExchangeRow) -> bool:
    """Returns whether a client sent less than it announced, without waiting for a 100 Continue."""
    sent = row["request_bytes"]
    return sent is not None and sent < (row["announced_bytes"] or 0) and not row["expects_continue"]


def has_stopped(case: Case, number: int, row: ExchangeRow) -> bool:
    """Returns whether all that a client sent arrived, and it then sent nothing for a second before the server ended the request,
    or for 5 s until the capture ended."""
    if row["flow"] is None:
        return False
    connection = case.connections[row["flow"]]
    client, server = connection.directions[connection.client_side], connection.directions[connection.server_side]
    if any(client[column] for column in ("unacked_bytes", "missing_bytes", "unseen_bytes")):
        return False
    is_over = row["outcome"] in ENDED or row["code"] == TIMED_OUT
    if not is_over and (row["outcome"] not in OPEN or client["fins"]):
        return False
    pause_ns = waited_ns(case, row) - (row["request_ns"] or 0)
    return is_silent(case, server, number, row) and pause_ns >= (PAUSE_NS if is_over else DUE_NS)


def short_requests(case: Case) -> list[tuple[Connection, ExchangeRow]]:
    """Returns the requests that end before their announced length, which no cause explains."""
    exchanges, explained = case.trace.exchanges, case.flows_of()
    numbers = exchanges._rows_where("announced_bytes")[:ROWS_MAX]
    return [
        (case.connections[row["flow"] or 0], row)
        for number, row in ((number, row_at(exchanges, number)) for number in numbers)
        if row["flow"] not in explained and is_short(row) and has_stopped(case, number, row)
    ]


@cause(
    code="short-request",
    title="The client sends less than it announces",
    sentence="The client {client} sent {missing} less than the Content-Length of {count:HTTP request} to {server} announces, so "
    "that the server waited for the rest: {end}.",
    advice="Let the program on {client} send as many bytes as it announces: the length counts bytes, not characters, and that of "
    "another body must not be sent again. If it does, look for a proxy that cuts the body.",
    shows="An HTTP request has fewer bytes than its header and Content-Length say "
    "(exchanges.announced_bytes). All that was sent was acknowledged, the server's window was open, and the client sent "
    "nothing more for 1 s before the server closed or answered status 408, or for 5 s until the capture ended.",
    rivals={
        "hung-server": "the request is not complete",
        "closed-unanswered": "the server closed on half a request",
        "zero-window": "the window of the server is open",
        "expect-continue": "the client did not ask whether it should send the body",
        "client-pause": "the request ended before the client sent the rest",
    },
    unknown="Whether the program of the client or a proxy behind it lost the rest.",
    explains=("request-unanswered", "slow-server", "idle-reset", "reset"),
)
def short_request(case: Case) -> Matches:
    for (_, client), group in largest_groups(
        short_requests(case), lambda pair: (pair[0].server, pair[0].end(pair[0].client_side)[0])
    ):
        yield short_match(case, client, [connection for connection, _ in group], [row for _, row in group])


def short_match(case: Case, client: str, connections: Sequence[Connection], rows: Sequence[ExchangeRow]) -> Match:
    """Returns the match of the requests of one client to one server."""
    missing = sorted((row["announced_bytes"] or 0) - (row["request_bytes"] or 0) for row in rows)
    waits = [waited_ns(case, row) for row in rows]
    is_over = all(row["outcome"] not in OPEN for row in rows)
    starts = [row["asked_ns"] or 0 for row in rows]
    return Match(
        certainty="proven" if is_over else "likely",
        place="client",
        failed=len(rows),
        attempts=max(case.connections.requests_to(connections[0].server), len(rows)),
        waited_ns=union_ns(Span(start, start + ns) for start, ns in zip(starts, waits, strict=True)),
        frames=packets_of(rows),
        proof="all bytes sent were acknowledged, fewer than the request announces",
        excluded={
            "hung-server": "the request is not complete",
            "closed-unanswered": "the request is not complete",
            "zero-window": "the server's window was open",
            "expect-continue": "it did not ask before it sends the body",
        },
        undecided={} if is_over else {"client-pause": "a longer capture: does the client send the rest later?"},
        client=client,
        count=len(rows),
        missing=f"{show_bytes(missing[0])}{f' to {show_bytes(missing[-1])}' if missing[0] < missing[-1] else ''}",
        end=end_str(rows, times_str(waits)),
        **of_connections(connections),
    )


def end_str(rows: Sequence[ExchangeRow], waits: str) -> str:
    """Returns how these requests ended."""
    if all(row["code"] == TIMED_OUT for row in rows):
        return f"it answered status {TIMED_OUT} after {waits}"
    if all(row["outcome"] in ENDED for row in rows):
        return f"it closed without an answer after {waits}"
    return f"no answer came in {waits}"

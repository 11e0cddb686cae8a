# SPDX-License-Identifier: Apache-2.0
"""Servers that close a connection in place of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import largest_groups, server_str, times_str
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.findings.exchanges.exchange_rows import packets_of, waits_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.rows import ExchangeRow

WANTS_ANSWER = ("http", "tls")  # of others, the last message may be a farewell
PHRASES = {"http": "HTTP request", "tls": "ClientHello"}


@cause(
    code="closed-unanswered",
    title="The server closed in place of an answer",
    sentence="The server {server} closed {count:connection} without an answer to the {request}, {waited} after it: its process "
    "{probably}ended, or refuses such requests.",
    advice="Look at the log of {host} at that second: a crash, a restart, a limit of connections, or a protocol that the port "
    "does not speak.",
    shows="The server sends FIN after a first HTTP request or a ClientHello that it acknowledged, and not one byte before "
    "(exchanges.outcome: closed).",
    rivals={
        "hung-server": "the server closes",
        "reset-by-peer": "a FIN, no RST",
        "client-gave-up": "the server closes first",
    },
    unknown="Why: the log of the server has that.",
    explains=("request-unanswered",),
)
def closed_unanswered(case: Case) -> Matches:
    explained = case.flows_of()
    rows = [
        row for row in case.exchanges("outcome", "closed") if row["kind"] in WANTS_ANSWER and row["flow"] is not None
    ]
    pairs = [(row, case.connections[row["flow"] or 0]) for row in rows if row["flow"] not in explained]
    for (_, kind), group in largest_groups(pairs, lambda pair: (pair[1].server, pair[0]["kind"])):
        yield closed_match(case, PHRASES[kind], [row for row, _ in group], [connection for _, connection in group])


def closed_match(case: Case, request: str, rows: Sequence[ExchangeRow], connections: Sequence[Connection]) -> Match:
    """Returns the match of the requests that one server closed on."""
    server, waits = connections[0].server, [row["waited_ns"] for row in rows if row["waited_ns"] is not None]
    return Match(
        certainty="likely",
        place="server",
        flows=[connection.number for connection in connections],
        failed=len(rows),
        attempts=max(case.connections.requests_to(server), len(rows)),
        waited_ns=union_ns(waits_of(rows)),
        frames=packets_of(rows),
        filter=" or ".join(flow_filter(connection.flow) for connection in connections[:SHOWN]),
        proof="FIN of the server, and not one byte before",
        excluded={"hung-server": "it closed", "client-gave-up": "its FIN came first"},
        undecided={"reset-by-peer": f"Read the log of {server[0]}: did its process end, or refuse the request?"},
        server=server_str(connections),
        count=len(rows),
        request=request,
        waited=times_str(waits) if waits else "at once",
        host=server[0],
    )

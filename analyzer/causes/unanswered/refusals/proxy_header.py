# SPDX-License-Identifier: Apache-2.0
"""Servers that do not expect the header in which a proxy tells the address of its client."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import largest_groups, of_connections
from wiretale.analyzer.findings.exchanges.exchange_rows import packets_of
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import ExchangeRow

FLOWS_MAX, HANDSHAKES_MAX = 100_000, 100_000
BAD_REQUEST = "400"
FAILURES = ("closed", "reset", "error")


def outcome_of(row: ExchangeRow) -> str | None:
    """Returns what came in place of an answer: a status, an alert, a FIN or RST; None for an answer."""
    if row["code"] == BAD_REQUEST:
        return f"answered status {BAD_REQUEST}"
    if row["kind"] == "tls" and row["outcome"] == "error":
        return "sent a TLS alert"
    return "closed without an answer" if row["outcome"] in FAILURES[:2] else None


def headed_requests(case: Case) -> list[tuple[Connection, ExchangeRow]]:
    """Returns the first requests behind a header of the PROXY protocol."""
    flows = set(case.trace.flows._rows_where("proxy_header")[:FLOWS_MAX]) - case.flows_of()
    if not flows:
        return []
    rows = [row for row in case.exchanges("kind", "http", "tls") if row["flow"] in flows and not row["turn"]]
    return [(case.connections[row["flow"] or 0], row) for row in rows]


def greeted_flows(case: Case, flows: set[int]) -> set[int]:
    """Returns the flows of these whose server sent a ServerHello: what fails later has another reason."""
    hellos = case.trace.handshakes.rows(0, HANDSHAKES_MAX) if flows else []
    return {row["flow"] for row in hellos if row["flow"] in flows and row["server_hello_frame"] is not None}


@cause(
    code="proxy-header",
    title="The server does not expect a PROXY header",
    sentence="{client} puts a header of the PROXY protocol before each {request}, which {server} {probably}does not expect: it "
    "{outcome} ({count} of {total}{beside}).",
    advice="Turn the PROXY protocol on at {host} (nginx `listen … proxy_protocol`, ingress-nginx `use-proxy-protocol`, Apache "
    "`RemoteIPProxyProtocol`), or off at {client}: both must have the same setting.",
    shows="A header of the PROXY protocol, version 1 or 2, precedes the first HTTP request or ClientHello of connections "
    "(flows.proxy_header). The server answers none of them but by status 400, a TLS alert, FIN or RST. A request without the "
    "header that it answers otherwise proves it.",
    rivals={
        "not-tls": "a PROXY header precedes the protocol of the port",
        "closed-unanswered": "all requests of this client begin with a PROXY header",
        "error-answers": "status 400 to each request, whatever it asks for",
    },
    unknown="Whether the server expects another version of the header.",
    explains=("request-unanswered", "tls-alert", "reset"),
)
def proxy_header(case: Case) -> Matches:
    requests = headed_requests(case)
    greeted = greeted_flows(case, {connection.number for connection, row in requests if row["kind"] == "tls"})
    for (server, client), group in largest_groups(
        requests, lambda pair: (pair[0].server, pair[0].end(pair[0].client_side)[0])
    ):
        failed = [pair for pair in group if outcome_of(pair[1]) and pair[0].number not in greeted]
        if len(failed) == len(group):
            headed = {connection.number for connection, _ in group}
            plain = [flow for flow in case.connections.to_server(server) if flow not in headed]
            yield header_match(case, client, failed, served_of(case, plain))


def served_of(case: Case, flows: Sequence[int]) -> int:
    """Returns how many of these connections without a header had an answer to their first request."""
    among = set(flows)
    rows = [row for row in case.exchanges("kind", "http", "tls") if row["flow"] in among and not row["turn"]]
    return sum(row["outcome"] == "answered" and not outcome_of(row) for row in rows)


def header_match(case: Case, client: str, failed: Sequence[tuple[Connection, ExchangeRow]], served: int) -> Match:
    """Returns the match of connections of a proxy to a server, which served others without a header."""
    connections, rows = [connection for connection, _ in failed], [row for _, row in failed]
    (outcome, _), *_ = Counter(outcome_of(row) or "" for row in rows).most_common(1)
    return Match(
        certainty="proven" if served else "likely",
        place="server",
        failed=len(rows),
        attempts=len(rows),
        frames=packets_of(rows),
        proof=f"a PROXY header before {plural(len(rows), 'request')}, none of which was served",
        excluded={"not-tls": "a PROXY header precedes the protocol"}
        | ({"closed-unanswered": "requests without the header were served"} if served else {}),
        undecided={}
        if served
        else {"error-answers": f"The same request to {connections[0].server[0]} without the header"},
        client=client,
        host=connections[0].server[0],
        outcome=outcome,
        **words_of(rows, served),
        **of_connections(connections),
    )


def words_of(rows: Sequence[ExchangeRow], served: int) -> Words:
    """Returns the words that follow from the requests."""
    return {
        "request": "HTTP request" if rows[0]["kind"] == "http" else "TLS handshake",
        "count": len(rows),
        "total": len(rows),
        "beside": f", while it served {served:,} without" if served else "",
    }

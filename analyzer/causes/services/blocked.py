# SPDX-License-Identifier: Apache-2.0
"""Database servers that block a host because its connections ended without a login."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.services.dialogs import facts_of, flows_of
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow

MYSQL, PORTS = "MySQL login", (3306,)
BLOCKED = "1129 "  # ER_HOST_IS_BLOCKED


def without_login(case: Case, rows: Sequence[ExchangeRow], refused: Sequence[ExchangeRow]) -> list[int]:
    """Returns the connections between the ends of these rows that ended before them, after a greeting and without a word of
    the client; one that the server refused had no greeting."""
    first_ns = min(row["answered_ns"] or 0 for row in rows)
    flows = [case.flow(flow) for flow in flows_of(case, rows, PORTS)]
    times_ns = [row["answered_ns"] or 0 for row in refused]
    return [
        row["flow"]
        for row in flows
        if (row["last_ns"] or 0) < first_ns
        and is_unused(case, row["flow"])
        and not any((row["first_ns"] or 0) <= ns <= (row["last_ns"] or 0) for ns in times_ns)
    ]


def is_unused(case: Case, flow: int) -> bool:
    """Returns whether the client said nothing in a connection in which the server greeted it."""
    return not case.direction(flow, 0)["payload_bytes"] and bool(case.direction(flow, 1)["payload_bytes"])


@cause(
    code="host-blocked",
    title="A database server blocks a host after connections without a login",
    sentence="The MySQL server {server} blocks {client} because of too many connections without a login: {before} it "
    "refused {count} with error 1129.",
    advice="Find what on {client} connects to {server} and closes without a login (a health check that only opens the port, a "
    "port scan), and let it log in or stop. `mysqladmin flush-hosts` lifts the block; a larger `max_connect_errors` puts it off.",
    shows="The server refuses connections with error 1129 (host is blocked). The connections before it that ended "
    "after the greeting without a word of the client are counted, if the capture has them.",
    rivals={
        "service-refused": "the server counts the connections of the host, and no account is refused",
        "reset-by-peer": "the server says why before it closes",
    },
    unknown="Which program opened those connections.",
)
def host_blocked(case: Case) -> Matches:
    by_ends: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    for row in case.exchanges("kind", "service"):
        if row["type"] == MYSQL and row["outcome"] == "refused":
            by_ends[row["client"] or "?", row["server"] or "?"].append(row)
    for (client, server), refused in by_ends.items():
        rows = [row for row in refused if (row["code"] or "").startswith(BLOCKED)]
        if not rows:
            continue
        unused, facts = without_login(case, rows, refused), facts_of(case, rows, PORTS)
        yield Match(
            certainty="proven",
            place="client",
            failed=len(rows),
            attempts=len(rows),
            filter=f"mysql && ip.addr == {client}",
            proof=f"{plural(len(rows), 'answer')} with error 1129; {plural(len(unused), 'connection')} without a login before",
            excluded={"service-refused": "no account is refused"},
            client=client,
            server=server,
            before=f"{len(unused)} ended after the greeting, and then"
            if unused
            else "the capture shows none of these, but",
            count=plural(len(rows), "connection"),
            **facts,
        )

# SPDX-License-Identifier: Apache-2.0
"""RADIUS: requests of a size that get no answer, requests that a server leaves unanswered, and users that it rejects."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.services.dialogs import facts_of
from wiretale.analyzer.findings.exchanges.exchange_rows import named
from wiretale.analyzer.units import plural, show_bytes, show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow

PORTS = (1812, 1813, 1645, 1646)
ANSWERED_MIN, SILENT_MIN, REPEATS_MIN = 4, 2, 2
LARGE_BYTES = 1_280  # a request that a tunnel or an interface may not pass whole
DATAGRAM_BYTES = 1_472  # a longer payload is in fragments over Ethernet


class Server(NamedTuple):
    """The requests of one client to one RADIUS server, those without an answer apart."""

    client: str
    address: str
    silent: list[ExchangeRow]
    answered: list[ExchangeRow]

    @property
    def is_by_size(self) -> bool:
        """Whether all requests from some size on stay unanswered, and all smaller ones are answered."""
        sizes = [row["request_bytes"] or 0 for row in self.silent]
        largest = max((row["request_bytes"] or 0 for row in self.answered), default=0)
        is_shown = len(sizes) >= SILENT_MIN and len(self.answered) >= ANSWERED_MIN
        return is_shown and min(sizes) >= LARGE_BYTES and min(sizes) > largest


def servers_of(case: Case) -> list[Server]:
    """Returns the servers that leave requests unanswered, and answer others."""
    ends: dict[tuple[str, str], Server] = {}
    for row in case.exchanges("kind", "radius"):
        client, address = row["client"] or "?", row["server"] or "?"
        server = ends.setdefault((client, address), Server(client, address, [], []))
        if row["outcome"] in ("answered", "refused"):
            server.answered.append(row)
        elif row["outcome"] == "unanswered" and row["attempts"] >= REPEATS_MIN:
            server.silent.append(row)
    return [server for server in ends.values() if server.silent and server.answered]


def users_of(rows: Sequence[ExchangeRow]) -> str:
    """`alice, bob and 3 more`; empty if no request names one."""
    return named(sorted({row["name"] for row in rows if row["name"]}), 2)


@cause(
    code="radius-large",
    title="Large RADIUS requests are lost",
    sentence="The RADIUS server {server} answers all {answered} small requests, but none of the {silent} of {size} or more"
    "{users}: {what} probably never arrive.",
    advice="Let fragments of UDP {client} to {server} pass (firewall, NAT, tunnel), and compare the MTU of the way; or lower the "
    "size of EAP fragments at the client, or Framed-MTU, to 1,200 bytes or less. RADIUS over TLS avoids it.",
    shows="At least two requests of one client, each repeated and of 1,280 bytes or more, get no answer, while all smaller "
    "ones (at least four) do. The certificate of EAP-TLS makes such requests.",
    rivals={
        "radius-silent": "the size separates the two without an exception",
        "udp-silent": "the server answers smaller requests of the same client",
        "fragments-dropped": "all fragments are here: they are lost after the capture point",
    },
    unknown="Where they are lost; whether the server drops what it cannot put together.",
    explains=("one-way",),
)
def radius_large(case: Case) -> Matches:
    for server in servers_of(case):
        if server.is_by_size:
            size, users = min(row["request_bytes"] or 0 for row in server.silent), users_of(server.silent)
            yield Match(
                certainty="likely",
                place="path",
                failed=len(server.silent),
                attempts=len(server.silent) + len(server.answered),
                filter=f"radius && ip.addr == {server.address}",
                proof=f"{plural(sum(row['attempts'] for row in server.silent), 'datagram')} of {show_bytes(size)} or more "
                f"without an answer, {plural(len(server.answered), 'smaller request')} with one",
                excluded={
                    "radius-silent": "the size separates them",
                    "udp-silent": "the server answers smaller requests",
                },
                undecided={"fragments-dropped": f"Capture at {server.address}: which fragments arrive?"},
                server=server.address,
                client=f"from {server.client}",
                silent=f"{len(server.silent):,}",
                answered=f"{len(server.answered):,}",
                size=show_bytes(size),
                users=f" ({users})" if users else "",
                what="their fragments" if size > DATAGRAM_BYTES else "such datagrams",
                **facts_of(case, server.silent, PORTS),
            )


@cause(
    code="radius-silent",
    title="RADIUS requests get no answer",
    sentence="The RADIUS server {server} leaves {silent} of {all} of {client} unanswered{users}: each was sent {tries} times "
    "in up to {time}.",
    advice="Look at the log of {server} for these requests: it says nothing if the shared secret is wrong, the client is "
    "unknown, or its own directory (LDAP, a proxy) does not answer in time.",
    shows="Requests of a client, each sent at least twice, get no answer within 3 s, while the server answers others.",
    rivals={
        "udp-silent": "the server answers other requests of this client",
        "radius-large": "smaller requests stay unanswered, too",
    },
    unknown="Whether the server ignores them, or they or the answers are lost.",
)
def radius_silent(case: Case) -> Matches:
    for server in servers_of(case):
        if server.is_by_size:
            continue
        users, total = users_of(server.silent), len(server.silent) + len(server.answered)
        yield Match(
            certainty="proven",
            place="server",
            failed=len(server.silent),
            attempts=total,
            filter=f"radius && ip.addr == {server.address}",
            proof=f"{plural(sum(row['attempts'] for row in server.silent), 'datagram')} without an answer",
            excluded={"udp-silent": f"{plural(len(server.answered), 'request')} got an answer"},
            server=server.address,
            client=server.client,
            silent=f"{len(server.silent):,}",
            all=plural(total, "request"),
            users=f" ({users})" if users else "",
            tries=max(row["attempts"] for row in server.silent),
            time=show_duration(max(row["waited_ns"] or 0 for row in server.silent)),
            **facts_of(case, server.silent, PORTS),
        )


@cause(
    code="radius-rejected",
    title="RADIUS rejects users",
    sentence="The RADIUS server {server} rejects {users}: {count} of {client}, and no Access-Accept for {them}.",
    advice="Look at the log of {server} for {users}: a wrong password, an expired account or certificate, an EAP method that it "
    "does not allow, or a policy.",
    shows="Access-Reject for a user who gets no Access-Accept. It is a note if the user is rejected once and "
    "others are accepted.",
    rivals={"radius-silent": "the server answers"},
    unknown="The reason: the server doesn't give it.",
)
def radius_rejected(case: Case) -> Matches:
    rows = [row for row in case.exchanges("kind", "radius") if row["name"]]
    accepted = {row["name"] for row in rows if row["code"] == "Access-Accept"}
    ends: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    for row in rows:
        if row["outcome"] == "refused" and row["name"] not in accepted:
            ends[row["client"] or "?", row["server"] or "?"].append(row)
    for (client, server), rejects in ends.items():
        users = {row["name"] for row in rejects}
        yield Match(
            certainty="proven",
            place="server",
            failed=len(users),
            attempts=len(users | accepted),
            severity="info" if accepted and len(rejects) == 1 else None,
            filter="radius.code == 3",
            proof=plural(len(rejects), "Access-Reject"),
            excluded={"radius-silent": "the server answers"},
            server=server,
            client=client,
            users=users_of(rejects),
            count=plural(len(rejects), "Access-Reject"),
            them="it" if len(users) == 1 else "them",
            **facts_of(case, rejects, PORTS),
        )

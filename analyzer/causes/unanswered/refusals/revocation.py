# SPDX-License-Identifier: Apache-2.0
"""TLS handshakes in which the client waits for hosts that never answer, as those of revocation lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import largest_groups, server_str, times_str
from wiretale.analyzer.causes.unanswered.silent_hosts import about, any_filter, silent_hosts
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import named, packets_of
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.rows import ExchangeRow

PAUSE_MIN_NS = 2_000_000_000  # of a client in the middle of a handshake, which has nothing else to wait for
EARLY_NS, LATE_NS = 100_000_000, 1_000_000_000  # of the first SYN, from the message of the server
COVERED = 0.5  # of the pause, by the time from first to last SYN: the last wait has no packet at its end
SECOND_TURN = 1
LIST_PORTS = frozenset((80, 389))  # HTTP, LDAP


class Pause(NamedTuple):
    """A handshake in whose middle a client paused while hosts left its SYNs without an answer."""

    connection: Connection
    row: ExchangeRow
    span: Span
    attempts: Sequence[int]


def pauses_of(case: Case) -> list[tuple[Connection, ExchangeRow, Span]]:
    """Returns the pauses of clients between the first message of a TLS server and their own next one."""
    flows = set(case.transfers.flows_where("application", "tls"))
    return [
        (case.connections[row["flow"] or 0], row, Span(row["asked_ns"] - row["pause_ns"], row["asked_ns"]))
        for row in case.exchanges("kind", "turn")
        if row["turn"] == SECOND_TURN
        and row["flow"] in flows
        and row["asked_ns"] is not None
        and row["pause_ns"] is not None
        and row["pause_ns"] >= PAUSE_MIN_NS
    ]


def attempts_of(case: Case) -> dict[str, list[tuple[int, Span]]]:
    """Returns the unanswered attempts of each client at ports of revocation lists, with the time from first to last SYN."""
    attempts: dict[str, list[tuple[int, Span]]] = {}
    for host in silent_hosts(case):
        for flow in host.flows:
            row = case.flow(flow)
            is_asked = row["destination_port"] in LIST_PORTS
            if is_asked and row["first_ns"] is not None and row["last_ns"] is not None:
                attempts.setdefault(row["source"], []).append((flow, Span(row["first_ns"], row["last_ns"])))
    return attempts


def waiting(case: Case) -> list[Pause]:
    """Returns the pauses that began with an attempt at a silent host, and lasted as long as such attempts."""
    pauses = pauses_of(case) if case.findings("syn-unanswered") else []
    attempts, waits = attempts_of(case) if pauses else {}, []
    for connection, row, span in pauses:
        client = connection.end(connection.client_side)[0]
        within = [
            (flow, of)
            for flow, of in attempts.get(client, [])
            if span.start_ns - EARLY_NS <= of.start_ns and of.end_ns <= span.end_ns
        ]
        covered = union_ns(of for _, of in within) or 0
        begins = min((of.start_ns for _, of in within), default=span.end_ns)
        if begins - span.start_ns <= LATE_NS and covered >= COVERED * span.ns:
            waits.append(Pause(connection, row, span, [flow for flow, _ in within]))
    return waits


@cause(
    code="revocation-blocked",
    title="A TLS client waits for hosts that never answer",
    sentence="The client {client} paused {waited} in {count:TLS handshake} with {server}, and went on when {hosts} had left "
    "its SYNs without an answer. It {probably}asks there whether the certificate is revoked (CRL, OCSP).",
    advice="Let {client} reach {names} on TCP 80, directly or by the proxy that its system account uses (`netsh winhttp show "
    "proxy`); or let the server staple OCSP. Windows also fetches lists of root certificates, which a policy turns off.",
    shows="A client sends nothing for 2 s or longer between the first message of a TLS server and its own next one. Within a "
    "second of that message it begins to connect to TCP 80 or 389 of hosts that answer no SYN, until it goes on; from first to "
    "last, these SYNs take half of the pause or more.",
    rivals={
        "host-down": "the client waits for these hosts in the middle of a handshake with another one",
        "client-pause": "its SYNs show what it waits for",
        "slow-dependency": "these hosts answer nothing",
    },
    unknown="What it wants of these hosts, and where their answers are lost.",
    explains=("tls-handshake-slow", "syn-unanswered", "sender-idle"),
)
def revocation_blocked(case: Case) -> Matches:
    for _, group in largest_groups(waiting(case), lambda each: each.connection.end(each.connection.client_side)[0]):
        flows = list(dict.fromkeys(flow for each in group for flow in each.attempts))
        case.claimed.update(flows)
        yield pause_match(case, group, flows)


def pause_match(case: Case, group: Sequence[Pause], attempts: Sequence[int]) -> Match:
    """Returns the match of the handshakes of one client."""
    connections = [each.connection for each in group]
    client = connections[0].end(connections[0].client_side)[0]
    hosts = list(dict.fromkeys(case.flow(flow)["destination"] for flow in attempts))
    names = names_of(case, hosts)
    places = " and ".join(names) if 1 < len(names) < 3 else named(names or hosts, 2)
    return Match(
        certainty="likely",
        place="client",
        findings=about(case, attempts, "syn-unanswered"),
        flows=[*(connection.number for connection in connections), *attempts],
        attempts=len(group),
        waited_ns=union_ns(each.span for each in group),
        frames=packets_of([each.row for each in group]),
        packets=len(group),
        filter=any_filter([case.flow(flow) for flow in attempts]),
        proof=f"{plural(len(attempts), 'attempt')} without an answer in the pause of the handshake",
        excluded={"slow-dependency": "these hosts answered nothing"},
        undecided={"client-pause": f"`certutil -verify -urlfetch` on {client}: does it wait for these hosts?"},
        client=client,
        server=server_str(connections),
        count=len(group),
        waited=times_str([round(each.span.ns) for each in group]),
        hosts=places if names else plural(len(hosts), "host"),
        names=places,
    )


def names_of(case: Case, hosts: Sequence[str]) -> list[str]:
    """Returns the names for which DNS gave these addresses, if each has one."""
    names: dict[str, str] = {}
    for row in case.exchanges("kind", "dns"):
        for address in (row["addresses"] or "").split():
            if row["name"]:
                names.setdefault(address, row["name"])
    return list(dict.fromkeys(names[host] for host in hosts)) if all(host in names for host in hosts) else []

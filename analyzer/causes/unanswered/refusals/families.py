# SPDX-License-Identifier: Apache-2.0
"""Services that listen on one of their addresses, while clients try the other one first."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import times_str
from wiretale.analyzer.causes.unanswered.refusals.refused_servers import NEXT_NS, Refused, fields_of, refused_servers
from wiretale.analyzer.causes.unanswered.silent_hosts import ATTEMPTS_MAX
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import FlowRow

CONNECTIONS_MAX = 10_000
CHANCE_MOST, CHANCES_MOST = 0.5, 0.01  # that another begins so soon after one refusal, and after all of them
ADDRESSES = {4: "0.0.0.0", 6: "[::]"}


class Instead(NamedTuple):
    """A connection that a client opened when another address had refused it."""

    address: str
    waited: Span


def are_of_one_host(case: Case, refused: str, accepted: str) -> bool:
    """Returns whether two addresses belong to one name: both are loopback, or DNS gave both for it."""
    if ip_address(refused).is_loopback and ip_address(accepted).is_loopback:
        return True
    names: dict[str, set[str]] = {refused: set(), accepted: set()}
    for row in case.exchanges("kind", "dns"):
        for address in (row["addresses"] or "").split():
            if address in names and row["name"]:
                names[address].add(row["name"].lower())
    return bool(names[refused] & names[accepted])


def accepted_elsewhere(case: Case, server: Refused) -> list[FlowRow]:
    """Returns the first connections to the refused port at addresses of the other family, in their order."""
    flows, attempts = case.trace.flows, case.transfers.attempts
    versions, ports = flows._packed("ip_version", "B"), array("I", flows._packed("destination_port", "I"))
    version = case.flow(server.flows[0])["ip_version"]
    numbers = [
        flow
        for flow, port in enumerate(ports)
        if port == server.port and versions[flow] != version and attempts.is_connection(flow)
    ]
    rows = [case.flow(flow) for flow in numbers[:CONNECTIONS_MAX]]
    return sorted((row for row in rows if row["first_ns"] is not None), key=lambda row: row["first_ns"] or 0)


def is_by_chance(starts: Sequence[int], followed: int, late_ns: int) -> bool:
    """Returns whether connections that began at these times, of which some followed refusals, so late in all, may be those of
    other clients: as many others begin in that time."""
    strangers, span_ns = len(starts) - followed, starts[-1] - starts[0] if starts else 0
    if not followed or not strangers:
        return False
    chance = late_ns / followed * strangers / max(span_ns, 1)
    return chance > CHANCE_MOST or chance**followed > CHANCES_MOST


def instead_of(case: Case, server: Refused) -> list[Instead]:
    """Returns for each refused attempt the connection that its host opened within a second; none if an attempt has
    none, or by chance."""
    opened = accepted_elsewhere(case, server)
    starts, used, instead, late_ns = [row["first_ns"] or 0 for row in opened], set[int](), list[Instead](), 0
    for row in map(case.flow, server.flows[:ATTEMPTS_MAX]):
        began, refused_ns = row["first_ns"], row["last_ns"]
        if began is None or refused_ns is None:
            return []
        place = bisect_left(starts, refused_ns)
        while place < len(opened) and place in used:
            place += 1
        if place == len(opened) or starts[place] - refused_ns > NEXT_NS:
            return []
        used.add(place)
        late_ns += starts[place] - refused_ns
        instead.append(Instead(opened[place]["destination"], Span(began, starts[place])))
    return [] if is_by_chance(starts, len(instead), late_ns) else instead


@cause(
    code="other-family",
    title="The service listens on its other address only",
    sentence="Nothing listens on {server}, but {host} serves that port: clients try the address that refuses first, and "
    "{count:connection} came {waited} late{repeats}.",
    advice="Let the service listen on {address} too, or name {host} where the client is configured (for `localhost`: "
    "127.0.0.1 or ::1). Windows repeats a refused SYN for 2 s before it tries the next address.",
    shows="A host refuses all connections to a port over IPv6 by RST, or over IPv4, and each attempt is followed within 1 s by a "
    "connection to the same port at its address of the other family, sooner than others come by chance. Both are loopback "
    "addresses, or DNS gave both for one name.",
    rivals={
        "refused": "the same port is open at the host's other address",
        "broken-family": "RSTs come: the address works",
    },
    unknown="Whether a firewall refuses in the name of the host, if no other packet of that address is there.",
    explains=("connection-refused", "timeout-stalls", "syn-lost"),
)
def other_family(case: Case) -> Matches:
    for server in refused_servers(case):
        instead = instead_of(case, server) if not server.opened else []
        hosts = {each.address for each in instead}
        if len(hosts) == 1 and are_of_one_host(case, server.host, min(hosts)):
            case.claimed.update(server.flows)
            yield family_match(case, server, min(hosts), instead)


def family_match(case: Case, server: Refused, host: str, instead: Sequence[Instead]) -> Match:
    """Returns the match of a port that is open at another address of its host."""
    repeats = max((case.direction(flow, 0)["syns"] or 1) - 1 for flow in server.flows[:ATTEMPTS_MAX])
    version = case.flow(server.flows[0])["ip_version"] or 4
    return Match(
        certainty="proven",
        place="server",
        proof=f"a RST answered {plural(len(server.flows), 'attempt')}, each followed by a connection to the other address",
        excluded={"refused": f"{endpoint_str(host, server.port)} accepts", "broken-family": "a RST came"},
        **fields_of(case, server, len(server.flows))
        | {
            "failed": None,
            "severity": None,
            "waited_ns": union_ns(each.waited for each in instead),
        },
        server=server.server,
        host=host,
        count=len(instead),
        address=ADDRESSES[version],
        waited=times_str([round(each.waited.ns) for each in instead]),
        repeats=f", because they repeat a refused SYN {plural(repeats, 'time')}" if repeats else "",
    )

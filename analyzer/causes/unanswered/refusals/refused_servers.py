# SPDX-License-Identifier: Apache-2.0
"""Servers that refused connections by RST, and whether the host itself did."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.causes.unanswered.silent_hosts import (
    ATTEMPTS_MAX,
    HOSTS_MAX,
    about,
    opened,
    spans_of,
)
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import first_resets
from wiretale.analyzer.units import show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case

TURNS_MIN = 4  # connections between refusals
NEXT_NS = 1_000_000_000  # from a reset to what the client tries in its place
BYTE_MAX = 255
TCP, BGP_PORT = 6, 179
INITIAL_TTLS, HOPS_MAX = (64, 128, 255), 40  # a path is shorter; a TTL below is that of a socket


def initial(ttl: int) -> int:
    """Returns the TTL that a system sets, of which a packet has this rest."""
    return next(value for value in INITIAL_TTLS if ttl <= value)


def distance(ttl: int) -> int:
    """Returns the number of routers that a packet passed."""
    return initial(ttl) - ttl


def hops_between(ttl: int, other: int) -> int | None:
    """Returns the difference of two TTLs; of other initial values that of the routers passed, None if that is 0, because a socket
    can set its own."""
    if initial(ttl) == initial(other):
        return abs(ttl - other)
    return abs(distance(ttl) - distance(other)) or None


class Refused(NamedTuple):
    """The connections that a server refused by RST."""

    host: str
    port: int
    flows: list[int]
    waits_ns: list[float]  # of the first of them, to the last RST
    replies_ns: list[float]  # of those of them with one SYN, to its RST
    reset_ttls: set[int]  # of the RSTs
    host_ttls: set[int]  # of the other TCP packets of that host
    other_ttls: set[int]  # of its packets of other protocols, which may have their own
    opened: int  # connections to that port that came about
    is_over: bool  # the last of them after the last refusal
    changes: int = 0  # from refusals to connections of that port, one after the other

    @property
    def is_by_turns(self) -> bool:
        """Whether the port accepts connections between most refusals, as an address of several servers does, one of them down."""
        return self.changes >= max(TURNS_MIN, min(len(self.flows), self.opened) / 2)

    @property
    def server(self) -> str:
        """Address and port."""
        return endpoint_str(self.host, self.port)

    @property
    def hops(self) -> int | None:
        """The difference between the TTL of the RSTs and that of the host's other packets; None if it is unknown."""
        if self.reset_ttls & self.other_ttls:
            return 0
        if not self.host_ttls or not self.reset_ttls:
            return None
        pairs = [(ttl, other) for ttl in self.reset_ttls for other in self.host_ttls if distance(other) <= HOPS_MAX]
        return min((hops for pair in pairs if (hops := hops_between(*pair)) is not None), default=None)

    @property
    def after(self) -> str:
        """` within 0.8 ms`: the median time to the RST."""
        waits = sorted(self.replies_ns)
        return f" within {show_duration(waits[len(waits) // 2])}" if waits and waits[len(waits) // 2] > 0 else ""


def refused_servers(case: Case) -> list[Refused]:
    """Returns the servers that refused connections, those with the most first, without those that answered by SYN-ACK as
    well, before the RST or after it."""
    if not case.findings("connection-refused"):
        return []
    left_out = case.claimed.union(case.connections.contradicted)
    flows = [flow for flow in case.transfers.attempts.flows_in("refused") if flow not in left_out]
    hosts, by_server = case.trace.flows.column("destination"), defaultdict[tuple[str, int], list[int]](list)
    numbers = array("I", case.trace.flows._packed("destination_port", "I"))
    for flow in flows:
        by_server[hosts[flow], numbers[flow]].append(flow)
    plain = [(server, of) for server, of in by_server.items() if not case.direction(of[0], 1)["syns"]]
    most = sorted(plain, key=lambda group: -len(group[1]))[:HOSTS_MAX]
    names = {host for (host, _), _ in most}
    connections, ttls = opened(case, names), ttls_of(case, names, set(flows))

    def waits(numbers: Iterable[int]) -> list[float]:
        return [span.ns for span in spans_of(map(case.flow, numbers))]

    return [
        Refused(
            host,
            port,
            of,
            waits(of[:ATTEMPTS_MAX]),
            waits(flow for flow in of[:ATTEMPTS_MAX] if case.direction(flow, 0)["syns"] == 1),
            {ttl for flow in of[:HOSTS_MAX] if (ttl := case.direction(flow, 1)["ttl_min"]) is not None},
            ttls[host][True],
            ttls[host][False],
            connections.get(host, Counter())[port],
            last_opened(case, host, port) > of[-1],
            changes_of(case, host, port, of) if connections.get(host, Counter())[port] >= TURNS_MIN else 0,
        )
        for (host, port), of in most
    ]


def changes_of(case: Case, host: str, port: int, refusals: list[int]) -> int:
    """Returns how often a connection to a port came about between two refusals."""
    flows, attempts = case.connections.to_server((host, port)), case.transfers.attempts
    among = set(refusals)
    were = [flow in among for flow in sorted({*flows, *refusals}) if flow in among or attempts.is_connection(flow)]
    return sum(before and not after for before, after in pairwise(were))


def last_opened(case: Case, host: str, port: int) -> int:
    """Returns the last connection to a port that came about; -1 without one."""
    flows, attempts = case.trace.flows, case.transfers.attempts
    hosts, ports = flows.column("destination"), array("I", flows._packed("destination_port", "I"))
    numbers = range(len(flows) - 1, -1, -1)
    return next(
        (flow for flow in numbers if ports[flow] == port and hosts[flow] == host and attempts.is_connection(flow)), -1
    )


def ttls_of(case: Case, hosts: set[str], without: set[int]) -> dict[str, dict[bool, set[int]]]:
    """Returns the TTLs of the packets of these hosts, apart those of TCP, without those of some flows and of BGP, whose sockets
    set their own."""
    directions, flows = case.trace.directions, case.trace.flows
    least, most = directions._packed_columns([(name, "B", 0, 1) for name in ("ttl_min", "ttl_max")])
    protocols, ports = flows._packed("protocol_number", "B"), array("I", flows._packed("destination_port", "I"))
    ttls: dict[str, dict[bool, set[int]]] = defaultdict(lambda: {True: set(), False: set()})
    for number, source in enumerate(directions.column("source")):
        flow = number // 2
        if source in hosts and flow not in without and least[number] != BYTE_MAX and ports[flow] != BGP_PORT:
            ttls[source][protocols[flow] == TCP].update((least[number], most[number]))
    return ttls


def is_second_choice(case: Case, server: Refused) -> bool:
    """Returns whether the clients tried that port right after the host had reset their connection to another one."""
    connections = case.connections
    resets = [connections[flow] for flow in connections.endings_with_reset]
    ended = [(each.end(each.client_side)[0], each.last_ns) for each in resets if each.server[0] == server.host]
    starts = [(row["source"], row["first_ns"] or 0) for row in map(case.flow, server.flows[:ATTEMPTS_MAX])]
    return bool(ended) and all(
        any(client == source and 0 <= first_ns - last_ns <= NEXT_NS for client, last_ns in ended)
        for source, first_ns in starts
    )


def fields_of(case: Case, server: Refused, attempted: int) -> dict[str, Any]:
    """Returns what matches about refused connections have in common."""
    return {
        "findings": about(case, server.flows, "connection-refused"),
        "flows": server.flows,
        "failed": None if server.is_over else len(server.flows),
        "severity": "info" if is_second_choice(case, server) else None,
        "attempts": attempted,
        "waited_ns": sum(server.waits_ns) if len(server.flows) <= ATTEMPTS_MAX else None,
        "frames": first_resets(case.transfers, server.flows[:ATTEMPTS_MAX]),
        "packets": len(server.flows),
        "filter": f"tcp.port == {server.port} && tcp.flags.reset == 1",
    }

# SPDX-License-Identifier: Apache-2.0
"""Connections that failed alike, in groups by server: one finding for each server and port, and one for all small groups."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from wiretale.analyzer.findings.attempts import NULL, End, extent_of
from wiretale.analyzer.findings.evidence import CITED, SHOWN, Cited, frames_of
from wiretale.analyzer.findings.model import Match, endpoint_str
from wiretale.analyzer.findings.transfers import Transfers
from wiretale.analyzer.units import plural

Key = tuple[End, str | None]  # of a group: server, side
Members = list[tuple[int, str]]  # flow, client

ALONE_MIN = 2  # connections of a group with a finding of its own
WELL_KNOWN = 1024  # ports below
CHOSEN_MAX = 50  # connections that a filter names by frame
TO, FROM = "dst", "src"


class Group(NamedTuple):
    """Connections to one server, or to several that have few each."""

    server: End | None  # None: several
    clients: list[str]  # addresses
    flows: list[int]
    extent: str  # `10.0.0.2:80`, `10 ports of 10.0.0.2`
    side: str | None = None  # that distinguishes them, such as the end that sent RSTs

    @property
    def ends(self) -> str:
        """`from 10.0.0.1 to 10.0.0.2:80`, `from 50 clients to 10.0.0.2:80`."""
        client = self.clients[0] if len(self.clients) == 1 else f"{len(self.clients):,} clients"
        return f"from {client} to {self.extent}"

    @property
    def host(self) -> str:
        """The server's address."""
        return self.server[0] if self.server else "each server"

    def filter(self, packets: str, way: str | None = TO) -> str:
        """Returns a filter for these packets of all connections to the server, or of the single client of several.

        `way` is TO or FROM the server; None for both.
        """
        if self.server is None:
            if len(self.clients) > 1 or way != TO:
                return packets
            return f"{family(self.clients[0])}.src == {self.clients[0]} && {packets}"
        address, port = self.server
        field, ports = (way or "addr"), f"{way}port" if way else "port"
        return f"{family(address)}.{field} == {address} && tcp.{ports} == {port} && {packets}"

    def match(self, transfers: Transfers, cited: Sequence[Cited], filter: str, **fields: Any) -> Match:
        """Returns a match that cites some of these packets, one for each of the first connections."""
        if self.server is None and len(self.flows) == len(frames_of(cited)) <= CHOSEN_MAX:
            filter = transfers.files.frame_filter(cited) or filter
        return Match(
            flows=self.flows,
            count=len(self.flows),
            ends=self.ends,
            host=self.host,
            cost=float(len(self.flows)),
            filter=filter,
            impact=flows_share(transfers, self.flows),
            cited=cited or transfers.span(self.flows[0]),
            packets=len(self.flows) if cited else None,
            **fields,
        )


def flows_share(transfers: Transfers, flows: list[int]) -> float:
    """Returns the share of all wire bytes of these flows."""
    return sum(array("d", transfers.trace.flows._packed("wire_bytes", "d", flows=flows))) / transfers.wire_bytes


def family(address: str) -> str:
    """Returns the protocol of an address as display filters name it."""
    return "ipv6" if ":" in address else "ip"


def ends_of(transfers: Transfers, flows: Sequence[int]) -> list[tuple[End, End]]:
    """Returns the ends of each flow, that which opened it first."""
    if not flows:
        return []
    table, numbers = transfers.trace.flows, list(flows)
    sides = []
    for name in ("source", "destination"):
        hosts, ports = table.column(name), array("I", table._packed(f"{name}_port", "I", flows=numbers))
        sides.append([(hosts[flow], port) for flow, port in zip(numbers, ports, strict=True)])
    return list(zip(*sides, strict=True))


def by_server(
    ends: Sequence[tuple[End, End]], flows: Sequence[int], servers: Sequence[int] = (), sides: Sequence[str] = ()
) -> list[Group]:
    """Returns groups of connections with these ends, the largest first; the small ones are one group at the end.

    `servers` says for each which end is the server: 1, that which did not open it, is the default. `sides` tells
    connections to one server apart.
    """
    groups: dict[Key, Members] = {}
    for i, (flow, pair) in enumerate(zip(flows, ends, strict=True)):
        server = servers[i] if servers else 1
        key = pair[server], sides[i] if sides else None
        groups.setdefault(key, []).append((flow, pair[1 - server][0]))
    order = sorted(groups.items(), key=lambda group: -len(group[1]))
    alone = sum(len(members) >= ALONE_MIN for _, members in order[:SHOWN])
    alone += len(order) == alone + 1
    alone_groups = [group_of([key], [members]) for key, members in order[:alone]]
    remaining = order[alone:]
    return (
        [*alone_groups, group_of([key for key, _ in remaining], [members for _, members in remaining])]
        if remaining
        else alone_groups
    )


def group_of(keys: Sequence[Key], members: Sequence[Members]) -> Group:
    """Returns the group of all members of these."""
    ends, every = list(dict.fromkeys(end for end, _ in keys)), sorted(member for group in members for member in group)
    sides = {side for _, side in keys}
    return Group(
        ends[0] if len(ends) == 1 else None,
        list(dict.fromkeys(client for _, client in every)),
        [flow for flow, _ in every],
        endpoint_str(*ends[0]) if len(ends) == 1 else extent_of(ends),
        sides.pop() if len(sides) == 1 else None,
    )


def server_ends(transfers: Transfers, ends: Sequence[tuple[End, End]], flows: Sequence[int]) -> list[int]:
    """Returns the end of each connection that is the server, 0 or 1.

    If the SYN was not captured, it is the end that more of these connections share, else that with a well-known port.
    """
    counts = Counter(chain.from_iterable(ends))
    syns = array("I", transfers.trace.directions._packed("syns", "I", flows=list(flows))) if flows else ()
    server_sides = []
    for i, (source, target) in enumerate(ends):
        as_likely = counts[target] - (target[1] >= WELL_KNOWN), counts[source] - (source[1] >= WELL_KNOWN)
        server_sides.append(int(0 < syns[2 * i] < NULL or as_likely[0] >= as_likely[1]))
    return server_sides


def established_beside(transfers: Transfers, groups: Sequence[Group]) -> list[int]:
    """Returns for each group how many other connections to its server came about."""
    connections = {group.server: 0 for group in groups if group.server}
    if connections:
        flows, attempts = transfers.trace.flows, transfers.attempts
        hosts, ports = flows.column("destination"), array("I", flows._packed("destination_port", "I"))
        numbers = {port for _, port in connections}
        for flow, (host, port) in enumerate(zip(hosts, ports, strict=True)):
            if port in numbers and (host, port) in connections and attempts.is_connection(flow):
                connections[host, port] += 1
    return [connections[group.server] if group.server else 0 for group in groups]


def first_packets(transfers: Transfers, flows: Sequence[int]) -> list[Cited]:
    """Returns the first packet of each of the first flows."""
    return [transfers.span(flow)[0]._replace(role=CITED) for flow in flows[: CHOSEN_MAX + 1]]


def first_resets(transfers: Transfers, flows: list[int]) -> list[Cited]:
    """Returns the first RST of each of the first flows."""
    frames = transfers.event_frames(flows[: CHOSEN_MAX + 1], ("reset",))
    first: dict[int, Cited] = {}
    for (flow, _), packets in frames.items():
        first[flow] = min(packets[0], first.get(flow, packets[0]))
    return [first[flow] for flow in sorted(first)]


def failed_attempts(transfers: Transfers, flows: Sequence[int], filter: str, way: str) -> Iterator[tuple[Group, Match]]:
    """Yields each group of these attempts and its match; `beside` counts other connections to the server that came about."""
    groups = by_server(ends_of(transfers, flows), flows)
    for group, established in zip(groups, established_beside(transfers, groups), strict=True):
        beside = f", while {plural(established, 'other was', 'others were')} established" if established else ""
        cited = first_resets(transfers, group.flows) if way == FROM else []
        cited = cited or first_packets(transfers, group.flows)
        failed = len(group.flows)
        yield group, group.match(transfers, cited, group.filter(filter, way), failed=failed, beside=beside)

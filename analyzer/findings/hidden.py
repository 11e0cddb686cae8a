# SPDX-License-Identifier: Apache-2.0
"""Answers that the capture may hold without showing them, so that no finding may conclude that there was none.

They may be among packets that were not decoded, or in a direction that was not captured at all. If the addresses of those
packets are known, as those of ESP are, only attempts between the same hosts are in doubt.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfers

DOUBTFUL_SHARE = 0.01  # of all packets: if more are cut or not decoded, no finding concludes from what is missing
#: Reasons of decode_stops that may hide a TCP segment; undecoded_packets counts the others
HIDING = ("wlan-protected", "link-fragment", "too-deep", "encrypted", "link-cut", "tunnel-cut", "ip-cut")
#: IP protocols that may carry a TCP segment: ESP and those of undecoded_packets. Their flows have the hosts.
HIDING_PROTOCOLS = frozenset((50, 55, 94, 98, 108, 115))
NULL_BYTE = 255  # as it is packed: of no TCP flow

Hosts = frozenset[str]


class Hidden:
    """The hosts, or the whole capture, of which packets may be hidden."""

    def __init__(self, transfers: Transfers) -> None:
        self._interfaces = transfers.trace.interfaces
        self._decode_stops = transfers.trace.decode_stops
        self._flows = transfers.trace.flows
        self._directions = transfers.trace.directions
        self._exchanges = transfers.trace.exchanges
        self._one_way = transfers.all_flow_counts["one_way"]
        self._states = transfers.bytes_of("flows", "state")
        self._alone = {NULL_BYTE, transfers.words["syn_sent"]}

    @cached_property
    def everywhere(self) -> bool:
        """Whether over 1% of all packets may hide an answer of any host, or one direction of all connections is missing."""
        hidden = self._undecoded - self._packets_of_known_hosts
        return hidden > DOUBTFUL_SHARE * self._interfaces.total("packets") or self._is_direction_missing()

    def unanswered(self, flows: list[int]) -> list[int]:
        """Returns the same, if answers to the hosts that began these flows are in the capture: some flow has both directions,
        or a packet to that host, or a reply of ARP or neighbor discovery, shows that the capture has what is sent to it."""
        if self._is_two_way or not flows:
            return self.conclusive(flows)
        hosts, _ = self._ends
        seen = [flow for flow in flows if hosts[flow] in self.answered_hosts or hosts[flow] in self._reached_hosts]
        return self.conclusive(seen)

    @cached_property
    def _reached_hosts(self) -> set[str]:
        """The hosts to which packets were sent."""
        directions = self._directions
        packets = zip(directions.column("destination"), directions.column("packets"), strict=True)
        return {host for host, count in packets if count}

    @cached_property
    def answered_hosts(self) -> set[str | None]:
        """The hosts that got a reply of ARP or neighbor discovery, which is sent to them alone."""
        exchanges = self._exchanges
        if not len(exchanges):
            return set()
        rows = [number for kind in ("arp", "nd") for number in exchanges._rows_where("kind", kind)]
        clients, answers = exchanges.column("client"), exchanges.column("answered_frame")
        return {clients[number] for number in rows if answers[number] is not None}

    @cached_property
    def _is_two_way(self) -> bool:
        return len(self._one_way) < len(self._flows)

    def conclusive(self, flows: list[int]) -> list[int]:
        """Returns those of the flows that had no answer if the capture shows none."""
        if not flows or self.everywhere:
            return []
        if not self._doubtful_hosts:
            return flows
        return [flow for flow in flows if self._hosts(flow) not in self._doubtful_hosts]

    @cached_property
    def _undecoded(self) -> int:
        """Packets that may hide a segment."""
        return sum(row["packets"] for row in self._decode_stops if row["protocol"] or row["reason"] in HIDING)

    @cached_property
    def _hiding_flows(self) -> list[int]:
        if not self._undecoded:
            return []
        numbers = self._flows._packed("protocol_number", "B")
        return [flow for flow, number in enumerate(numbers) if number in HIDING_PROTOCOLS]

    @cached_property
    def _packets_of_known_hosts(self) -> int:
        packets = self._flows.column("packets") if self._hiding_flows else ()
        return sum(packets[flow] for flow in self._hiding_flows)

    def _hosts(self, flow: int) -> Hosts:
        sources, destinations = self._ends
        return frozenset((sources[flow], destinations[flow]))

    @cached_property
    def _ends(self) -> tuple[list[str], list[str]]:
        return self._flows.column("source"), self._flows.column("destination")

    @cached_property
    def one_way_answered(self) -> list[int]:
        """The TCP flows of one direction that the other end answered, as the state shows."""
        return [flow for flow, _ in self._one_way if self._states[flow] not in self._alone]

    @cached_property
    def _both_ways(self) -> list[int]:
        """The TCP flows with packets of both ends."""
        one_way = {flow for flow, _ in self._one_way}
        return [flow for flow, state in enumerate(self._states) if state != NULL_BYTE and flow not in one_way]

    def _is_direction_missing(self) -> bool:
        return bool(self.one_way_answered) and not self._both_ways

    @cached_property
    def _doubtful_hosts(self) -> set[Hosts]:
        """Pairs with packets that were not decoded, or of which only one end was captured although the other answered."""
        one_way = {self._hosts(flow) for flow in self.one_way_answered}
        if one_way:
            one_way.difference_update(self._hosts(flow) for flow in self._both_ways)
        return one_way.union(self._hosts(flow) for flow in self._hiding_flows)

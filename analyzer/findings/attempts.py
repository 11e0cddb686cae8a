# SPDX-License-Identifier: Apache-2.0
"""TCP connection attempts: those that came about late, those that never did, and scans, which are many of them by one host.

A retransmitted SYN of an attempt that never came about shows no loss, because a host that does not answer looks the same.
Attempts reads columns of all flows only if enough attempts failed for a scan.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.findings.cost import Span
from wiretale.analyzer.findings.evidence import RETRANSMISSION, Cited, frames_of
from wiretale.analyzer.findings.exchanges.exchange_rows import places_of

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Counts, Transfers

End = tuple[str, int]  # address and port
NULL, NO_WORD = 2**32 - 1, 255  # as they are packed
FAILED = ("syn_sent", "refused")
NEVER_OPEN = (*FAILED, "syn_received")
PROBES = (*NEVER_OPEN, "established", "half_closed", "closed", "reset")  # of a scan, if there is no payload
PORTS_MIN, HOSTS_MIN = 15, 25  # that failed: of one host, at one port
PROBES_SHARE = 0.5  # of the TCP flows that the source began
SOURCES_MAX, SCANS_MAX = 100_000, 100  # hosts whose failed attempts are counted; hosts that are examined
PAIRS_MAX = 20_000  # attempts of a host that show whether it scans
OPEN_MAX = 100  # attempts that were answered, whose ends are kept
FLOWS_MAX = 5_000  # with retransmitted SYNs, whose events are read
SYN_KINDS = ("timeout_retransmission", "retransmission")
RTO_MIN_NS = 200_000_000
COPIES = ("mirror_duplicates", "network_duplicates", "unknown_duplicates")


class Scan(NamedTuple):
    """The attempts of one host that scans others."""

    source: str
    flows: Sequence[int]
    hosts: int
    ports: int
    first: End  # of a single host or port, the only one
    refused: int
    unanswered: int
    open_ends: list[End]  # of the first attempts that were answered

    @property
    def extent(self) -> str:
        """`1,000 ports of 10.0.0.2`, `port 22 of 254 hosts`."""
        return extent_str(self.first, self.hosts, self.ports)


def extent_str(first: End, hosts: int, ports: int) -> str:
    """Returns numbers of hosts and ports; the host or port of `first` if it is the only one."""
    host, port = first
    port_text = f"port {port}" if ports == 1 else f"{ports:,} ports"
    return f"{port_text} of {host if hosts == 1 else f'{hosts:,} hosts'}"


def extent_of(ends: Sequence[End]) -> str:
    """Returns the same of these ends: `10 ports of 10.0.0.2`, `port 443 of 34 hosts`."""
    return extent_str(ends[0], len({host for host, _ in ends}), len({port for _, port in ends}))


class SynEvent(NamedTuple):
    """A retransmitted SYN (direction 0) or SYN-ACK (direction 1)."""

    direction: int
    spurious: bool
    placed: bool  # known as lost
    packet: Cited
    time_ns: float


class Retried(NamedTuple):
    """The handshake of a connection that came about, with its retransmitted SYNs and SYN-ACKs."""

    flow: int
    again: list[SynEvent]
    first_ns: Sequence[float]  # of the first SYN and of the first SYN-ACK; NaN if unknown
    rtt_ns: float  # from the last SYN to the ACK of its answer; NaN if unknown

    @property
    def lost(self) -> list[SynEvent]:
        """Those that followed a loss: if an answer was lost, these are needless SYNs as well."""
        answer_lost = any(event.placed and event.direction for event in self.again)
        return [
            event for event in self.again if event.placed or (answer_lost and event.spurious and not event.direction)
        ]

    @property
    def waited(self) -> Span:
        """The time from the first SYN or SYN-ACK to the last of those; none if it is unknown."""
        spans = (Span(self.first_ns[event.direction], event.time_ns) for event in self.lost)
        return max((span for span in spans if span.ns > 0), key=lambda span: span.ns, default=Span(0, 0))

    @property
    def complete_ns(self) -> float:
        """Time of the ACK that completed the handshake; NaN if unknown."""
        return self.rtt_ns + max(
            (event.time_ns for event in self.again if not event.direction), default=self.first_ns[0]
        )

    @property
    def deferred(self) -> list[SynEvent]:
        """SYN-ACKs that followed that ACK by more than an RTT, and 200 ms or more."""
        since = self.complete_ns + max(self.rtt_ns, RTO_MIN_NS)
        return [event for event in self.again if event.direction and event.spurious and event.time_ns >= since]

    @property
    def deferred_ns(self) -> int:
        """Time from that ACK to the last of those."""
        return longest_ns(event.time_ns - self.complete_ns for event in self.deferred)

    @property
    def early(self) -> list[SynEvent]:
        """Those that followed the first sooner than an RTT (rule V7.9)."""
        return [event for event in self.again if not event.placed and not event.spurious]


def longest_ns(times: Iterable[float]) -> int:
    """Returns the longest time; 0 if none is known."""
    return int(max((ns for ns in times if ns > 0), default=0))


class Attempts:
    """The connection attempts of a trace."""

    def __init__(self, transfers: Transfers) -> None:
        self.transfers = transfers
        self.flows = transfers.trace.flows
        self.states = bytearray(transfers.bytes_of("flows", "state"))
        for flow in transfers.legs:
            self.states[flow] = NO_WORD
        self.numbers = {state: transfers.words[state] for state in PROBES}
        self._never_open = {self.numbers[state] for state in NEVER_OPEN}
        failed = ("refused",) if transfers.hidden.everywhere else FAILED
        self._failed = {self.numbers[state] for state in failed}

    @cached_property
    def scans(self) -> list[Scan]:
        """The scans, those of the most attempts first."""
        if sum(self.states.count(number) for number in self._failed) < PORTS_MIN:
            return []
        by_source = self._probes_by_source()
        if not by_source:
            return []
        hosts, ports = self.flows.column("destination"), array("I", self.flows._packed("destination_port", "I"))
        candidates = (self._scan_of(source, flows, hosts, ports) for source, flows in by_source.items())
        return sorted((scan for scan in candidates if scan), key=lambda scan: -len(scan.flows))

    def _probes_by_source(self) -> dict[str, array[int]]:
        """Returns the attempts of the hosts with the most failed ones, if most of the flows that a host began are attempts."""
        states, sources, payload = self.states, self.flows.column("source"), self.flows._packed("payload_bytes", "B")
        failed, probing = self._failed, set(self.numbers.values())
        counts: Counter[str] = Counter()
        for state, source in zip(states, sources, strict=True):
            if state in failed and (source in counts or len(counts) < SOURCES_MAX):
                counts[source] += 1
        most = nlargest(SCANS_MAX, counts, key=counts.__getitem__)
        probes = {source: array("I") for source in most if counts[source] >= PORTS_MIN}
        began: Counter[str] = Counter()
        for flow, source in enumerate(sources):
            if source in probes and states[flow] != NO_WORD:
                began[source] += 1
                if states[flow] in probing and not payload[flow]:
                    probes[source].append(flow)
        return {source: flows for source, flows in probes.items() if len(flows) >= PROBES_SHARE * began[source]}

    def _scan_of(self, source: str, flows: array[int], hosts: Sequence[str], ports: Sequence[int]) -> Scan | None:
        """Returns the scan if enough ports of a host, or enough hosts at a port, did not accept."""
        states, failed = self.states, self._failed
        pairs = {(hosts[flow], ports[flow]) for flow in flows[:PAIRS_MAX] if states[flow] in failed}
        ports_of_a_host = max(Counter(host for host, _ in pairs).values(), default=0)
        hosts_of_a_port = max(Counter(port for _, port in pairs).values(), default=0)
        if ports_of_a_host < PORTS_MIN and hosts_of_a_port < HOSTS_MIN:
            return None
        outcomes = Counter(states[flow] for flow in flows)
        answering = ((hosts[flow], ports[flow]) for flow in flows if states[flow] not in failed)
        return Scan(
            source,
            flows,
            hosts=len({hosts[flow] for flow in flows}),
            ports=len({ports[flow] for flow in flows}),
            first=(hosts[flows[0]], ports[flows[0]]),
            refused=outcomes[self.numbers["refused"]],
            unanswered=outcomes[self.numbers["syn_sent"]],
            open_ends=list(dict.fromkeys(islice(answering, OPEN_MAX))),
        )

    @cached_property
    def _scanned(self) -> bytearray:
        """For each flow, whether it belongs to a scan; empty if there is no scan."""
        scanned = bytearray(len(self.flows) if self.scans else 0)
        for scan in self.scans:
            for flow in scan.flows:
                scanned[flow] = 1
        return scanned

    def is_scan(self, flow: int) -> bool:
        """Returns whether a flow belongs to a scan."""
        return bool(self._scanned and self._scanned[flow])

    def flows_in(self, state: str) -> list[int]:
        """Returns the flows in a state that belong to no scan."""
        flows = places_of(self.states, self.transfers.words[state])
        return [flow for flow in flows if not self.is_scan(flow)] if self.scans else flows

    def unanswered(self) -> list[int]:
        """Returns the attempts without an answer that belong to no scan. If the answer was cut, it counts in `one_way`."""
        alone = {flow for flow, _ in self.transfers.flow_counts["one_way"]}
        return self.transfers.hidden.conclusive([flow for flow in self.flows_in("syn_sent") if flow in alone])

    def came_about(self, flow: int) -> bool:
        """Returns whether a flow is a connection, not an attempt that failed or a probe of a scan."""
        return self.states[flow] not in self._never_open and not self.is_scan(flow)

    def is_connection(self, flow: int) -> bool:
        """Returns whether a flow is a TCP connection that came about."""
        return self.states[flow] != NO_WORD and self.came_about(flow)

    def of_connections(self, counts: Counts) -> Counts:
        """Returns the counts of directions whose connection came about."""
        return [(number, count) for number, count in counts if self.came_about(number // 2)]

    def without_deferred(self, counts: Counts) -> Counts:
        """Returns the counts of retransmissions without SYN-ACKs after their handshake."""
        deferred = {2 * handshake.flow + 1: len(handshake.deferred) for handshake in self.retried} if counts else {}
        return [
            (number, count - deferred.get(number, 0)) for number, count in counts if count > deferred.get(number, 0)
        ]

    @cached_property
    def retried(self) -> list[Retried]:
        """The connections that came about, with SYNs or SYN-ACKs that were retransmitted."""
        counts = self.transfers.counts["retransmissions"]
        numbers = {number for number, _ in counts}
        flows = sorted(flow for flow in {number // 2 for number in numbers} if self.came_about(flow))
        packed = self.transfers.trace.directions._packed("syns", "I", flows=flows) if flows else b""
        syns = zip([2 * flow + side for flow in flows for side in (0, 1)], array("I", packed), strict=True)
        repeated = {number // 2 for number, count in syns if number in numbers and 1 < count < NULL}
        return list(self._handshakes(sorted(repeated)[:FLOWS_MAX])) if repeated else []

    def _handshakes(self, flows: list[int]) -> Iterator[Retried]:
        """Yields the handshakes that were completed: the initiator sent more than SYNs and RSTs."""
        names = ("first_ns", "packets", "syns", "resets", *COPIES)
        fields = [(name, "d", 0, 1) for name in names]
        sides = self.transfers.trace.directions._packed_columns(fields, flows)
        first, packets, *without = (array("d", data) for data in sides)
        rtts = array("d", self.flows._packed("handshake_rtt_ns", "d", flows=flows))
        again = self._retransmitted_syns(flows)
        for i, flow in enumerate(flows):
            if packets[2 * i] > sum(column[2 * i] for column in without):
                yield Retried(flow, again.get(flow, []), first[2 * i : 2 * i + 2], rtts[i])

    def _retransmitted_syns(self, flows: list[int]) -> dict[int, list[SynEvent]]:
        """Returns the retransmissions without bytes by flow; that of a FIN has one."""
        kinds = {self.transfers.words[kind] for kind in SYN_KINDS}
        names = ("flow", "direction", "kind", "spurious", "place", "frame", "time_ns", "bytes", "capture")
        by_flow: dict[int, list[SynEvent]] = {}
        events = self.transfers.events(flows, *names)
        for flow, direction, kind, spurious, place, frame, after, size, capture in events:
            if kind in kinds and math.isnan(size):
                packet = self.transfers.cited(frame, after, flow, capture, RETRANSMISSION)
                time_ns = after + self.transfers.base_ns
                event = SynEvent(direction, spurious == 1, place != NO_WORD, packet, time_ns)
                by_flow.setdefault(flow, []).append(event)
        return by_flow

    @cached_property
    def deferred_frames(self) -> set[int]:
        """The frames of SYN-ACKs that were retransmitted after their handshake."""
        return set(frames_of([event.packet for handshake in self.retried for event in handshake.deferred]))

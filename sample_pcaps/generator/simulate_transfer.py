# SPDX-License-Identifier: Apache-2.0
"""Simulates two hosts and a bottleneck: a TCP upload, captured beside the sender.

Times, acknowledgments and SACK blocks are consistent as in a real capture, and the same in every run.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from write_captures import MICROSECOND, MILLISECOND, SECOND, Record
from write_truth import Sighting, Verdict

START_NS = 1_768_478_400 * SECOND  # 2026-01-15 12:00:00 UTC


def pattern(length: int, start: int = 0) -> bytes:
    """Returns binary payload that compresses: byte k of the stream is k mod 251."""
    return bytes((start + k) % 251 for k in range(length))


def record(time_ns: int, packet: Packet, snaplen: int = 262_144) -> Record:
    """Returns the packet as a record, truncated to the snap length."""
    data = bytes(packet)
    return time_ns, data[:snaplen], len(data)


def ethernet(sender: int, receiver: int) -> Ether:
    """Returns a frame between two hosts of the documentation range (RFC 7042)."""
    return Ether(src=f"00:00:5e:00:53:{sender:02x}", dst=f"00:00:5e:00:53:{receiver:02x}")


@dataclass
class Host:
    """One endpoint: its address, and the fields that count its packets."""

    number: int
    address: str
    port: int
    ttl: int
    isn: int
    ip_id: int
    clock_ms: int  # TSval at the start of the capture


@dataclass
class Transfer:
    """An upload by `sender`, captured beside it; every loss is downstream of the capture point.

    The congestion window grows as in slow start, a fast retransmission halves it (RFC 6582), and an RTO
    retransmits the oldest unacknowledged segment (RFC 6298). The receiver acknowledges every second segment,
    at once if there is a gap (RFC 5681), with up to three SACK blocks (RFC 2018).
    """

    sender: Host
    receiver: Host
    length: int  # bytes of payload
    lost: frozenset[int]  # numbers of the segments whose first transmission is lost
    mss: int = 1448
    delay_ns: int = 10 * MILLISECOND  # one way
    segment_ns: int = 580 * MICROSECOND  # of a whole segment on the bottleneck: 20 Mbit/s
    snaplen: int = 96

    now: int = 0
    events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = field(default_factory=list)
    seen: list[Sighting] = field(default_factory=list)
    serial: int = 0
    # sender
    next_byte: int = 0
    acknowledged: int = 0
    window: int = 10
    duplicate_acks: int = 0
    recovery_until: int = 0
    echo_to_sender: int = 0
    timer: int = 0
    bottleneck_free: int = 0
    fin_stamp: int = 0
    # receiver
    received: list[tuple[int, int]] = field(default_factory=list)
    latest: tuple[int, int] = (0, 0)
    expected: int = 0
    pending: int = 0
    echo_to_receiver: int = 0

    def at(self, time_ns: int, call: Callable[..., None], *arguments: Any) -> None:
        """Schedules a call; calls of the same time run in the order of scheduling."""
        self.serial += 1
        heapq.heappush(self.events, (time_ns, self.serial, call, arguments))

    def run(self) -> list[Sighting]:
        """Runs the transfer and returns its packets in capture order."""
        self.at(0, self.send_syn)
        while self.events:
            self.now, _, call, arguments = heapq.heappop(self.events)
            call(*arguments)
        return sorted(self.seen, key=lambda s: s.record[0])

    def tsval(self, host: Host, time_ns: int) -> int:
        """Returns the host's timestamp clock, 1 kHz."""
        return host.clock_ms + time_ns // MILLISECOND

    def capture(
        self, source: Host, target: Host, tcp: TCP, payload: bytes = b"", verdict: Verdict | None = None
    ) -> None:
        """Stores the frame at the sender's interface, with its true verdict."""
        ip = IP(src=source.address, dst=target.address, id=source.ip_id, flags="DF", ttl=source.ttl)
        source.ip_id = (source.ip_id + 1) & 0xFFFF
        frame = ethernet(source.number, target.number) / ip / tcp / Raw(payload)
        taken = record(START_NS + self.now, frame, self.snaplen)
        self.seen.append(Sighting(taken, 0, int(source is self.receiver), verdict, len(payload)))

    # handshake

    def send_syn(self) -> None:
        self.capture(self.sender, self.receiver, self.syn(self.sender, self.receiver, "S", 0, 0))
        self.at(2 * self.delay_ns + 90 * MICROSECOND, self.see_syn_ack)

    def syn(self, source: Host, target: Host, flags: str, ack: int, echo: int) -> TCP:
        """Returns a header of the handshake with Linux's options."""
        stamp = (self.tsval(source, self.now), echo)
        options = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", stamp), ("NOP", None), ("WScale", 7)]
        return TCP(
            sport=source.port,
            dport=target.port,
            seq=source.isn,
            ack=ack,
            flags=flags,
            window=64_240,
            options=options,
        )

    def see_syn_ack(self) -> None:
        """Captures the SYN-ACK; the sender's ACK follows."""
        tcp = self.syn(self.receiver, self.sender, "SA", self.sender.isn + 1, self.tsval(self.sender, 0))
        self.capture(self.receiver, self.sender, tcp)
        self.echo_to_sender = self.tsval(self.receiver, self.now)
        self.at(self.now + 40 * MICROSECOND, self.acknowledge_syn)
        self.at(self.now + 200 * MICROSECOND, self.send_more)

    def acknowledge_syn(self) -> None:
        self.capture(self.sender, self.receiver, self.header_from_sender(0, "A"))

    # sender

    def header_from_sender(self, offset: int, flags: str) -> TCP:
        """Returns a header of the sender at this stream offset."""
        stamp = (self.tsval(self.sender, self.now), self.echo_to_sender)
        return TCP(
            sport=self.sender.port,
            dport=self.receiver.port,
            seq=self.sender.isn + 1 + offset,
            ack=self.receiver.isn + 1,
            flags=flags,
            window=502,
            options=[("NOP", None), ("NOP", None), ("Timestamp", stamp)],
        )

    def send_more(self) -> None:
        """Sends new data up to the window, 12 µs apart (the sender's link has 1 Gbit/s)."""
        sent = 0
        while self.next_byte < min(self.length, self.acknowledged + self.window * self.mss):
            self.at(self.now + sent * 12 * MICROSECOND, self.send_segment, self.next_byte)
            self.next_byte = min(self.length, self.next_byte + self.mss)
            sent += 1

    def send_segment(self, offset: int, reason: str = "") -> None:
        """Sends one segment; it passes the bottleneck and arrives unless it is lost."""
        end = min(self.length, offset + self.mss)
        flags = "PA" if end == self.length else "A"
        tcp = self.header_from_sender(offset, flags)
        lost = offset // self.mss in self.lost
        verdict = Verdict(reason, end - offset, "downstream", spurious=not lost) if reason else None
        self.capture(self.sender, self.receiver, tcp, pattern(end - offset, offset), verdict)
        self.restart_timer()
        if lost and not reason:
            return
        self.bottleneck_free = max(self.bottleneck_free, self.now) + self.segment_ns
        self.at(self.bottleneck_free + self.delay_ns, self.receive, offset, end, self.tsval(self.sender, self.now))

    def restart_timer(self) -> None:
        """Restarts the RTO; Linux has a minimum of 200 ms."""
        self.timer += 1
        self.at(self.now + 224 * MILLISECOND, self.time_out, self.timer)

    def time_out(self, timer: int) -> None:
        """Retransmits the oldest segment, unless the timer was restarted since."""
        if timer != self.timer or self.acknowledged >= self.length:
            return
        self.window = 1
        self.send_segment(self.acknowledged, "timeout_retransmission")

    def see_ack(self, ack: int, blocks: list[tuple[int, int]], stamp: tuple[int, int]) -> None:
        """Captures an acknowledgment, which reaches the sender at the same time."""
        self.echo_to_sender = stamp[0]
        verdict = None if ack > self.acknowledged else Verdict("duplicate_ack")
        self.capture(self.receiver, self.sender, self.header_from_receiver(ack, blocks, stamp, "A"), verdict=verdict)
        if ack > self.acknowledged:
            self.advance(ack)
        else:
            self.count_duplicate(ack)
        if self.acknowledged >= self.length:
            self.at(self.now + 300 * MICROSECOND, self.send_fin)
        else:
            self.at(self.now + 15 * MICROSECOND, self.send_more)

    def advance(self, ack: int) -> None:
        """Processes an ACK of new data."""
        grown = (ack - self.acknowledged) // self.mss if ack > self.recovery_until else 0
        self.window = min(self.window + grown, 48)
        self.acknowledged = ack
        self.duplicate_acks = 0
        self.restart_timer()

    def count_duplicate(self, ack: int) -> None:
        """Retransmits the segment at the third duplicate ACK."""
        self.duplicate_acks += 1
        if self.duplicate_acks != 3:
            return
        self.window //= 2
        self.recovery_until = self.next_byte
        self.at(self.now + 10 * MICROSECOND, self.send_segment, ack, "fast_retransmission")

    # receiver

    def receive(self, offset: int, end: int, stamp: int) -> None:
        """Receives a segment; if it is in order, only every second is acknowledged."""
        in_order = offset == self.expected and not self.received
        self.latest = (offset, end)
        if offset <= self.expected:
            self.echo_to_receiver = stamp
        self.keep(offset, end)
        self.pending += 1
        if in_order and self.pending < 2 and self.expected < self.length:
            self.at(self.now + 40 * MILLISECOND, self.send_delayed_ack, self.expected)
            return
        self.send_ack()

    def keep(self, offset: int, end: int) -> None:
        """Adds the range and advances the next expected byte."""
        merged: list[tuple[int, int]] = []
        for start, stop in sorted([*self.received, (offset, end)]):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
            else:
                merged.append((start, stop))
        if merged[0][0] <= self.expected:
            self.expected = merged.pop(0)[1]
        self.received = merged

    def send_delayed_ack(self, expected: int) -> None:
        """Sends the delayed ACK if no other ACK was sent since."""
        if self.pending and self.expected == expected:
            self.send_ack()

    def send_ack(self) -> None:
        """Sends an ACK; the latest SACK block must come first (RFC 2018 section 4)."""
        self.pending = 0
        blocks = sorted(self.received, key=lambda b: not (b[0] <= self.latest[0] < b[1]))[:3]
        stamp = (self.tsval(self.receiver, self.now), self.echo_to_receiver)
        self.at(self.now + self.delay_ns, self.see_ack, self.expected, blocks, stamp)

    def header_from_receiver(self, ack: int, blocks: list[tuple[int, int]], stamp: tuple[int, int], flags: str) -> TCP:
        """Returns a header of the receiver; `ack` and `blocks` are stream offsets."""
        options: list[tuple[str, Any]] = [("NOP", None), ("NOP", None), ("Timestamp", stamp)]
        base = self.sender.isn + 1
        if blocks:
            edges = tuple(base + edge for pair in blocks for edge in pair)
            options += [("NOP", None), ("NOP", None), ("SAck", edges)]
        return TCP(
            sport=self.receiver.port,
            dport=self.sender.port,
            seq=self.receiver.isn + 1,
            ack=base + ack,
            flags=flags,
            window=2048,
            options=options,
        )

    # the end

    def send_fin(self) -> None:
        """Closes with FIN, FIN-ACK, ACK."""
        self.timer += 1
        self.fin_stamp = self.tsval(self.sender, self.now)
        self.capture(self.sender, self.receiver, self.header_from_sender(self.length, "FA"))
        self.at(self.now + 2 * self.delay_ns + 70 * MICROSECOND, self.see_fin)

    def see_fin(self) -> None:
        """Captures the receiver's FIN; its acknowledgment follows."""
        stamp = (self.tsval(self.receiver, self.now - self.delay_ns), self.fin_stamp)
        self.capture(self.receiver, self.sender, self.header_from_receiver(self.length + 1, [], stamp, "FA"))
        self.at(self.now + 30 * MICROSECOND, self.acknowledge_fin)

    def acknowledge_fin(self) -> None:
        tcp = self.header_from_sender(self.length + 1, "A")
        tcp.ack += 1
        self.capture(self.sender, self.receiver, tcp)


def make_transfer(length: int, lost: frozenset[int] = frozenset(), snaplen: int = 96) -> list[Sighting]:
    """Returns the packets of an upload between two documentation addresses (RFC 5737)."""
    sender = Host(0x0A, "192.0.2.10", 50_512, 64, 0x7A1C0F00, 0x3B21, 90_412_331)
    receiver = Host(0x14, "198.51.100.20", 8_443, 53, 0x1D20AB34, 0, 3_377_120_008)
    return Transfer(sender, receiver, length, lost, snaplen=snaplen).run()

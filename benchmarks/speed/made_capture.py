# SPDX-License-Identifier: Apache-2.0
"""Writes a capture of interleaved TCP transfers. The same arguments give the same bytes.

Each flow has a handshake with the options of Linux, sends segments with timestamps in trains of one or two, and retransmits 1%
of them; the receiver acknowledges every `ack_every` segments. Flows start in the first quarter of the capture and are chosen at
random; four in five close at its end. So almost all flows are open at any time, and adjacent packets rarely belong to the same
flow, which must defeat caches. Payload is zero: the TCP checksum then covers headers alone.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import cycle
from typing import BinaryIO

MSS = 1448
GAP_NS = 2000  # mean time between packets
START_SECONDS = 1768478400  # 2026-01-15 12:00:00 UTC
FIN, SYN, PSH, ACK = 1, 2, 8, 16
# Each stage but OPEN sends one packet; FIN_SEEN is the stage of the last ACK.
NEW, SYN_SEEN, SYN_ACK_SEEN, OPEN, CLOSING, FIN_SEEN, CLOSED = range(7)
ETHERNET = bytes.fromhex("00005e005301 00005e005302 0800")
FILE_HEADER, RECORD = struct.Struct("<IHHiIII"), struct.Struct("<IIII")
IPV4, TCP = struct.Struct(">BBHHHBBHII"), struct.Struct(">HHIIBBHHH")
SYN_OPTIONS, OPTIONS = struct.Struct(">8sIII"), struct.Struct(">4sII")
MASK_32, MASK_64 = 2**32 - 1, 2**64 - 1


@dataclass(slots=True)
class Flow:
    """State of a flow: offsets from the first byte of the data sender, and what client and server sent last."""

    number: int
    client: int  # IPv4 address
    server: int
    sender: int  # of data; 0: client, 1: server. Three in ten flows are uploads
    next: int = 0  # SND.NXT
    acked: int = 0  # SND.UNA
    stamp: list[int] = field(default_factory=lambda: [0, 0])  # last TSval, ms
    ip_id: list[int] = field(default_factory=lambda: [0, 0])
    stage: int = NEW

    def isn(self, side: int) -> int:
        return self.number * 2654435761 + (0x5A5A5A if side else 1)


def checksum(header: bytes, more: int = 0) -> int:
    """Returns the Internet checksum (RFC 1071), because the sum of 16-bit words modulo 65535 is the folded one."""
    return 0xFFFF - ((int.from_bytes(header, "big") + more) % 0xFFFF or 0xFFFF)


class Writer:
    """Writes the packets of all flows."""

    def __init__(self, file: BinaryIO, packets: int, flows: int, snaplen: int, ack_every: int) -> None:
        self.file, self.packets, self.snaplen, self.ack_bytes = file, packets, snaplen, ack_every * MSS
        self.flows = [
            Flow(number, 0x0A000000 + number % 60013 + 1, 0xC6336400 + number % 250 + 1, int(number % 10 >= 3))
            for number in range(flows)
        ]
        self.written = self.time_ns = 0
        self.random = 0x9E3779B97F4A7C15

    def draw(self, below: int) -> int:
        """Returns a number in [0, below), by xorshift64*."""
        value = self.random
        value ^= value >> 12
        value ^= value << 25 & MASK_64
        self.random = value = value ^ value >> 27
        return (value * 0x2545F4914F6CDD1D & MASK_64) // 2**32 % below

    def write(self, flow: Flow, side: int, offsets: tuple[int, int], payload: int, flags: int) -> None:
        """Writes a segment of a side, at offsets from its own ISN and that of the other side, and advances the clock."""
        number, ends = flow.number, (flow.client, flow.server)
        ports = (1024 + number % 60013, 443)
        flow.stamp[side] = number * 977 + self.time_ns // 1_000_000 & MASK_32
        stamps = flow.stamp[side], flow.stamp[1 - side]
        options = OPTIONS.pack(b"\1\1\x08\x0a", *stamps)
        window = 501 + number % 1000
        if flags & SYN:
            options, window = SYN_OPTIONS.pack(b"\2\4\5\xb4\4\2\x08\x0a", *stamps, 0x01030307), 64240
        length = TCP.size + len(options)
        acknowledgment = flow.isn(1 - side) + offsets[1] & MASK_32 if flags & ACK else 0
        numbers = (flow.isn(side) + offsets[0] & MASK_32, acknowledgment, length // 4 << 4, flags, window)
        tcp = TCP.pack(ports[side], ports[1 - side], *numbers, 0, 0) + options
        tcp = tcp[:16] + checksum(tcp, sum(ends) + 6 + length + payload).to_bytes(2, "big") + tcp[18:]
        size = IPV4.size + length + payload
        fields = (0x45, 0, size, flow.ip_id[side], 0x4000, 57 if side else 64, 6)
        addresses = (ends[side], ends[1 - side])
        ip = IPV4.pack(*fields, checksum(IPV4.pack(*fields, 0, *addresses)), *addresses)
        flow.ip_id[side] = flow.ip_id[side] + 1 & 0xFFFF
        size += len(ETHERNET)
        captured = min(size, self.snaplen)
        time = START_SECONDS + self.time_ns // 10**9, self.time_ns % 10**9 // 1000
        self.file.write(RECORD.pack(*time, captured, size) + (ETHERNET + ip + tcp).ljust(captured, b"\0")[:captured])
        self.written += 1
        self.time_ns += GAP_NS // 2 + self.draw(GAP_NS + 1)

    def shake_hands(self, flow: Flow) -> None:
        """Writes the next of the three packets of the handshake."""
        side, last = int(flow.stage == SYN_SEEN), flow.stage == SYN_ACK_SEEN
        flags = ACK if last else SYN | ACK if side else SYN
        self.write(flow, side, (int(last), 1), 0, flags)
        flow.stage += 1

    def transfer(self, flow: Flow) -> None:
        """Writes an ACK if `ack_every` segments are outstanding, a retransmission in 1% of the turns, else a train."""
        if flow.next - flow.acked >= self.ack_bytes:
            flow.acked = flow.next
            self.write(flow, 1 - flow.sender, (1, 1 + flow.acked), 0, ACK)
        elif flow.next > flow.acked and self.draw(100) == 0:
            self.write(flow, flow.sender, (1 + flow.next - MSS, 1), MSS, ACK | PSH)
        else:
            for _ in range(min(1 + self.draw(2), self.packets - self.written)):
                self.write(flow, flow.sender, (1 + flow.next, 1), MSS, ACK)
                flow.next += MSS

    def close(self, flow: Flow) -> None:
        """Writes the next packet of an orderly close: FIN, FIN with ACK, ACK."""
        if flow.stage == CLOSING:
            self.write(flow, 1 - flow.sender, (1, 2 + flow.next), 0, FIN | ACK)
        else:
            last = flow.stage == FIN_SEEN
            self.write(flow, flow.sender, (1 + flow.next + last, 1 + last), 0, ACK if last else FIN | ACK)
        flow.stage += 1

    def write_all(self) -> None:
        """Writes open flows in random order until the packets that closing needs are left, then closes flows in turn.

        A flow that has not completed its handshake by then does so first.
        """
        count = len(self.flows)
        closing = count * 12 // 5  # three packets of four flows in five
        open_until = self.packets - closing if self.packets > 4 * closing else self.packets * 3 // 4
        while self.written < open_until:
            flow = self.flows[self.draw(min(1 + self.written * count * 4 // self.packets, count))]
            (self.shake_hands if flow.stage < OPEN else self.transfer)(flow)
        for flow in cycle(self.flows):
            if self.written >= self.packets:
                break
            if flow.stage < OPEN:
                self.shake_hands(flow)
            elif flow.stage < CLOSED and flow.number % 5:
                self.close(flow)
            else:
                self.transfer(flow)


def write_capture(file: BinaryIO, packets: int, flows: int, snaplen: int = 96, ack_every: int = 2) -> None:
    """Writes a little-endian pcap file with microseconds."""
    file.write(FILE_HEADER.pack(0xA1B2C3D4, 2, 4, 0, 0, snaplen, 1))
    Writer(file, packets, flows, snaplen, ack_every).write_all()

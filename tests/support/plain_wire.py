# SPDX-License-Identifier: Apache-2.0
"""Captures of thousands of packets, written byte by byte: a schedule of segments and datagrams between two hosts or more."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from socket import inet_aton

import numbered_payloads
from capture_files import write_pcap

START_NS = 1_700_000_000 * 10**9
MSS = 1460
FIN, SYN, RST, PSH, ACK, ECE = 1, 2, 4, 8, 16, 64
ECT_CE, ECT_0 = 3, 2
NO_SCALE = bytes([2, 4, MSS >> 8, MSS & 255])
NO_SACK = bytes([*NO_SCALE, 1, 3, 3, 7])


def syn_options(mss: int = MSS, scale: int | None = 7) -> bytes:
    """MSS, SACK permitted, window scale."""
    options = struct.pack("!BBH", 2, 4, mss) + bytes([1, 1, 4, 2])
    return options + (b"" if scale is None else bytes([1, 3, 3, scale]))


@dataclass
class Wire:
    """Packets at times in ms; written in time order."""

    packets: list[tuple[float, bytes]] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    by_time: bool = False  # IP ids rise in the order of times, not of calls

    def ip(self, ms: float, source: str, target: str, protocol: int, body: bytes, ecn: int = 0) -> Wire:
        """An IPv4 packet in Ethernet; checksums are left out."""
        number = self.ids[source] = (self.ids.get(source, 0) + 1) % 65536
        header = struct.pack("!BBHHHBBH", 0x45, ecn, 20 + len(body), number, 0x4000, 64, protocol, 0)
        frame = bytes(6) + b"\2" + bytes(5) + b"\x08\0" + header + inet_aton(source) + inet_aton(target) + body
        self.packets.append((ms, frame))
        return self

    def udp(
        self, ms: float, payload: bytes, port: int = 4000, source: str = "10.0.0.1", target: str = "10.0.0.2"
    ) -> Wire:
        """A datagram to port 5000."""
        return self.ip(ms, source, target, 17, struct.pack("!HHHH", port, 5000, 8 + len(payload), 0) + payload)

    def summed(self, source: str) -> Wire:
        """Fills in the checksums of TCP in the packets of a host, as its adapter does: those of the others stay 0."""
        self.packets = [
            (ms, with_checksum(frame) if frame[26:30] == inet_aton(source) else frame) for ms, frame in self.packets
        ]
        return self

    def write(self, path: Path) -> Path:
        """A pcap file with nanoseconds."""
        packets = sorted(self.packets, key=lambda packet: packet[0])
        if self.by_time:
            numbers = (struct.pack("!H", number % 65536) for number in range(len(packets)))
            packets = [(ms, frame[:18] + next(numbers) + frame[20:]) for ms, frame in packets]
        return write_pcap(path, ((START_NS + round(ms * 1e6), frame) for ms, frame in packets))


def with_checksum(frame: bytes) -> bytes:
    """A frame with the checksum of its TCP segment (RFC 9293 section 3.1)."""
    segment = frame[34:50] + bytes(2) + frame[52:]
    summed = frame[26:34] + struct.pack("!HH", 6, len(segment)) + segment + bytes(len(segment) % 2)
    words = sum(struct.unpack(f"!{len(summed) // 2}H", summed))
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    return frame[:50] + struct.pack("!H", ~words & 0xFFFF) + frame[52:]


@dataclass
class Connection:
    """A TCP connection on a wire; side 0 opened it. Positions as in the stream: 0 is the first byte after the SYN."""

    wire: Wire
    port: int = 40000
    ends: tuple[str, str] = ("10.0.0.1", "10.0.0.2")
    received: list[int] = field(default_factory=lambda: [0, 0])  # acknowledged by each side
    server_port: int = 80

    def send(
        self,
        ms: float,
        side: int,
        at: int,
        size: int = 0,
        flags: int = ACK,
        ack: int | None = None,
        window: int = 512,
        options: bytes = b"",
        ecn: int = 0,
        payload: bytes | None = None,
    ) -> Connection:
        """One segment, of zeros or of a payload."""
        ports = (self.port, self.server_port)
        position = self.received[side] if ack is None else ack
        header = struct.pack(
            "!HHIIBBHHH",
            *(ports[side], ports[1 - side], (1001 + at) % 2**32, (1001 + position) % 2**32 if flags & ACK else 0),
            *((5 + len(options) // 4) << 4, flags, window, 0, 0),
        )
        carried = bytes(size) if payload is None else payload
        self.wire.ip(ms, self.ends[side], self.ends[1 - side], 6, header + options + carried, ecn)
        return self

    def open(
        self,
        ms: float = 0.0,
        rtt: float = 20.0,
        near: float = 0.0,
        mss: int = MSS,
        scale: int | None = 7,
        window: int = 512,
    ) -> Connection:
        """The handshake, seen `near` ms (there and back) from side 0."""
        self.send(ms, 0, -1, flags=SYN, options=syn_options(mss, scale))
        self.send(ms + rtt - near, 1, -1, flags=SYN | ACK, ack=0, options=syn_options(mss, scale), window=65535)
        return self.send(ms + rtt, 0, 0, window=window)

    def data(self, ms: float, at: int, size: int = MSS, flags: int = ACK, ecn: int = 0) -> Connection:
        """A data segment of side 0."""
        return self.send(ms, 0, at, size, flags, ecn=ecn)

    def ack(self, ms: float, position: int, window: int = 512, options: bytes = b"", flags: int = ACK) -> Connection:
        """An acknowledgment of side 1."""
        return self.send(ms, 1, 0, 0, flags, ack=position, window=window, options=options)


def sack(*blocks: tuple[int, int]) -> bytes:
    """A SACK option."""
    body = b"".join(struct.pack("!II", 1001 + start, 1001 + end) for start, end in blocks)
    return bytes([1, 1, 5, 2 + len(body)]) + body


def block(sequence: int, size: int = 200, sent_ms: float = 0.0) -> bytes:
    """A block of wiretale-traffic, of stream 0."""
    return numbered_payloads.block(sequence, size, stream=0, sent_ns=START_NS + round(sent_ms * 1e6))

# SPDX-License-Identifier: Apache-2.0
"""A TCP segment and the endpoint that builds it: addresses, sequence numbers, timestamps, IP IDs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scapy.layers.inet import IP, TCP
from scapy.packet import Packet, Raw

from simulation import Clock
from write_captures import MILLISECOND, ethernet, pattern

Blocks = tuple[tuple[int, int], ...]  # SACK blocks as stream offsets


@dataclass
class Segment:
    """A segment in stream offsets: 0 is the first byte after the SYN of its direction."""

    start: int
    ack: int
    end: int = 0  # of the payload; equals start if there is no payload
    flags: str = "A"
    window: int = 0  # bytes
    blocks: Blocks = ()
    kind: str = ""  # verdict of a retransmission, probe or keep-alive
    spurious: bool = False
    payload: bytes | None = None  # if None, the stream's bytes at these offsets
    stamp: int = 0  # TSval, set by make()
    packet: Packet = field(default_factory=Packet)  # set by make()

    def __post_init__(self) -> None:
        self.end = max(self.start, self.end)


@dataclass
class Host:
    """One end of a connection: its address, and the fields that count its packets."""

    number: int
    address: str
    port: int
    ttl: int
    isn: int
    ip_id: int
    clock_ms: int  # TSval at the start of the capture


@dataclass
class Endpoint:
    """One end of a connection with Linux's behavior: 1 ms timestamps, IP IDs that rise by one per packet."""

    clock: Clock
    host: Host
    scale: int = 7
    mss: int = 1460  # announced
    echo: int = 0  # TSecr of the next packet
    stream: Callable[[int, int], bytes] = lambda start, end: pattern(end - start, start)  # content of its stream

    def stamp(self) -> int:
        """Returns TSval."""
        return self.host.clock_ms + self.clock.now // MILLISECOND

    def make(self, segment: Segment, peer: Endpoint, packets: int = 1) -> None:
        """Builds the segment's packet at the time of transmission; a super-segment takes an IP ID for each of its packets."""
        segment.stamp = self.stamp()
        syn = "S" in segment.flags
        stamp = ("Timestamp", (segment.stamp, self.echo))
        nop: tuple[str, Any] = ("NOP", None)
        options: list[tuple[str, Any]] = [nop, nop, stamp]
        if syn:
            options = [("MSS", self.mss), ("SAckOK", b""), stamp, nop, ("WScale", self.scale)]
        if segment.blocks:
            edges = tuple((peer.host.isn + 1 + edge) % 2**32 for pair in segment.blocks for edge in pair)
            options += [nop, nop, ("SAck", edges)]
        tcp = TCP(
            sport=self.host.port,
            dport=peer.host.port,
            seq=(self.host.isn + 1 - syn + segment.start) % 2**32,
            ack=(peer.host.isn + 1 + segment.ack) % 2**32 if "A" in segment.flags else 0,
            flags=segment.flags,
            window=segment.window if syn else segment.window >> self.scale,
            options=options,
        )
        ip = IP(src=self.host.address, dst=peer.host.address, id=self.host.ip_id, flags="DF", ttl=self.host.ttl)
        self.host.ip_id = (self.host.ip_id + packets) & 0xFFFF
        data = self.stream(segment.start, segment.end) if segment.payload is None else segment.payload
        segment.packet = ethernet(self.host.number, peer.host.number) / ip / tcp / Raw(data)

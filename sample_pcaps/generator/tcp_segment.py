# SPDX-License-Identifier: Apache-2.0
"""A TCP segment on its way, and the host that makes it: addresses, sequence numbers, timestamps, IP ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scapy.layers.inet import IP, TCP
from scapy.packet import Packet, Raw

from event_clock import Clock
from simulate_transfer import Host, ethernet, pattern
from write_captures import MILLISECOND

Blocks = tuple[tuple[int, int], ...]  # SACK blocks as stream offsets


@dataclass
class Segment:
    """What is in it, in stream offsets: 0 is the first byte after the SYN, of either direction."""

    start: int
    ack: int
    end: int = 0  # of the payload; start when there is none
    flags: str = "A"
    window: int = 0  # bytes
    blocks: Blocks = ()
    kind: str = ""  # why it was sent, when the reason is a verdict
    spurious: bool = False
    payload: bytes | None = None  # else what the stream has there
    stamp: int = 0  # TSval, once it is sent
    packet: Packet = field(default_factory=Packet)  # once it is sent

    def __post_init__(self) -> None:
        """A segment without payload ends where it starts."""
        self.end = max(self.start, self.end)


def pattern_between(start: int, end: int) -> bytes:
    """A stream that is nothing but the pattern."""
    return pattern(end - start, start)


@dataclass
class Endpoint:
    """One end of a connection as Linux is: 1 ms timestamps, IP ids that rise by one a packet."""

    clock: Clock
    host: Host
    scale: int = 7
    mss: int = 1460  # announced
    echo: int = 0  # TSecr of the next packet
    stream: Callable[[int, int], bytes] = pattern_between  # what it sends

    def stamp(self) -> int:
        """The timestamp clock now."""
        return self.host.clock_ms + self.clock.now // MILLISECOND

    def take_ip_id(self, packets: int) -> int:
        """The next IP id; a super-segment takes one for each packet that it becomes."""
        taken = self.host.ip_id
        self.host.ip_id = (taken + packets) & 0xFFFF
        return taken

    def make(self, segment: Segment, peer: Endpoint, packets: int = 1) -> None:
        """Gives the segment its packet, as it leaves now."""
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
        ip_id = self.take_ip_id(packets)
        ip = IP(src=self.host.address, dst=peer.host.address, id=ip_id, flags="DF", ttl=self.host.ttl)
        data = self.stream(segment.start, segment.end) if segment.payload is None else segment.payload
        segment.packet = ethernet(self.host.number, peer.host.number) / ip / tcp / Raw(data)

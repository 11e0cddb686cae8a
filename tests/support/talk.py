# SPDX-License-Identifier: Apache-2.0
"""A TCP conversation crafted packet by packet, as a capture point sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scapy.all import IP, TCP, Ether, IPv6, Packet, Raw, wrpcap

START = 1_700_000_000
SEGMENT = 1000
RTT = 20.0
ENDS = (("10.0.0.1", 40000), ("10.0.0.2", 80))


@dataclass
class Talk:
    """Segments by stream position (0 is the first byte after the SYN), at times in ms at the capture point.

    IP ids rise by one for each packet that an end sends; TSval is the time in ms. Both can be left out.
    """

    ids: bool = True
    timestamps: bool = True
    sack: bool = True
    version: int = 4
    isn: tuple[int, int] = (1000, 500_000)
    ends: tuple[tuple[str, int], tuple[str, int]] = ENDS
    packets: list[Packet] = field(default_factory=list)
    next_id: list[int] = field(default_factory=lambda: [1000, 7000])
    echo: list[int] = field(default_factory=lambda: [0, 0])

    def missing(self, side: int, count: int = 1) -> Talk:
        """The end sends packets that never come by here."""
        self.next_id[side] += count
        return self

    def network(self, side: int, ip_id: int | None, ttl: int) -> Packet:
        """The IP header."""
        source, target = self.ends[side][0], self.ends[1 - side][0]
        if self.version == 6:
            return IPv6(src=f"fd00::{source[-1]}", dst=f"fd00::{target[-1]}", hlim=ttl)
        if ip_id is None:
            ip_id = self.next_id[side] if self.ids else 0
            self.next_id[side] += 1
        return IP(src=source, dst=target, id=ip_id % 65536, ttl=ttl, flags="DF")

    def options(
        self, ms: float, side: int, sack: Sequence[tuple[int, int]], tsval: int | None, tsecr: int | None
    ) -> list[Any]:
        """Timestamps and SACK blocks, padded as Linux does."""
        options: list[Any] = []
        if self.timestamps:
            value = 10_000 + int(ms) if tsval is None else tsval
            options += [
                ("NOP", None),
                ("NOP", None),
                ("Timestamp", (value, self.echo[side] if tsecr is None else tsecr)),
            ]
            self.echo[1 - side] = value
        if sack:
            base = self.isn[1 - side] + 1
            edges = [(base + edge) % 2**32 for block in sack for edge in block]
            options += [("NOP", None), ("NOP", None), ("SAck", tuple(edges))]
        return options

    def send(
        self,
        ms: float,
        side: int,
        at: int,
        size: int = 0,
        ack: int | None = 0,
        flags: str = "A",
        sack: Sequence[tuple[int, int]] = (),
        tsval: int | None = None,
        tsecr: int | None = None,
        ip_id: int | None = None,
        ttl: int = 64,
        window: int = 8192,
        options: list[Any] | None = None,
    ) -> Talk:
        """One segment."""
        segment = TCP(
            sport=self.ends[side][1],
            dport=self.ends[1 - side][1],
            flags=flags,
            seq=(self.isn[side] + 1 + at) % 2**32,
            ack=0 if ack is None else (self.isn[1 - side] + 1 + ack) % 2**32,
            window=window,
            options=(options or []) + self.options(ms, side, sack, tsval, tsecr),
        )
        macs = ("02:00:00:00:00:01", "02:00:00:00:00:02")
        packet = Ether(src=macs[side], dst=macs[1 - side]) / self.network(side, ip_id, ttl) / segment
        packet = Ether(bytes(packet / Raw(bytes(i % 251 for i in range(at, at + size)))))
        packet.time = START + ms / 1000
        self.packets.append(packet)
        return self

    def data(self, ms: float, at: int, size: int = SEGMENT, **more: Any) -> Talk:
        """A data segment of the initiator; `at` and `size` in bytes."""
        return self.send(ms, 0, at, size, **more)

    def ack(self, ms: float, ack: int, *sack: tuple[int, int], **more: Any) -> Talk:
        """An acknowledgment of the responder."""
        return self.send(ms, 1, 0, 0, ack, sack=sack, **more)

    def open(self, rtt: float = RTT, near: float = 0.0, scale: int | None = 7) -> Talk:
        """The handshake; the capture point is `near` ms (there and back) from the initiator."""
        offer: list[Any] = [("MSS", 1460)] + ([("SAckOK", b"")] if self.sack else [])
        if scale is not None:
            offer.append(("WScale", scale))
        self.send(0, 0, -1, ack=None, flags="S", options=offer)
        self.send(rtt - near, 1, -1, ack=0, flags="SA", options=offer)
        return self.send(rtt, 0, 0)

    def copy(self, after_ms: float, which: int = -1, **changed: Any) -> Talk:
        """A packet once more; `changed` are fields of its IP header or Ethernet addresses."""
        packet = Ether(bytes(self.packets[which]))
        packet.time = self.packets[which].time + after_ms / 1000
        for name, value in changed.items():
            setattr(packet if name in ("src", "dst") else packet.payload, name, value)
        if "ttl" in changed and packet.haslayer(IP):
            del packet[IP].chksum
        copied = Ether(bytes(packet))
        copied.time = packet.time
        self.packets.append(copied)
        return self

    def in_order(self) -> list[Packet]:
        """As captured: by time."""
        return sorted(self.packets, key=lambda packet: float(packet.time))

    def write(self, folder: Path) -> Path:
        """Writes a pcap file and returns it."""
        wrpcap(str(folder / "case.pcap"), self.in_order())
        return folder / "case.pcap"

# SPDX-License-Identifier: Apache-2.0
"""The same packets at several capture points, with known fate."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scapy.all import IP, TCP, UDP, IPv6, Packet, Raw, fragment

from capture_files import write_pcap
from wiretale.analyzer.compare.comparison import Comparison, compare_captures
from wiretale.analyzer.compare.loss_location import Ledger

START_NS = 1_750_000_000 * 10**9
MS = 10**6
ROLES = ("sender", "tracer", "receiver")
RAW_IP = 101  # link type
Rewrite = Callable[[Packet], Iterable[Packet]]


@dataclass
class Clock:
    """A point's clock: its offset and skew against the true time, and a step."""

    offset_ns: int = 0
    skew_ppm: float = 0.0
    step_at_ns: int | None = None
    step_ns: int = 0

    def shows(self, true_ns: int) -> int:
        """The time stamp at a true time."""
        step = self.step_ns if self.step_at_ns is not None and true_ns >= self.step_at_ns else 0
        return true_ns + self.offset_ns + step + round((true_ns - START_NS) * self.skew_ppm * 1e-6)


@dataclass
class Points:
    """A path with a capture at each of its points; packets are put in with the true time at each, None where not seen."""

    roles: Sequence[str] = ROLES
    clocks: dict[str, Clock] = field(default_factory=dict)
    rewrites: dict[str, Rewrite] = field(default_factory=dict)
    packets: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)

    def put(self, packet: Packet | bytes, times: Sequence[int | None]) -> None:
        """One packet; of rewritten ones all pieces come at the same time."""
        for role, time in zip(self.roles, times, strict=True):
            if time is None:
                continue
            timestamp_ns = self.clocks.get(role, Clock()).shows(time)
            rewrite = self.rewrites.get(role)
            pieces = rewrite(IP(packet) if isinstance(packet, bytes) else packet) if rewrite else [packet]
            for number, piece in enumerate(pieces):
                self.packets.setdefault(role, []).append((timestamp_ns + number, bytes(piece)))

    def pass_by(self, packet: Packet | bytes, ms: float, delays: Sequence[float | None]) -> None:
        """A packet sent at `ms`, with its delay in ms to each point."""
        self.put(packet, [None if delay is None else START_NS + round((ms + delay) * MS) for delay in delays])

    def write(self, folder: Path, snaplen: int = 262_144) -> list[Path]:
        """The captures, in the order of the way."""
        packets = {role: sorted(self.packets.get(role, []), key=lambda packet: packet[0]) for role in self.roles}
        return [write_pcap(folder / f"{role}.pcap", packets[role], snaplen, RAW_IP) for role in self.roles]


def compared(points: Points, folder: Path, **more: Any) -> AbstractContextManager[Comparison]:
    return compare_captures(*map(str, points.write(folder)), **more)


def ledger_of(comparison: Comparison, unit: str, heading: str = "sender → ") -> Ledger:
    """The one ledger of a unit, which must balance."""
    (ledger,) = [ledger for ledger in comparison.ledgers if ledger.unit == unit and heading in ledger.title]
    assert ledger.balanced
    return ledger


def block(run: int, stream: int, sequence: int, length: int = 200) -> bytes:
    """A block of wiretale (common/block.h), its pattern left 0."""
    return struct.pack(">IIHHIQQ", 0x57544231, run, stream, 0, length, sequence, START_NS).ljust(length, b"\0")


def udp(
    payload: bytes,
    ip_id: int = 0,
    source: tuple[str, int] = ("10.0.0.1", 5000),
    target: tuple[str, int] = ("10.0.1.1", 6000),
) -> bytes:
    """A datagram, forward by default. Made by hand, because tests need thousands."""
    ends = b"".join(bytes(map(int, address.split("."))) for address in (source[0], target[0]))
    datagram = struct.pack(">HHHH", source[1], target[1], 8 + len(payload), 0) + payload
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(datagram), ip_id % 65536, 0, 64, 17, 0) + ends + datagram


def tcp(
    at: int,
    size: int = 0,
    back: bool = False,
    flags: str = "A",
    ack: int = 0,
    ip_id: int = 0,
    isn: tuple[int, int] = (1000, 900_000),
    version: int = 4,
) -> Packet:
    """A segment by its place in the stream: 0 is the first byte, -1 the SYN."""
    ends = (("10.0.0.1", 40000), ("10.0.1.1", 80))
    (source, sport), (target, dport) = reversed(ends) if back else ends
    sender_isn, receiver_isn = (isn[1], isn[0]) if back else isn
    network = IP(src=source, dst=target, id=ip_id % 65536)
    if version == 6:
        network = IPv6(src=f"fd00::{source[-3:].replace('.', '')}", dst=f"fd00::{target[-3:].replace('.', '')}")
    segment = TCP(
        sport=sport,
        dport=dport,
        flags=flags,
        seq=(sender_isn + 1 + at) % 2**32,
        ack=(receiver_isn + 1 + ack) % 2**32,
        window=1000,
        options=[("MSS", 1460)] if "S" in flags else [],
    )
    return network / segment / Raw(bytes((at + i) % 251 for i in range(size)))


def translated(packet: Packet) -> list[Packet]:
    """Behind address translation: 10.0.0.1 appears as 192.0.2.9, with another port."""
    copy = packet.copy()
    layer = copy.getlayer(UDP) or copy.getlayer(TCP)
    if copy.src == "10.0.0.1":
        copy.src, layer.sport = "192.0.2.9", layer.sport + 1111
    else:
        copy.dst, layer.dport = "192.0.2.9", layer.dport + 1111
    copy.ttl -= 1
    del copy.chksum, layer.chksum
    return [copy]


def in_fragments(size: int = 1480) -> Rewrite:
    """On a link of a smaller MTU."""
    return lambda packet: fragment(IP(bytes(packet)), size)


def log(path: Path, **members: Any) -> Path:
    """The report of wiretale-traffic --json."""
    path.write_text(json.dumps({"schema": "wiretale.send/1", **members}) + "\n")
    return path

# SPDX-License-Identifier: Apache-2.0
"""A QUIC connection whose payload is not encrypted but empty: long headers of the handshake, short headers with loss bits.

Endpoints set the bits Q and L as draft-ferrieux-hamchaoui-quic-lossbits says; a packet is lost before the capture point
(upstream) or behind it (downstream), and the sender learns of it a hundred packets later.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from plain_wire import Wire

CLIENT, SERVER = ("10.0.0.1", 40000), ("10.0.0.2", 443)
INITIAL, HANDSHAKE = 0xC3, 0xE3
Q_BLOCK, Q, L = 64, 0x10, 0x08
REPORT_AFTER = 100  # packets from a loss to its L bit
PACKET_MS = 0.01


def long_header(first: int, destination: bytes, source: bytes, size: int) -> bytes:
    """A packet of version 1 with zeros from the packet number on."""
    head = bytes([first]) + struct.pack("!I", 1)
    head += bytes([len(destination)]) + destination + bytes([len(source)]) + source
    head += b"\0" if first == INITIAL else b""
    left = size - len(head) - 2
    return head + struct.pack("!H", 0x4000 | left) + bytes(left)


@dataclass
class Quic:
    """A connection on a wire; side 0 is the client."""

    wire: Wire
    client: tuple[str, int] = CLIENT
    server: tuple[str, int] = SERVER

    def send(self, ms: float, side: int, payload: bytes) -> Quic:
        ends = (self.client, self.server)
        (source, port), (target, target_port) = ends[side], ends[1 - side]
        self.wire.ip(ms, source, target, 17, struct.pack("!HHHH", port, target_port, 8 + len(payload), 0) + payload)
        return self

    def open(self, ms: float = 0.0, server_ms: float = 15.0, client_ms: float = 5.0) -> Quic:
        """A handshake; its round trips from the capture point to the server and to the client."""
        self.send(ms, 0, long_header(INITIAL, b"original", b"client", 1200))
        self.send(ms + server_ms, 1, long_header(INITIAL, b"client", b"server-1", 1200))
        answer = long_header(INITIAL, b"server-1", b"client", 60) + long_header(HANDSHAKE, b"server-1", b"client", 1140)
        return self.send(ms + server_ms + client_ms, 0, answer)

    def bits(self, ms: float, side: int, bits: Iterable[int], size: int = 1200) -> Quic:
        """1-RTT packets with those bits in their first byte."""
        for n, low_bits in enumerate(bits):
            self.send(ms + n * PACKET_MS, side, bytes([0x40 | low_bits]) + bytes(size - 1))
        return self


@dataclass
class Sent:
    """Bits of the packets that reach the capture point, and the losses that made them."""

    bits: list[int]
    sent: int = 0
    upstream: int = 0
    downstream: int = 0


def marked(count: int, lost: Iterator[str] | None = None, block: int = Q_BLOCK) -> Sent:
    """Sends packets; `lost` says of each whether it is lost "up", "down" or "" if it arrives."""
    result, reports = Sent([]), [0] * (count + REPORT_AFTER + 1)
    unreported = 0
    for n in range(count):
        unreported += reports[n]
        bits = (Q if n // block % 2 else 0) | (L if unreported else 0)
        unreported -= unreported > 0
        where = next(lost) if lost else ""
        if where:
            reports[n + REPORT_AFTER] += 1
        result.sent += 1
        result.upstream += where == "up"
        result.downstream += where == "down"
        if where != "up":
            result.bits.append(bits)
    return result


def losses(seed: int, up: float, down: float) -> Iterator[str]:
    """Independent losses at these rates."""
    dice = random.Random(seed)
    while True:
        yield "up" if dice.random() < up else "down" if dice.random() < down else ""


def reordered(bits: list[int], seed: int, share: float, most: int) -> list[int]:
    """Delays a share of the packets by up to `most` places."""
    dice = random.Random(seed)
    keys = [n + (dice.randint(1, most) + 0.5 if dice.random() < share else 0.0) for n in range(len(bits))]
    return [bits[n] for n in sorted(range(len(bits)), key=keys.__getitem__)]

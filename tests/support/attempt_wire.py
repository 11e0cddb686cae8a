# SPDX-License-Identifier: Apache-2.0
"""Connection attempts and what comes of them, crafted packet by packet: answered, ignored, refused, forbidden."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from scapy.all import ICMP, IP, TCP, IPv6, Packet, Raw

from crafted import Timed, ether, stacked

CLIENT, SERVER, ROUTER = "10.0.0.1", "10.2.0.2", "10.1.0.1"
LADDER = (0.0, 1.0, 3.0)  # s, of SYNs
RTT = 0.02  # s
TTL, FAR_TTL = 64, 61  # of the client, of the server
COOKIE = ("TFO", (1, 2))
ECN = "SEC"


class Ends(NamedTuple):
    """Addresses and ports of a connection."""

    port: int = 40000
    server_port: int = 80
    client: str = CLIENT
    server: str = SERVER

    def segment(
        self, at: float, back: bool, flags: str, ttl: int = 0, data: bytes = b"", **fields: Any
    ) -> tuple[float, Packet]:
        """One segment at a time in s."""
        source, target = (self.server, self.client) if back else (self.client, self.server)
        ports = (
            {"sport": self.server_port, "dport": self.port} if back else {"sport": self.port, "dport": self.server_port}
        )
        hops = ttl or (FAR_TTL if back else TTL)
        network = IPv6(src=source, dst=target, hlim=hops) if ":" in source else IP(src=source, dst=target, ttl=hops)
        return at, ether(stacked(network, TCP(flags=flags, **ports, **fields), Raw(data)))

    def syn(
        self, at: float, tsval: int | None = None, extra: Iterable[tuple[str, Any]] = (), flags: str = "S"
    ) -> tuple[float, Packet]:
        """A SYN with the usual options, and others."""
        stamps = [] if tsval is None else [("Timestamp", (tsval, 0))]
        return self.segment(at, False, flags, seq=1000, options=[("MSS", 1460), *stamps, ("WScale", 7), *extra])

    def syns(self, at: float = 0.0, ladder: Iterable[float] = LADDER, tsval: int | None = None) -> Timed:
        """A SYN and its repeats."""
        return [self.syn(at + later, None if tsval is None else tsval + round(1000 * later)) for later in ladder]

    def accepts(self, at: float, scale: bool = True) -> Timed:
        """SYN-ACK and ACK, seen by the client."""
        options = [("MSS", 1460), *([("WScale", 7)] if scale else [])]
        return [
            self.segment(at, True, "SA", seq=5000, ack=1001, options=options),
            self.segment(at + 0.0001, False, "A", seq=1001, ack=5001),
        ]

    def talks(self, at: float, size: int = 400) -> Timed:
        """A request and its response after the handshake, and both FINs."""
        return [
            self.segment(at, False, "PA", data=bytes(100), seq=1001, ack=5001),
            self.segment(at + RTT, True, "PA", data=bytes(size), seq=5001, ack=1101),
            self.segment(at + RTT + 0.001, False, "FA", seq=1101, ack=5001 + size),
            self.segment(at + 2 * RTT + 0.001, True, "FA", seq=5001 + size, ack=1102),
            self.segment(at + 2 * RTT + 0.002, False, "A", seq=1102, ack=5002 + size),
        ]

    def connects(
        self, at: float, tsval: int | None = None, extra: Iterable[tuple[str, Any]] = (), flags: str = "S"
    ) -> Timed:
        """A connection that works."""
        return [self.syn(at, tsval, extra, flags), *self.accepts(at + RTT), *self.talks(at + RTT + 0.001)]

    def refused(self, at: float, ttl: int = FAR_TTL, after: float = RTT) -> Timed:
        """A SYN that a RST answers."""
        return [self.syn(at), self.segment(at + after, True, "RA", ttl, seq=0, ack=1001)]

    def forbidden(self, at: float, router: str = ROUTER, code: int = 13) -> Timed:
        """A SYN that an ICMP error answers."""
        syn = self.syn(at)
        error = IP(src=router, dst=self.client) / ICMP(type=3, code=code) / Raw(bytes(syn[1][IP])[:28])
        return [syn, (at + RTT, ether(error))]


def many(count: int, first: int = 40000, **ends: Any) -> list[Ends]:
    """Connections from successive ports."""
    return [Ends(first + i, **ends) for i in range(count)]

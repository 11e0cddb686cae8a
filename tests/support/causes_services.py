# SPDX-License-Identifier: Apache-2.0
"""Services beside web pages: polls, tunnels, QUIC, DHCP and calls, an example of each cause, and its rivals."""

from __future__ import annotations

import struct
from collections.abc import Callable

from scapy.all import ICMP, IP, UDP, Raw

from attempt_wire import Ends
from causes_broken import of_timed
from causes_ends import PUSH, Dialogue
from crafted import Timed, ether
from dhcp_wire import message
from finding_captures import of_wire
from plain_wire import Wire
from quic_wire import crypto, hello, initial

CLIENT, GATEWAY, PEER = "10.0.0.1", "203.0.113.10", "198.51.100.20"


def polled(stalls: int = 3, waiting: int = 5, timer: float = 500.0, polls: int = 20) -> Wire:
    """Polls every 100 ms; in a stall the client asks again by its timer, and all is answered in the end."""
    talk = Dialogue(Wire(), 0.6, server_port=502)
    for stall in range(stalls + 1):
        for i in range(polls):
            talk.ask(95.0 + i % 10, 12.0 + i % 5, request=12, response=13)
        for _ in range(waiting if stall < stalls else 0):
            talk.now += timer
            talk.link.send(talk.now, 0, talk.sent, 12, PUSH, talk.received)
            talk.sent += 12
            talk.link.send(talk.now + 40, 1, talk.received, ack=talk.sent)
        for _ in range(waiting if stall < stalls else 0):
            talk.now += timer / waiting if not _ else 2.0
            talk.link.send(talk.now, 1, talk.received, 13, PUSH, talk.sent)
            talk.received += 13
            talk.link.send(talk.now + 0.5, 0, talk.sent, ack=talk.received)
    return talk.close()


def written(pieces: int = 5) -> Wire:
    """Requests that the client itself writes in pieces, one of them large; each is answered at once."""
    talk = Dialogue(Wire(), 0.6, server_port=502)
    for i in range(60):
        size = 12 * pieces if i % 20 == 9 else 12
        talk.ask(95.0 + i % 10, 12.0 + i % 5, request=size, response=13)
    return talk.close()


def datagram(at: float, source: str, target: str, ports: tuple[int, int], data: bytes, ttl: int = 64) -> Timed:
    return [(at, ether(IP(src=source, dst=target, ttl=ttl) / UDP(sport=ports[0], dport=ports[1]) / Raw(data)))]


def tunnel(ike: bool = True, back: bool = False, count: int = 20) -> Timed:
    """ESP of one gateway to another, and IKE between both."""
    timed: Timed = []
    for i in range(count):
        esp = struct.pack("!II", 0xC1A2, i + 1) + bytes(100)
        timed.append((1.0 + i, ether(IP(src=GATEWAY, dst=PEER, proto=50) / Raw(esp))))
        if back:
            timed.append((1.04 + i, ether(IP(src=PEER, dst=GATEWAY, proto=50) / Raw(esp))))
    for at in (0.0, 0.1, 10.0):
        timed += datagram(at, GATEWAY, PEER, (500, 500), bytes(100))
        timed += datagram(at + 0.04, PEER, GATEWAY, (500, 500), bytes(100)) if ike else []
    return timed


def quic(servers: int = 3, after: float = 4.0, answered: bool = False, error: bool = False) -> Timed:
    """Initials that are repeated and not answered, and TCP to the same servers afterwards; `answered` is the first of them."""
    timed: Timed = []
    for i in range(servers):
        at, server = 10.0 * i, f"192.0.2.{10 + i}"
        sent = initial(crypto(0, hello(f"{i}.example".encode())))
        for later in (0.0, 0.3, 0.9, 2.1):
            timed += datagram(at + later, CLIENT, server, (40_000 + i, 443), sent)
            if answered and not i:
                timed += datagram(at + later + 0.02, server, CLIENT, (443, 40_000 + i), bytes([0x40]) + bytes(80))
        if error:
            quoted = bytes(IP(src=CLIENT, dst=server) / UDP(sport=40_000 + i, dport=443))
            timed.append((at + 0.01, ether(IP(src=server, dst=CLIENT) / ICMP(type=3, code=13) / Raw(quoted))))
        timed += Ends(41_000 + i, 443, server=server).connects(at + after)
    return timed


def natted_call(private: bool = True) -> Timed:
    """A call with a phone behind a NAT: its audio comes from the public address, to which nothing is sent, if `private`."""
    exchange, phone, public = "198.51.100.7", "192.168.1.20", "203.0.113.77"
    timed = [
        *datagram(0.0, public, exchange, (5060, 5060), b"INVITE sip:a@b SIP/2.0\r\n\r\n"),
        *datagram(0.1, exchange, public, (5060, 5060), b"SIP/2.0 200 OK\r\n\r\n"),
    ]
    for number in range(400):
        head = struct.pack("!BBHI", 0x80, 0, number, 160 * number)
        at, target = 0.2 + number * 0.02, phone if private else public
        timed += datagram(at, exchange, target, (16_384, 4_000), head + b"\0\0\0\7" + bytes(160))
        timed += datagram(at + 0.01, public, exchange, (4_000, 16_384), head + b"\0\0\0\x09" + bytes(160))
    return timed


def trace_route(rounds: int = 20, hops: int = 6, silent: int = 3, rare: int = 4, arrives: bool = True) -> Timed:
    """Rounds of mtr: one router answers nothing, one rarely."""
    timed: Timed = []
    for number in range(rounds):
        for hop in range(1, hops + 1):
            at = number + hop * 0.1
            ping = (
                IP(src=CLIENT, dst="192.0.2.99", ttl=hop) / ICMP(type=8, id=7, seq=number * hops + hop) / Raw(bytes(36))
            )
            timed.append((at, ether(ping)))
            if hop == hops and arrives:
                timed.append(
                    (at + 0.03, ether(IP(src="192.0.2.99", dst=CLIENT) / ICMP(type=0, id=7, seq=number * hops + hop)))
                )
            elif hop < hops and hop != silent and (hop != rare or number % 3 == 0):
                error = IP(src=f"10.9.0.{hop}", dst=CLIENT) / ICMP(type=11) / Raw(bytes(ping)[:28])
                timed.append((at + 0.02, ether(error)))
    return timed


def group_streams(member: bool = False, streams: int = 2) -> Timed:
    """Multicast streams, and a host that asks for names; `member`: a report for each group."""
    timed: Timed = []
    for i in range(streams):
        group = f"239.192.10.{1 + i}"
        if member:
            report = struct.pack("!BBH4s", 0x16, 0, 0, bytes([239, 192, 10, 1 + i]))
            timed.append((0.1, ether(IP(src=CLIENT, dst=group, ttl=1, proto=2, options=b"\x94\x04\0\0") / Raw(report))))
        for number in range(400):
            timed += datagram(0.2 + number * 0.01 + i * 0.001, "10.0.4.9", group, (5_000, 5_000), bytes(1_316), ttl=8)
    return timed


def late_lease(offered: float = 20.3, discovers: tuple[float, ...] = (0.0, 4.0, 12.1)) -> Timed:
    """A client whose Offer comes late."""
    questions = [message(at, "discover") for at in discovers]
    confirmed = [message(offered + n / 100, kind) for n, kind in enumerate(("offer", "request", "ack"))]
    return [*questions, *confirmed]


EXAMPLES = {
    "late-lease": of_timed(late_lease),
    "late-answers": of_wire(polled),
    "esp-one-way": of_timed(tunnel),
    "quic-dropped": of_timed(quic),
}
Maker = Callable[[], Timed]

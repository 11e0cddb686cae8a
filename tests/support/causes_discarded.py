# SPDX-License-Identifier: Apache-2.0
"""Answers that a client must discard: of DNS with another client's cookie, of another address and port; and logins of IKE in many
fragments that get no answer."""

from __future__ import annotations

import struct
from collections.abc import Callable

from scapy.all import DNS, DNSQR, DNSRR, DNSRROPT, EDNS0TLV, ICMP, IP, UDP, Raw

from causes_broken import of_timed
from crafted import Timed, ether

CLIENT, SERVER, ELSEWHERE = "10.0.0.1", "10.0.0.53", "10.7.0.7"
OWN, OTHER = bytes(range(8)), bytes(range(8, 16))


def named(
    at: float, number: int, sent: bytes | None, back: bytes | None, port: int = 0, code: int = 0, xid: int = 0
) -> Timed:
    """A question with a cookie or without, and its answer."""

    def option(cookie: bytes | None) -> list[DNSRROPT]:
        return [DNSRROPT(rclass=1232, rdata=[EDNS0TLV(optcode=10, optdata=cookie)])] if cookie else []

    name, ports = f"host{number}.example", (port or 40_000 + number, 53)
    ask = DNS(id=xid or number + 1, rd=1, qd=DNSQR(qname=name), ar=option(sent))
    tell = DNS(
        id=xid or number + 1,
        qr=1,
        rd=1,
        ra=1,
        rcode=code,
        qd=DNSQR(qname=name),
        an=DNSRR(rrname=name, rdata="192.0.2.1"),
        ar=option(back),
    )
    return [
        (at, ether(IP(src=CLIENT, dst=SERVER) / UDP(sport=ports[0], dport=53) / ask)),
        (at + 0.01, ether(IP(src=SERVER, dst=CLIENT) / UDP(sport=53, dport=ports[0]) / tell)),
    ]


def cookies(
    back: bytes | None = OTHER,
    tries: int = 3,
    sent: bytes | None = OWN,
    questions: int = 3,
    server: bytes = b"",
    anew: bool = False,
) -> Timed:
    """Questions that a client asks again after 2 and 6 s, as it discards the answers; `server`: behind the client's
    cookie; `anew`:
    each with an id of its own."""
    timed: Timed = []
    for n in range(questions):
        for wait in (0.0, 2.0, 6.0)[:tries]:
            xid = 100 * n + int(wait) + 1 if anew else 0
            timed += named(20.0 * n + wait, n, sent, back + server if back else None, xid=xid)
    return timed


def strayed(port: int = 1161, rejected: bool = True, source: str = ELSEWHERE, count: int = 3) -> Timed:
    """SNMP requests whose answers come from another address, and port, which the client rejects."""
    timed: Timed = []
    for n in range(count):
        at, ask = 5.0 * n, IP(src=CLIENT, dst=SERVER) / UDP(sport=50_000 + n, dport=161) / Raw(bytes(40))
        tell = IP(src=source, dst=CLIENT) / UDP(sport=port, dport=50_000 + n) / Raw(bytes(60))
        timed += [(at, ether(ask)), (at + 0.03, ether(tell))]
        if rejected:
            quoted = IP(src=CLIENT, dst=source) / ICMP(type=3, code=3) / Raw(bytes(tell))
            timed.append((at + 0.0301, ether(quoted)))
    return timed


def ike(back: bool, kind: int, body: bytes, following: int = 33, number: int = 1) -> bytes:
    spis = struct.pack("!QQ", number << 40, 0 if kind == 34 and not back else 9)
    head = struct.pack("!BBBBII", following, 0x20, kind, 0x20 if back else 8, kind - 34, 28 + len(body))
    return spis + head + body


def fragmented_login(parts: int = 19, answered: bool = False) -> Timed:
    """IKE_SA_INIT, and IKE_AUTH in fragments of its own (RFC 7383), sent again after 1, 3 and 7 s without an answer."""

    def packet(at: float, back: bool, port: int, message: bytes) -> Timed:
        ends = (SERVER, CLIENT) if back else (CLIENT, SERVER)
        marked = bytes(4) + message if port == 4500 else message
        return [(at, ether(IP(src=ends[0], dst=ends[1]) / UDP(sport=port, dport=port) / Raw(marked)))]

    timed = [*packet(1.0, False, 500, ike(False, 34, bytes(300))), *packet(1.01, True, 500, ike(True, 34, bytes(300)))]
    for again in (0.0,) if answered else (0.0, 1.0, 3.0, 7.0):
        for n in range(1, parts + 1):
            body = struct.pack("!BBHHH", 35, 0, 508, n, parts) + bytes([n]) * 500
            timed += packet(1.1 + again + n / 1000, False, 4500, ike(False, 35, body, 53))
    if answered:
        timed += packet(1.3, True, 4500, ike(True, 35, bytes(400), 46))
    return timed


EXAMPLES: dict[str, Callable] = {"wrong-cookie": of_timed(cookies)}

# SPDX-License-Identifier: Apache-2.0
"""Calls (SIP), logins (RADIUS) and boot files (TFTP): an example of each cause, and its rivals."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence

from scapy.all import IP, UDP, Packet, Raw, fragment

from causes_broken import of_timed
from crafted import Timed, dns_answer, dns_query, ether
from dhcp_wire import DHCP_SERVER, LEASE, lease

PHONE, PBX, NAS, RADIUS, BOOT, TFTP = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.1", "10.0.0.6"
BIG = 1_700
Step = tuple[float, bool, bytes]  # seconds, from the caller, message


def sip(first: str, cseq: str, call: str = "77@phone", target: str = "") -> bytes:
    """A message without a body; the compact form of Call-ID is as good as the long one."""
    lines = (first, "Via: SIP/2.0/UDP 10.0.0.1;branch=z9hG4bK1", f"i: {call}", f"CSeq: {cseq}", f"Contact: <{target}>")
    return "\r\n".join((*lines, "Content-Length: 0", "", "")).encode()


def asks(method: str, number: int = 1, call: str = "77@phone", user: str = "2002") -> bytes:
    return sip(f"{method} sip:{user}@10.0.0.2 SIP/2.0", f"{number} {method}", call)


def tells(status: int, method: str = "INVITE", number: int = 1, call: str = "77@phone") -> bytes:
    return sip(f"SIP/2.0 {status} Text", f"{number} {method}", call)


def signals(steps: list[Step], port: int = 5060) -> Timed:
    """SIP between a phone and its server."""
    return [
        (
            at,
            ether(IP(src=PHONE if up else PBX, dst=PBX if up else PHONE) / UDP(sport=port, dport=port) / Raw(message)),
        )
        for at, up, message in sorted(steps, key=lambda step: step[0])
    ]


REPEATS = (0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5)


def unacknowledged(ack_at: float | None = None, repeats: int = len(REPEATS)) -> Timed:
    """A call whose 200 OK is repeated; the server hangs up after 32 s."""
    steps = [(0.0, True, asks("INVITE")), (0.01, False, tells(100)), (1.0, False, tells(180))]
    steps += [(3.0 + wait, False, tells(200)) for wait in (0.0, *REPEATS[:repeats])]
    if ack_at is not None:
        steps.append((ack_at, True, asks("ACK")))
    steps += [(35.0, False, asks("BYE", 2)), (35.02, True, tells(200, "BYE", 2))]
    return signals(steps)


def deaf_server(count: int = 7, provisional: bool = False) -> Timed:
    """A REGISTER that is repeated, while the client's DNS works."""
    waits = (0.0, 0.5, 1.5, 3.5, 7.5, 11.5, 15.5)[:count]
    steps = [(1 + wait, True, asks("REGISTER")) for wait in waits]
    steps += [(1.1, False, tells(100, "REGISTER"))] if provisional else []
    return [dns_query(0.1), dns_answer(0.12), *signals(steps), dns_query(40, 2), dns_answer(40.01, 2)]


def refused_call(status: int = 488, again: int = 0) -> Timed:
    """A call that is refused; `again`: its second try, with a password, ends with this status."""
    steps = [(0.0, True, asks("INVITE")), (0.01, False, tells(100)), (0.05, False, tells(status))]
    steps.append((0.06, True, asks("ACK")))
    if again:
        steps += [(0.1, True, asks("INVITE", 2)), (0.2, False, tells(again, number=2)), (0.21, True, asks("ACK", 2))]
    return signals(steps)


def radius(code: int, number: int, size: int = 80, user: bytes = b"alice", secret: int = 1) -> bytes:
    """A message of this size, filled with attributes of EAP."""
    body = (bytes([1, len(user) + 2]) + user) if code == 1 else b""
    while len(body) + 20 < size:
        part = min(255, size - 20 - len(body))
        body += bytes([79, max(part, 2)]) + bytes(max(part, 2) - 2)
    return struct.pack("!BBH", code, number, 20 + len(body)) + bytes([secret] * 16) + body


def login(at: float, number: int, answer: int = 2, size: int = 80, user: bytes = b"alice", tries: int = 1) -> Timed:
    """A request, repeated every 3 s, and its answer; 0: none."""
    request = (
        IP(src=NAS, dst=RADIUS, id=100 + number) / UDP(sport=3000, dport=1812) / Raw(radius(1, number, size, user))
    )
    reply = IP(src=RADIUS, dst=NAS) / UDP(sport=1812, dport=3000) / Raw(radius(answer, number))
    pieces = fragment(request, 1480) if size > 1472 else [request]
    timed = [(at + 3 * n + 1e-5 * i, ether(piece)) for n in range(tries) for i, piece in enumerate(pieces)]
    return [*timed, *([(at + 0.01, ether(reply))] if answer else [])]


def logins(silent: int, size: int, answered: int = 6, big: bool = False) -> Timed:
    """Requests of which some, of this size, stay unanswered; `big`: another one of this size is answered."""
    timed = [packet for n in range(answered) for packet in login(n, n, 11)]
    timed += [packet for n in range(silent) for packet in login(10 + 12 * n, 20 + n, 0, size, b"bob", 3)]
    return sorted([*timed, *(login(60, 40, 11, size) if big else [])], key=lambda packet: packet[0])


def rejected(user: bytes = b"mallory", later: int = 0) -> Timed:
    timed = [*login(0, 1, 2), *login(1, 2, 3, user=user), *login(4, 3, 3, user=user)]
    return [*timed, *(login(9, 4, later, user=user) if later else [])]


def boot(repeats: int = 7, acknowledged: int = 0, answered: bool = True, option: bool = True) -> Timed:
    """A client asks for a file; the server's first packet comes again and again, or is acknowledged."""

    def packet(at: float, up: bool, ports: tuple[int, int], data: bytes) -> tuple[float, Packet]:
        ends = {"src": BOOT, "dst": TFTP} if up else {"src": TFTP, "dst": BOOT}
        return at, ether(IP(**ends) / UDP(sport=ports[0], dport=ports[1]) / Raw(data))

    def steps() -> Iterator[tuple[float, Packet]]:
        first = b"\0\6blksize\x001468\0" if option else b"\0\3\0\1" + bytes(512)
        for n in range(1 if answered else 4):
            yield packet(1 + 3 * n, True, (2070, 69), b"\0\1boot.efi\0octet\0blksize\x001468\0")
        for n in range(repeats if answered else 0):
            yield packet(1.01 + 2 * n, False, (40001, 2070), first)
            if n < acknowledged:
                yield packet(1.02 + 2 * n, True, (2070, 40001), b"\0\4\0\0")

    return [dns_query(0.1), dns_answer(0.12), *steps(), dns_query(30, 2), dns_answer(30.01, 2)]


def boot_from_dhcp(leased: bool = True) -> Timed:
    """A client asks the server of its address, which sends to all, for a file, each time from another port."""
    asks = [
        (
            2.0 + 3 * n,
            ether(IP(src=LEASE, dst=DHCP_SERVER) / UDP(sport=2070 + n, dport=69) / Raw(b"\0\1a.efi\0octet\0")),
        )
        for n in range(4)
    ]
    return [*(lease(0.1) if leased else ()), *asks]


def polls(silent: Sequence[int] = (7, 8, 13)) -> Timed:
    """20 SNMP requests, each from a port of its own, of which some get no answer."""
    timed: Timed = []
    for n, port in enumerate(range(50_000, 50_020)):
        ask = IP(src=BOOT, dst=TFTP) / UDP(sport=port, dport=161) / Raw(bytes(40))
        timed.append((5.0 * n, ether(ask)))
        if n not in silent:
            timed.append((5.0 * n + 0.02, ether(IP(src=TFTP, dst=BOOT) / UDP(sport=161, dport=port) / Raw(bytes(44)))))
    return timed


EXAMPLES: dict[str, Callable] = {
    "some-unanswered": of_timed(polls),
    "sip-no-ack": of_timed(unacknowledged),
    "sip-silent": of_timed(deaf_server),
    "sip-refused": of_timed(refused_call),
    "radius-large": of_timed(lambda: logins(2, BIG)),
    "radius-silent": of_timed(lambda: logins(2, 80)),
    "radius-rejected": of_timed(rejected),
    "tftp-not-begun": of_timed(boot),
}
